package registration

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func wantSpec(c *cluster, t *testing.T, version schema.GroupVersion, priority int32) apiregistrationv1.APIServiceSpec {
	t.Helper()
	return apiregistrationv1.APIServiceSpec{
		Service:              &apiregistrationv1.ServiceReference{Namespace: "samplecrd-system", Name: "network-apiserver", Port: new(int32(443))},
		Group:                version.Group,
		Version:              version.Version,
		CABundle:             c.secret(t).Data["ca.crt"],
		GroupPriorityMinimum: 1000,
		VersionPriority:      priority,
	}
}

func TestAPIServicesAreKept(t *testing.T) {
	mine := map[string]string{"team": "net"}
	for name, before := range map[string]*apiregistrationv1.APIService{
		"none is there": nil,
		"one without verification": {Spec: apiregistrationv1.APIServiceSpec{
			Service:               &apiregistrationv1.ServiceReference{Namespace: "samplecrd-system", Name: "network-apiserver", Port: new(int32(443))},
			InsecureSkipTLSVerify: true, Group: v1.Group, Version: v1.Version, GroupPriorityMinimum: 1, VersionPriority: 1,
		}},
		"one with another service and CA": {Spec: apiregistrationv1.APIServiceSpec{
			Service:  &apiregistrationv1.ServiceReference{Namespace: "other", Name: "other"},
			CABundle: []byte("other"), Group: v1.Group, Version: v1.Version, GroupPriorityMinimum: 1, VersionPriority: 1,
		}},
		"one without service that is no CRD's": {Spec: apiregistrationv1.APIServiceSpec{
			Group: v1.Group, Version: v1.Version, GroupPriorityMinimum: 1, VersionPriority: 1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			if before != nil {
				before.ObjectMeta = metav1.ObjectMeta{Name: nameOf(v1), Labels: mine}
				c.putAPIService(t, before)
			}
			r := c.registrar(t)
			runOnce(t, r)
			for version, priority := range map[schema.GroupVersion]int32{v1: 20, v2alpha1: 10} {
				if diff := cmp.Diff(wantSpec(c, t, version, priority), c.mustAPIService(t, version).Spec); diff != "" {
					t.Errorf("%s (-want +got):\n%s", version, diff)
				}
			}
			if got := c.mustAPIService(t, v1).Labels; before != nil && !cmp.Equal(got, mine) {
				t.Errorf("labels are %v, want %v as before", got, mine)
			}

			c.aggregator.ClearActions()
			runOnce(t, r)
			for _, action := range c.aggregator.Actions() {
				if action.GetVerb() != "get" {
					t.Errorf("with nothing to do: %s", action.GetVerb())
				}
			}
		})
	}
}

