package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/install"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

func TestDecodeToHub(t *testing.T) {
	codec := serializer.NewCodecFactory(newScheme()).UniversalDecoder(samplecrd.SchemeGroupVersion)
	managed := func(subnets ...samplecrd.Subnet) samplecrd.NetworkSpec {
		return samplecrd.NetworkSpec{
			Subnets:          subnets,
			AdminState:       samplecrd.AdminStateUp,
			ManagementPolicy: samplecrd.ManagementPolicyManaged,
			DeletionPolicy:   samplecrd.DeletionPolicyDelete,
		}
	}
	for name, tc := range map[string]struct {
		spec string
		want samplecrd.NetworkSpec
	}{
		"the two fields of the course make a subnet": {
			spec: `{"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"}`,
			want: managed(samplecrd.Subnet{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1", DHCP: samplecrd.Enabled}),
		},
		"an empty gateway is absent": {
			spec: `{"cidr": "192.168.0.0/16", "gateway": ""}`,
			want: managed(samplecrd.Subnet{CIDR: "192.168.0.0/16", DHCP: samplecrd.Enabled}),
		},
		"an empty spec has no subnet":           {spec: `{}`, want: managed()},
		"only an empty gateway makes no subnet": {spec: `{"gateway": ""}`, want: managed()},
		"empty lists make no subnet":            {spec: `{"allocationPools": [], "dnsNameservers": [], "additionalSubnets": []}`, want: managed()},
		"a flat field without cidr makes the first subnet": {
			spec: `{"gateway": "192.168.0.1"}`,
			want: managed(samplecrd.Subnet{Gateway: "192.168.0.1"}),
		},
		"a flat list without cidr makes the first subnet": {
			spec: `{"dnsNameservers": ["8.8.8.8"]}`,
			want: managed(samplecrd.Subnet{DNSNameservers: []string{"8.8.8.8"}}),
		},
		"an additional subnet without a flat one stays the second": {
			spec: `{"additionalSubnets": [{"cidr": "fd00::/64"}]}`,
			want: managed(samplecrd.Subnet{}, samplecrd.Subnet{CIDR: "fd00::/64", DHCP: samplecrd.Enabled}),
		},
		"an observed network has no subnets": {
			spec: `{"managementPolicy": "Observe", "openStack": {"networkID": "an-id"}}`,
			want: samplecrd.NetworkSpec{
				ManagementPolicy: samplecrd.ManagementPolicyObserve,
				DeletionPolicy:   samplecrd.DeletionPolicyRetain,
				OpenStack:        &samplecrd.OpenStack{NetworkID: "an-id"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrd.Network{}
			data := `{"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "spec": ` + tc.spec + `}`
			if err := runtime.DecodeInto(codec, []byte(data), network); err != nil {
				t.Fatalf("decoding: %v", err)
			}
			if diff := cmp.Diff(tc.want, network.Spec); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertFromHub(t *testing.T) {
	ipv4, ipv6 := samplecrd.Subnet{CIDR: "192.168.0.0/16"}, samplecrd.Subnet{CIDR: "fd00::/64"}
	for name, tc := range map[string]struct {
		subnets []samplecrd.Subnet
		want    samplecrdv1.NetworkSpec
	}{
		"no subnet leaves the flat one empty": {},
		"the first subnet stands flat": {
			subnets: []samplecrd.Subnet{ipv4},
			want:    samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "192.168.0.0/16"}},
		},
		"the others are additional": {
			subnets: []samplecrd.Subnet{ipv4, ipv6},
			want: samplecrdv1.NetworkSpec{
				Subnet:            samplecrdv1.Subnet{CIDR: "192.168.0.0/16"},
				AdditionalSubnets: []samplecrdv1.Subnet{{CIDR: "fd00::/64"}},
			},
		},
		"an empty first subnet keeps its place": {
			subnets: []samplecrd.Subnet{{}, ipv6},
			want:    samplecrdv1.NetworkSpec{AdditionalSubnets: []samplecrdv1.Subnet{{CIDR: "fd00::/64"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// What was there before must not shine through.
			got := samplecrdv1.NetworkSpec{
				Subnet:            samplecrdv1.Subnet{Gateway: "10.0.0.1"},
				AdditionalSubnets: []samplecrdv1.Subnet{{CIDR: "10.0.0.0/8"}},
			}
			if err := samplecrdv1.Convert_samplecrd_NetworkSpec_To_v1_NetworkSpec(&samplecrd.NetworkSpec{Subnets: tc.subnets}, &got, nil); err != nil {
				t.Fatalf("converting: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
		})
	}
}

// fullNetwork has every field set, and two subnets that differ in all of them.
func fullNetwork() *samplecrdv1.Network {
	return &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: "default", Finalizers: []string{samplecrdv1.NeutronFinalizer}},
		Spec: samplecrdv1.NetworkSpec{
			Subnet: samplecrdv1.Subnet{
				CIDR:            "192.168.0.0/16",
				Gateway:         samplecrdv1.GatewayNone,
				AllocationPools: []samplecrdv1.AllocationPool{{Start: "192.168.1.1", End: "192.168.1.9"}},
				DNSNameservers:  []string{"8.8.8.8"},
				HostRoutes:      []samplecrdv1.HostRoute{{Destination: "10.0.0.0/8", NextHop: "192.168.0.1"}},
				DHCP:            samplecrdv1.Disabled,
			},
			AdditionalSubnets: []samplecrdv1.Subnet{{
				CIDR:            "fd00::/64",
				Gateway:         "fd00::1",
				AllocationPools: []samplecrdv1.AllocationPool{{Start: "fd00::2", End: "fd00::9"}},
				DNSNameservers:  []string{"2001:db8::1", "2001:db8::2"},
				HostRoutes:      []samplecrdv1.HostRoute{{Destination: "fd01::/64", NextHop: "fd00::1"}},
				DHCP:            samplecrdv1.Enabled,
				IPv6:            &samplecrdv1.IPv6{AddressMode: samplecrdv1.IPv6SLAAC, RAMode: samplecrdv1.IPv6SLAAC},
			}},
			MTU:              ptr.To[int32](1400),
			AdminState:       samplecrdv1.AdminStateDown,
			ManagementPolicy: samplecrdv1.ManagementPolicyManaged,
			DeletionPolicy:   samplecrdv1.DeletionPolicyRetain,
			OpenStack: &samplecrdv1.OpenStack{
				NetworkID:      "an-id",
				CredentialsRef: &samplecrdv1.CredentialsRef{SecretName: "secret", CloudName: "cloud"},
				Provider:       &samplecrdv1.Provider{NetworkType: "vlan", PhysicalNetwork: "physnet1", SegmentationID: ptr.To[int32](7)},
				External:       samplecrdv1.Enabled,
				Shared:         samplecrdv1.Disabled,
				PortSecurity:   samplecrdv1.Enabled,
			},
		},
		Status: samplecrdv1.NetworkStatus{
			ObservedGeneration: 3,
			Conditions:         []metav1.Condition{{Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, Reason: samplecrdv1.ReasonSuccess}},
			NetworkID:          "an-id", ProjectID: "a-project", Region: "a-region",
			MTU:      ptr.To[int32](1400),
			Provider: &samplecrdv1.Provider{NetworkType: "vlan", PhysicalNetwork: "physnet1", SegmentationID: ptr.To[int32](7)},
			Subnets: []samplecrdv1.SubnetStatus{{
				CIDR: "192.168.0.0/16", ID: "a-subnet", Gateway: "192.168.0.1",
				AllocationPools: []samplecrdv1.AllocationPool{{Start: "192.168.1.1", End: "192.168.1.9"}},
			}},
		},
	}
}

func TestNothingIsLostBetweenVersions(t *testing.T) {
	scheme := newScheme()
	convert := func(in, out runtime.Object) {
		t.Helper()
		hub := &samplecrd.Network{}
		if err := scheme.Convert(in, hub, nil); err != nil {
			t.Fatalf("converting %T to the hub: %v", in, err)
		}
		if err := scheme.Convert(hub, out, nil); err != nil {
			t.Fatalf("converting the hub to %T: %v", out, err)
		}
	}
	var v2, v2Again samplecrdv2alpha1.Network
	var v1Again samplecrdv1.Network
	convert(fullNetwork(), &v2)
	convert(&v2, &v1Again)
	convert(&v1Again, &v2Again)
	if diff := cmp.Diff(fullNetwork(), &v1Again); diff != "" {
		t.Errorf("v1 -> v2alpha1 -> v1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(v2, v2Again); diff != "" {
		t.Errorf("v2alpha1 -> v1 -> v2alpha1 (-want +got):\n%s", diff)
	}
	if got := []string{v2.Spec.Subnets[0].CIDR, v2.Spec.Subnets[1].CIDR}; !cmp.Equal(got, []string{"192.168.0.0/16", "fd00::/64"}) {
		t.Errorf("the subnets of v2alpha1 are %q", got)
	}
}

func TestFieldSelectors(t *testing.T) {
	scheme := newScheme()
	kind := samplecrdv1.SchemeGroupVersion.WithKind("Network")
	for _, label := range []string{"metadata.name", "metadata.namespace", "spec.cidr", "status.networkID"} {
		gotLabel, gotValue, err := scheme.ConvertFieldLabel(kind, label, "value")
		if err != nil || gotLabel != label || gotValue != "value" {
			t.Errorf("ConvertFieldLabel(%q) = %q, %q, %v", label, gotLabel, gotValue, err)
		}
	}
	if _, _, err := scheme.ConvertFieldLabel(kind, "spec.gateway", "value"); err == nil {
		t.Error("the field selector spec.gateway is accepted")
	}
}
