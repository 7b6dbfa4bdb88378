package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/defaultcredentials"
)

// watchedBy are the resources that a plugin of admission watches. While it
// can't, each write waits ten seconds and is then refused without a reason.
var watchedBy = map[string][]schema.GroupVersionResource{
	lifecycle.PluginName:          {corev1.SchemeGroupVersion.WithResource("namespaces")},
	defaultcredentials.PluginName: {corev1.SchemeGroupVersion.WithResource("namespaces")},
	mutatingadmissionpolicy.PluginName: {
		admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"),
		admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings"),
	},
	mutatingwebhook.PluginName: {admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")},
	validatingadmissionpolicy.PluginName: {
		admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"),
		admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"),
	},
	validatingwebhook.PluginName: {admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")},
	resourcequota.PluginName:     {corev1.SchemeGroupVersion.WithResource("resourcequotas")},
}

// rightsDeadline is how long rights are waited for: they may be applied in the
// moment in which the server is.
const rightsDeadline = 10 * time.Second

// checkPlugins switches off the plugins whose kinds this cluster does not serve,
// and fails where the server may not watch those of another: to go on without
// would be to let in what a policy forbids.
func (o *Options) checkPlugins(ctx context.Context, clients kubernetes.Interface) error {
	var missing []error
	err := wait.PollUntilContextTimeout(ctx, time.Second, rightsDeadline, true, func(ctx context.Context) (bool, error) {
		missing = nil
		served := map[schema.GroupVersion][]metav1.APIResource{}
		for _, plugin := range pluginOrder {
			if slices.Contains(o.Admission.DisablePlugins, plugin) || o.Admission.DefaultOffPlugins.Has(plugin) {
				continue
			}
			for _, resource := range watchedBy[plugin] {
				gv := resource.GroupVersion()
				if _, known := served[gv]; !known {
					var err error
					if served[gv], err = resourcesOf(clients, gv); err != nil {
						return false, err
					}
				}
				if !slices.ContainsFunc(served[gv], func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
					klog.InfoS("Admission plugin is off: the cluster does not serve what it goes by", "plugin", plugin, "resource", resource)
					o.Admission.DefaultOffPlugins.Insert(plugin)
					o.Admission.EnablePlugins = slices.DeleteFunc(o.Admission.EnablePlugins, func(on string) bool { return on == plugin })
					break
				}
				for _, verb := range []string{"list", "watch"} {
					if err := mayNot(ctx, clients, verb, resource); err != nil {
						missing = append(missing, fmt.Errorf("%w, which admission plugin %s needs", err, plugin))
					}
				}
			}
		}
		return len(missing) == 0, nil
	})
	if len(missing) > 0 {
		return fmt.Errorf("checking the rights of this server: %w", errors.Join(missing...))
	}
	if err != nil {
		return fmt.Errorf("checking what admission plugins go by: %w", err)
	}
	return nil
}

// resourcesOf returns what is served in that version, nothing if it is not.
func resourcesOf(clients kubernetes.Interface, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	list, err := clients.Discovery().ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return list.APIResources, nil
}

func mayNot(ctx context.Context, clients kubernetes.Interface, verb string, resource schema.GroupVersionResource) error {
	review, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("it may not %s %s at the cluster scope", verb, resource.GroupResource())
	}
	return nil
}
