package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestDefaults(t *testing.T) {
	takenOver := &samplecrdv1.OpenStack{NetworkID: "an-id"}
	for name, tc := range map[string]struct{ spec, want samplecrdv1.NetworkSpec }{
		"a subnet gets DHCP and the network is managed": {
			spec: samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/8"}, AdditionalSubnets: []samplecrdv1.Subnet{{CIDR: "fd00::/64"}}},
			want: samplecrdv1.NetworkSpec{
				Subnet:            samplecrdv1.Subnet{CIDR: "10.0.0.0/8", DHCP: samplecrdv1.Enabled},
				AdditionalSubnets: []samplecrdv1.Subnet{{CIDR: "fd00::/64", DHCP: samplecrdv1.Enabled}},
				AdminState:        samplecrdv1.AdminStateUp, ManagementPolicy: samplecrdv1.ManagementPolicyManaged, DeletionPolicy: samplecrdv1.DeletionPolicyDelete,
			},
		},
		"a subnet without CIDR gets nothing": {
			spec: samplecrdv1.NetworkSpec{AdditionalSubnets: []samplecrdv1.Subnet{{}}},
			want: samplecrdv1.NetworkSpec{
				AdditionalSubnets: []samplecrdv1.Subnet{{}},
				AdminState:        samplecrdv1.AdminStateUp, ManagementPolicy: samplecrdv1.ManagementPolicyManaged, DeletionPolicy: samplecrdv1.DeletionPolicyDelete,
			},
		},
		"what is declared stays": {
			spec: samplecrdv1.NetworkSpec{
				Subnet:     samplecrdv1.Subnet{CIDR: "10.0.0.0/8", DHCP: samplecrdv1.Disabled},
				AdminState: samplecrdv1.AdminStateDown, ManagementPolicy: samplecrdv1.ManagementPolicyObserve, DeletionPolicy: samplecrdv1.DeletionPolicyRetain,
			},
			want: samplecrdv1.NetworkSpec{
				Subnet:     samplecrdv1.Subnet{CIDR: "10.0.0.0/8", DHCP: samplecrdv1.Disabled},
				AdminState: samplecrdv1.AdminStateDown, ManagementPolicy: samplecrdv1.ManagementPolicyObserve, DeletionPolicy: samplecrdv1.DeletionPolicyRetain,
			},
		},
		"a network taken over stays when the object goes, and the rest is as it is": {
			spec: samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/8"}, OpenStack: takenOver},
			want: samplecrdv1.NetworkSpec{
				Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/8"}, OpenStack: takenOver,
				ManagementPolicy: samplecrdv1.ManagementPolicyManaged, DeletionPolicy: samplecrdv1.DeletionPolicyRetain,
			},
		},
		"a network taken over goes with the object where that is declared": {
			spec: samplecrdv1.NetworkSpec{OpenStack: takenOver, DeletionPolicy: samplecrdv1.DeletionPolicyDelete},
			want: samplecrdv1.NetworkSpec{
				OpenStack:        takenOver,
				ManagementPolicy: samplecrdv1.ManagementPolicyManaged, DeletionPolicy: samplecrdv1.DeletionPolicyDelete,
			},
		},
		"openStack without networkID changes no default": {
			spec: samplecrdv1.NetworkSpec{OpenStack: &samplecrdv1.OpenStack{}},
			want: samplecrdv1.NetworkSpec{
				OpenStack:  &samplecrdv1.OpenStack{},
				AdminState: samplecrdv1.AdminStateUp, ManagementPolicy: samplecrdv1.ManagementPolicyManaged, DeletionPolicy: samplecrdv1.DeletionPolicyDelete,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := &samplecrdv1.NetworkList{Items: []samplecrdv1.Network{{Spec: tc.spec}}}
			newScheme().Default(list)
			if diff := cmp.Diff(tc.want, list.Items[0].Spec); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
		})
	}
}
