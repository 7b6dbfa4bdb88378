package app

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// newKube is a cluster that serves all that plugins go by, but for what is
// named, and where the server may watch all but what is named.
func newKube(unserved, forbidden sets.Set[string]) *fake.Clientset {
	clients := fake.NewClientset()
	lists := map[string]*metav1.APIResourceList{}
	for _, resources := range watchedBy {
		for _, r := range resources {
			if unserved.Has(r.Resource) {
				continue
			}
			list := lists[r.GroupVersion().String()]
			if list == nil {
				list = &metav1.APIResourceList{GroupVersion: r.GroupVersion().String()}
				lists[list.GroupVersion] = list
				clients.Resources = append(clients.Resources, list)
			}
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Resource})
		}
	}
	clients.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = !forbidden.Has(asked.Verb + " " + asked.Resource)
		return true, review, nil
	})
	return clients
}

func TestCheckPlugins(t *testing.T) {
	for name, tc := range map[string]struct {
		unserved, forbidden sets.Set[string]
		disabled, enabled   []string
		wantOff             []string
		wantErr             string
	}{
		"all plugins are on where all is served and allowed": {},
		"a plugin is off where the cluster does not serve its policies": {
			unserved: sets.New("mutatingadmissionpolicies"),
			wantOff:  []string{"MutatingAdmissionPolicy"},
		},
		"it is off where somebody switched it on": {
			unserved: sets.New("mutatingadmissionpolicies"),
			enabled:  []string{"MutatingAdmissionPolicy", "ResourceQuota"},
			wantOff:  []string{"MutatingAdmissionPolicy"},
		},
		"it is off where only the bindings are missing": {
			unserved: sets.New("validatingadmissionpolicybindings"),
			wantOff:  []string{"ValidatingAdmissionPolicy"},
		},
		"all plugins of a version that is not served are off": {
			unserved: sets.New("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
				"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"),
			wantOff: []string{"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook"},
		},
		"what is not served needs no right": {
			unserved:  sets.New("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
			forbidden: sets.New("list mutatingadmissionpolicies"),
			wantOff:   []string{"MutatingAdmissionPolicy"},
		},
		"a missing rule stops the start and is named": {
			forbidden: sets.New("watch resourcequotas", "list validatingadmissionpolicies"),
			wantErr: "checking the rights of this server: " +
				"it may not list validatingadmissionpolicies.admissionregistration.k8s.io at the cluster scope, which admission plugin ValidatingAdmissionPolicy needs\n" +
				"it may not watch resourcequotas at the cluster scope, which admission plugin ResourceQuota needs",
		},
		"a plugin that somebody switched off needs no right": {
			forbidden: sets.New("watch resourcequotas"),
			disabled:  []string{"ResourceQuota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := NewOptions()
				before := o.Admission.DefaultOffPlugins.Clone()
				o.Admission.DisablePlugins, o.Admission.EnablePlugins = tc.disabled, slices.Clone(tc.enabled)
				message := ""
				if err := o.checkPlugins(t.Context(), newKube(tc.unserved, tc.forbidden)); err != nil {
					message = err.Error()
				}
				if diff := cmp.Diff(tc.wantErr, message); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				off := sets.List(o.Admission.DefaultOffPlugins.Difference(before))
				if diff := cmp.Diff(tc.wantOff, off); diff != "" && len(tc.wantOff)+len(off) > 0 {
					t.Errorf("plugins that were switched off (-want +got):\n%s", diff)
				}
				stay := sets.New(tc.enabled...).Delete(tc.wantOff...)
				if on := sets.New(o.Admission.EnablePlugins...); !on.Equal(stay) {
					t.Errorf("plugins that stay on are %v, want %v", sets.List(on), sets.List(stay))
				}
			})
		})
	}
}