func TestOnlyServedVersionsAreRegistered(t *testing.T) {
	c := newCluster()
	runOnce(t, c.registrar(t, func(o *Options) { o.Versions = []schema.GroupVersion{v1} }))
	if got := c.mustAPIService(t, v2alpha1); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestGroupsAreRegisteredEachByItself(t *testing.T) {
	other := schema.GroupVersion{Group: "pipeline.samplecrd.k8s.io", Version: "v1alpha1"}
	c := newCluster()
	c.putAPIService(t, localAPIService(v1))
	r := c.registrar(t, func(o *Options) { o.Versions = append(slices.Clone(o.Versions), other) })
	runOnce(t, r)
	if diff := cmp.Diff(wantSpec(c, t, other, 10), c.mustAPIService(t, other).Spec); diff != "" {
		t.Errorf("beside a CRD of another group (-want +got):\n%s", diff)
	}
	if got := c.mustAPIService(t, v2alpha1); got != nil {
		t.Errorf("beside a CRD of its own group: %v", got)
	}
	c.deleteAPIService(t, v1)
	runOnce(t, r)
	for version, priority := range map[schema.GroupVersion]int32{v1: 20, v2alpha1: 10, other: 10} {
		if diff := cmp.Diff(wantSpec(c, t, version, priority), c.mustAPIService(t, version).Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestCRDIsNotFought(t *testing.T) {
	for name, tc := range map[string]struct {
		tweak      func(*apiregistrationv1.APIService)
		registered bool // v2alpha1 was ours before the CRD came
	}{
		"before us": {},
		"after us":  {registered: true},
		"with our manifest applied over it": {tweak: func(apiService *apiregistrationv1.APIService) {
			apiService.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: "samplecrd-system", Name: "network-apiserver"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			logged := captureLog(t)
			c := newCluster()
			r := c.registrar(t)
			if tc.registered {
				runOnce(t, r)
				c.deleteAPIService(t, v1)
			}
			local := localAPIService(v1)
			if tc.tweak != nil {
				tc.tweak(local)
			}
			c.putAPIService(t, local)
			runOnce(t, r)
			if diff := cmp.Diff(local.Spec, c.mustAPIService(t, v1).Spec); diff != "" {
				t.Errorf("the CRD's APIService was changed (-want +got):\n%s", diff)
			}
			if got := c.mustAPIService(t, v2alpha1); (got != nil) != tc.registered {
				t.Errorf("v2alpha1 is registered: %v, want %v", got != nil, tc.registered)
			}
			if got := logged(); !strings.Contains(got, "docs/from-crd.md") || !strings.Contains(got, nameOf(v1)) {
				t.Errorf("the log does not tell how to move:\n%s", got)
			}

			c.deleteAPIService(t, v1)
			runOnce(t, r)
			if diff := cmp.Diff(wantSpec(c, t, v1, 20), c.mustAPIService(t, v1).Spec); diff != "" {
				t.Errorf("with the CRD gone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForbiddenAPIServiceNamesTheRule(t *testing.T) {
	for _, verb := range []string{"get", "patch"} {
		t.Run(verb, func(t *testing.T) {
			c := newCluster()
			forbid(&c.aggregator.Fake, verb, "apiservices")
			r := c.registrar(t)
			err := r.RunOnce(t.Context())
			want := "cannot " + verb + ` resource "apiservices"`
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), nameOf(v1)) {
				t.Errorf("got error %v, want one with %q and the name", err, want)
			}
			if served(r) == "" {
				t.Error("nothing is served")
			}
		})
	}
}

func TestOneForbiddenAPIServiceDoesNotStopTheOther(t *testing.T) {
	c := newCluster()
	c.aggregator.PrependReactor("patch", "apiservices", refuse(nameOf(v1)))
	if err := c.registrar(t).RunOnce(t.Context()); err == nil {
		t.Error("no error")
	}
	if c.mustAPIService(t, v2alpha1) == nil {
		t.Error("v2alpha1 is not registered")
	}
}

func TestWatchCRD(t *testing.T) {
	logged := captureLog(t)
	c := newCluster()
	c.putAPIService(t, localAPIService(v2alpha1))
	var watching sync.WaitGroup
	watching.Go(func() { WatchCRD(t.Context(), c.aggregator, v1, v2alpha1) })
	t.Cleanup(watching.Wait)
	told := func(what string, version schema.GroupVersion) func() bool {
		return func() bool {
			for line := range strings.Lines(logged()) {
				if strings.Contains(line, what) && strings.Contains(line, nameOf(version)) {
					return true
				}
			}
			return false
		}
	}
	eventually(t, "the CRD that was there", told("docs/from-crd.md", v2alpha1))
	c.putAPIService(t, localAPIService(v1))
	eventually(t, "the CRD that came", told("docs/from-crd.md", v1))
	c.deleteAPIService(t, v1)
	eventually(t, "the CRD that went", told("apply the APIService", v1))
}

// refuse forbids what is done with the one name.
func refuse(name string) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.PatchAction).GetName() != name {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), name, nil)
	}
}

func (c *cluster) deleteAPIService(t *testing.T, version schema.GroupVersion) {
	t.Helper()
	if err := c.aggregator.ApiregistrationV1().APIServices().Delete(t.Context(), nameOf(version), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// captureLog returns what is logged from now until the test ends.
func captureLog(t *testing.T) func() string {
	t.Helper()
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	klog.SetLogger(logger)
	return logger.GetSink().(ktesting.Underlier).GetBuffer().String
}
