package v2alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/install"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

func TestDefaults(t *testing.T) {
	subnets := func(dhcp samplecrdv2alpha1.Toggle) []samplecrdv2alpha1.Subnet {
		return []samplecrdv2alpha1.Subnet{{CIDR: "10.0.0.0/8", DHCP: dhcp}, {CIDR: "fd00::/64", DHCP: dhcp}}
	}
	takenOver := &samplecrdv2alpha1.OpenStack{NetworkID: "an-id"}
	managed := samplecrdv2alpha1.NetworkSpec{
		AdminState: samplecrdv2alpha1.AdminStateUp, ManagementPolicy: samplecrdv2alpha1.ManagementPolicyManaged, DeletionPolicy: samplecrdv2alpha1.DeletionPolicyDelete,
	}
	with := func(change func(*samplecrdv2alpha1.NetworkSpec)) samplecrdv2alpha1.NetworkSpec {
		spec := managed
		change(&spec)
		return spec
	}
	for name, tc := range map[string]struct{ spec, want samplecrdv2alpha1.NetworkSpec }{
		"subnets get DHCP and the network is managed": {
			spec: samplecrdv2alpha1.NetworkSpec{Subnets: subnets("")},
			want: with(func(s *samplecrdv2alpha1.NetworkSpec) { s.Subnets = subnets(samplecrdv2alpha1.Enabled) }),
		},
		"a subnet without CIDR gets nothing": {
			spec: samplecrdv2alpha1.NetworkSpec{Subnets: []samplecrdv2alpha1.Subnet{{}}},
			want: with(func(s *samplecrdv2alpha1.NetworkSpec) { s.Subnets = []samplecrdv2alpha1.Subnet{{}} }),
		},
		"what is declared stays": {
			spec: samplecrdv2alpha1.NetworkSpec{
				Subnets:    subnets(samplecrdv2alpha1.Disabled),
				AdminState: samplecrdv2alpha1.AdminStateDown, ManagementPolicy: samplecrdv2alpha1.ManagementPolicyObserve, DeletionPolicy: samplecrdv2alpha1.DeletionPolicyRetain,
			},
			want: samplecrdv2alpha1.NetworkSpec{
				Subnets:    subnets(samplecrdv2alpha1.Disabled),
				AdminState: samplecrdv2alpha1.AdminStateDown, ManagementPolicy: samplecrdv2alpha1.ManagementPolicyObserve, DeletionPolicy: samplecrdv2alpha1.DeletionPolicyRetain,
			},
		},
		"a network taken over stays when the object goes, and the rest is as it is": {
			spec: samplecrdv2alpha1.NetworkSpec{Subnets: subnets(""), OpenStack: takenOver},
			want: samplecrdv2alpha1.NetworkSpec{
				Subnets: subnets(""), OpenStack: takenOver,
				ManagementPolicy: samplecrdv2alpha1.ManagementPolicyManaged, DeletionPolicy: samplecrdv2alpha1.DeletionPolicyRetain,
			},
		},
		"a network taken over goes with the object where that is declared": {
			spec: samplecrdv2alpha1.NetworkSpec{OpenStack: takenOver, DeletionPolicy: samplecrdv2alpha1.DeletionPolicyDelete},
			want: samplecrdv2alpha1.NetworkSpec{
				OpenStack:        takenOver,
				ManagementPolicy: samplecrdv2alpha1.ManagementPolicyManaged, DeletionPolicy: samplecrdv2alpha1.DeletionPolicyDelete,
			},
		},
		"openStack without networkID changes no default": {
			spec: samplecrdv2alpha1.NetworkSpec{OpenStack: &samplecrdv2alpha1.OpenStack{}},
			want: with(func(s *samplecrdv2alpha1.NetworkSpec) { s.OpenStack = &samplecrdv2alpha1.OpenStack{} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := &samplecrdv2alpha1.NetworkList{Items: []samplecrdv2alpha1.Network{{Spec: tc.spec}}}
			newScheme().Default(list)
			if diff := cmp.Diff(tc.want, list.Items[0].Spec); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldSelectors(t *testing.T) {
	scheme := newScheme()
	kind := samplecrdv2alpha1.SchemeGroupVersion.WithKind("Network")
	for _, label := range []string{"metadata.name", "metadata.namespace", "status.networkID"} {
		gotLabel, gotValue, err := scheme.ConvertFieldLabel(kind, label, "value")
		if err != nil || gotLabel != label || gotValue != "value" {
			t.Errorf("ConvertFieldLabel(%q) = %q, %q, %v", label, gotLabel, gotValue, err)
		}
	}
	// In this version no field of that name exists.
	if _, _, err := scheme.ConvertFieldLabel(kind, "spec.cidr", "value"); err == nil {
		t.Error("the field selector spec.cidr is accepted")
	}
}
