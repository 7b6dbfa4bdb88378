package network

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestPrepareForCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		sent, want *samplecrd.Network
	}{
		"the finalizer is there from the first write on": {
			sent: validNetwork(),
			want: validNetwork(generation(1), finalizers(samplecrd.NeutronFinalizer)),
		},
		"a finalizer that the client sends is not doubled": {
			sent: validNetwork(finalizers(samplecrd.NeutronFinalizer)),
			want: validNetwork(generation(1), finalizers(samplecrd.NeutronFinalizer)),
		},
		"finalizers of others stay": {
			sent: validNetwork(finalizers("example.com/other")),
			want: validNetwork(generation(1), finalizers("example.com/other", samplecrd.NeutronFinalizer)),
		},
		"status and generation are not the client's to set": {
			sent: validNetwork(generation(9), networkID("stolen"), ready(metav1.ConditionTrue, "Success")),
			want: validNetwork(generation(1), finalizers(samplecrd.NeutronFinalizer)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			strategy{}.PrepareForCreate(t.Context(), tc.sent)
			if diff := cmp.Diff(tc.want, tc.sent); diff != "" {
				t.Errorf("unexpected Network (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrepareForUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		old, sent, want *samplecrd.Network
	}{
		"a change of the spec raises the generation": {
			old:  storedNetwork(),
			sent: storedNetwork(gateway("192.168.0.254")),
			want: storedNetwork(gateway("192.168.0.254"), generation(4)),
		},
		"a change of a label does not": {
			old:  storedNetwork(),
			sent: storedNetwork(label("a", "b")),
			want: storedNetwork(label("a", "b")),
		},
		"an empty list in place of none does not": {
			old:  storedNetwork(),
			sent: storedNetwork(func(n *samplecrd.Network) { n.Spec.Subnets[0].DNSNameservers = []string{} }),
			want: storedNetwork(func(n *samplecrd.Network) { n.Spec.Subnets[0].DNSNameservers = []string{} }),
		},
		"status stays as it was": {
			old:  storedNetwork(),
			sent: storedNetwork(networkID("stolen"), ready(metav1.ConditionTrue, "Success")),
			want: storedNetwork(),
		},
		"the file once applied, with no status and no finalizer, takes neither away": {
			old:  storedNetwork(),
			sent: storedNetwork(noStatus, finalizers()),
			want: storedNetwork(finalizers(samplecrd.NeutronFinalizer)),
		},
		"finalizers of others come and go": {
			old:  storedNetwork(finalizers("example.com/old", samplecrd.NeutronFinalizer)),
			sent: storedNetwork(finalizers("example.com/new")),
			want: storedNetwork(finalizers("example.com/new", samplecrd.NeutronFinalizer)),
		},
		"during deletion the finalizer may go": {
			old:  storedNetwork(deleting),
			sent: storedNetwork(deleting, finalizers()),
			want: storedNetwork(deleting, finalizers()),
		},
		"a Network without the finalizer does not get it": {
			old:  storedNetwork(finalizers()),
			sent: storedNetwork(finalizers()),
			want: storedNetwork(finalizers()),
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := tc.old.DeepCopy()
			strategy{}.PrepareForUpdate(t.Context(), tc.sent, tc.old)
			if diff := cmp.Diff(tc.want, tc.sent); diff != "" {
				t.Errorf("unexpected Network (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(old, tc.old); diff != "" {
				t.Errorf("the old object changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAStatusUpdateTakesNothingButStatus(t *testing.T) {
	old := storedNetwork(label("a", "b"))
	sent := storedNetwork(finalizers(), gateway("192.168.0.254"), generation(9), label("a", "c"),
		networkID("new"), ready(metav1.ConditionTrue, "Success"))
	sent.Annotations = map[string]string{"a": "b"}
	sent.OwnerReferences = []metav1.OwnerReference{{Name: "owner"}}

	statusStrategy{}.PrepareForUpdate(t.Context(), sent, old)
	want := storedNetwork(label("a", "b"), networkID("new"), ready(metav1.ConditionTrue, "Success"))
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("unexpected Network (-want +got):\n%s", diff)
	}
}

func TestAStatusUpdateJudgesNothingButStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		old, sent *samplecrd.Network
		want      []string
	}{
		"a spec that is no longer valid is not looked at": {
			old:  storedNetwork(cidr("garbage")),
			sent: storedNetwork(cidr("garbage"), ready(metav1.ConditionTrue, "Success")),
		},
		"a condition without a reason is refused": {
			old:  storedNetwork(),
			sent: storedNetwork(ready(metav1.ConditionTrue, "")),
			want: []string{"status.conditions[0].reason"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := statusStrategy{}.ValidateUpdate(asked(t, "v1"), tc.sent, tc.old)
			if diff := cmp.Diff(tc.want, errorFields(errs)); diff != "" {
				t.Errorf("unexpected errors (-want +got):\n%s", diff)
			}
			if warnings := (statusStrategy{}).WarningsOnUpdate(asked(t, "v1"), tc.sent, tc.old); len(warnings) > 0 {
				t.Errorf("unexpected warnings: %q", warnings)
			}
		})
	}
}

// TestMessagesNameTheFieldsThatTheClientWrote has a subnet that is refused and
// one that is warned of, each at the first and at a further place.
func TestMessagesNameTheFieldsThatTheClientWrote(t *testing.T) {
	refused := func(n *samplecrd.Network) {
		n.Spec.Subnets = []samplecrd.Subnet{{CIDR: "garbage"}, {CIDR: "garbage"}}
	}
	warned := func(n *samplecrd.Network) {
		n.Spec.Subnets = []samplecrd.Subnet{{CIDR: "10.0.0.1/16"}, {CIDR: "10.1.0.1/16"}}
	}
	flat, list := []string{"spec.cidr", "spec.additionalSubnets[0].cidr"}, []string{"spec.subnets[0].cidr", "spec.subnets[1].cidr"}
	warning := func(path, cidr, masked string) string {
		return path + `: the host bits of "` + cidr + `" are ignored, the subnet is ` + masked
	}
	for name, tc := range map[string]struct {
		ctx  context.Context
		want []string
	}{
		"a request in v1":                     {asked(t, "v1"), flat},
		"a request in v2alpha1":               {asked(t, "v2alpha1"), list},
		"no request":                          {t.Context(), flat},
		"a request for a resource of another": {request.WithRequestInfo(t.Context(), &request.RequestInfo{APIGroup: "apps", APIVersion: "v2alpha1"}), flat},
	} {
		t.Run(name, func(t *testing.T) {
			rules, old := strategy{}, storedNetwork()
			for write, errs := range map[string]field.ErrorList{
				"create": rules.Validate(tc.ctx, validNetwork(refused)),
				"update": rules.ValidateUpdate(tc.ctx, storedNetwork(refused), old),
			} {
				if diff := cmp.Diff(tc.want, errorFields(errs)); diff != "" {
					t.Errorf("%s: unexpected errors (-want +got):\n%s", write, diff)
				}
			}
			want := []string{warning(tc.want[0], "10.0.0.1/16", "10.0.0.0/16"), warning(tc.want[1], "10.1.0.1/16", "10.1.0.0/16")}
			for write, got := range map[string][]string{
				"create": rules.WarningsOnCreate(tc.ctx, validNetwork(warned)),
				"update": rules.WarningsOnUpdate(tc.ctx, storedNetwork(warned), old),
			} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: unexpected warnings (-want +got):\n%s", write, diff)
				}
			}
		})
	}
}

func errorFields(errs field.ErrorList) []string {
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
	}
	return fields
}

func TestAWarningIsGivenOnce(t *testing.T) {
	hostBits := storedNetwork(cidr("192.168.1.0/16"))
	changed := storedNetwork(cidr("192.168.1.0/16"), gateway("192.168.0.254"))
	if got := (strategy{}).WarningsOnUpdate(t.Context(), changed, hostBits); len(got) > 0 {
		t.Errorf("warned again of what is stored: %q", got)
	}
}

func TestAnAnnotationWithoutEffectIsWarnedOf(t *testing.T) {
	annotated := func(name, value string) tweak {
		return func(n *samplecrd.Network) { n.Annotations = map[string]string{name: value} }
	}
	for name, tc := range map[string]struct {
		sent, old tweak
		want      []string
	}{
		"it has one":             {sent: annotated(samplecrdv1.AnnotationPause, "true")},
		"none is wanted":         {sent: annotated(samplecrdv1.AnnotationPause, "false")},
		"any value has one":      {sent: annotated(samplecrdv1.AnnotationReconcileNow, "True")},
		"pause is misspelt":      {sent: annotated(samplecrdv1.AnnotationPause, "True"), want: []string{`metadata.annotations[samplecrd.k8s.io/pause]: "True" has no effect, only "true" has`}},
		"abandon is misspelt":    {sent: annotated(samplecrdv1.AnnotationAbandon, "yes"), want: []string{`metadata.annotations[samplecrd.k8s.io/abandon]: "yes" has no effect, only "true" has`}},
		"it was true":            {sent: annotated(samplecrdv1.AnnotationPause, "1"), old: annotated(samplecrdv1.AnnotationPause, "true"), want: []string{`metadata.annotations[samplecrd.k8s.io/pause]: "1" has no effect, only "true" has`}},
		"what is stored is kept": {sent: annotated(samplecrdv1.AnnotationPause, "True"), old: annotated(samplecrdv1.AnnotationPause, "True")},
	} {
		t.Run(name, func(t *testing.T) {
			old := storedNetwork()
			if tc.old == nil {
				if diff := cmp.Diff(tc.want, (strategy{}).WarningsOnCreate(t.Context(), validNetwork(tc.sent))); diff != "" {
					t.Errorf("create: unexpected warnings (-want +got):\n%s", diff)
				}
			} else {
				tc.old(old)
			}
			if diff := cmp.Diff(tc.want, (strategy{}).WarningsOnUpdate(t.Context(), storedNetwork(tc.sent), old)); diff != "" {
				t.Errorf("update: unexpected warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResetFieldsAreThoseOfEachServedVersion(t *testing.T) {
	want := sets.New[fieldpath.APIVersion]()
	for _, version := range newScheme().PrioritizedVersionsForGroup(samplecrd.GroupName) {
		want.Insert(fieldpath.APIVersion(version.String()))
	}
	storage := newStorage(t, generic.UndecoratedStorage)
	for name, tc := range map[string]struct {
		served rest.ResetFieldsStrategy
		want   *fieldpath.Set
	}{
		"networks":        {storage.Network, fieldpath.NewSet(fieldpath.MakePathOrDie("status"))},
		"networks/status": {storage.Status, fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.served.GetResetFields()
			if !want.Equal(sets.KeySet(got)) {
				t.Errorf("the keys are %v, the versions in the scheme %v", sets.List(sets.KeySet(got)), sets.List(want))
			}
			for version, set := range got {
				if !set.Equals(tc.want) {
					t.Errorf("%s: got %s, want %s", version, set, tc.want)
				}
			}
		})
	}
}
