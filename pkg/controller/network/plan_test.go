package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// newActual returns what Neutron has for newNetwork.
func newActual(tweaks ...func(*actual)) actual {
	a := actual{
		network: &neutron.Network{
			ID: "net", Name: testName.Name, Description: testMarker, Status: "ACTIVE",
			AdminStateUp: true, MTU: 1450, PortSecurity: new(true), Revision: 2,
		},
		subnets: []neutron.Subnet{newSubnet("first", "10.0.0.0/24", "10.0.0.1", "10.0.0.2", "10.0.0.254")},
	}
	for _, tweak := range tweaks {
		tweak(&a)
	}
	return a
}

// newSubnet returns a subnet that we made.
func newSubnet(id, cidr, gateway, start, end string) neutron.Subnet {
	return neutron.Subnet{
		ID: id, NetworkID: "net", Name: testName.Name, Description: testMarker, CIDR: cidr, Gateway: gateway,
		EnableDHCP: true, AllocationPools: []neutron.AllocationPool{{Start: start, End: end}}, Revision: 1,
	}
}

func withNetwork(tweak func(*neutron.Network)) func(*actual) {
	return func(a *actual) { tweak(a.network) }
}

func withFirst(tweak func(*neutron.Subnet)) func(*actual) {
	return func(a *actual) { tweak(&a.subnets[0]) }
}

func withSubnet(s neutron.Subnet) func(*actual) {
	return func(a *actual) { a.subnets = append(a.subnets, s) }
}

func foreign(s neutron.Subnet) neutron.Subnet {
	s.Name, s.Description = "foreign", "not ours"
	return s
}

func changeNetwork(a neutron.NetworkAttributes) operation {
	return operation{verb: updateNetwork, id: "net", revision: 2, network: a}
}

func changeFirst(a neutron.SubnetAttributes) operation {
	return operation{verb: updateSubnet, id: "first", cidr: "10.0.0.0/24", revision: 1, subnet: a}
}

func additional(subnets ...samplecrdv1.Subnet) func(*samplecrdv1.Network) {
	return withSpec(func(s *samplecrdv1.NetworkSpec) { s.AdditionalSubnets = append(s.AdditionalSubnets, subnets...) })
}

func withCIDR(cidr string) func(*samplecrdv1.Network) {
	return withSpec(func(s *samplecrdv1.NetworkSpec) { s.CIDR = cidr })
}

func withGateway(gateway string) func(*samplecrdv1.Network) {
	return withSpec(func(s *samplecrdv1.NetworkSpec) { s.Gateway = gateway })
}

func withOpenStack(o samplecrdv1.OpenStack) func(*samplecrdv1.Network) {
	return withSpec(func(s *samplecrdv1.NetworkSpec) { s.OpenStack = &o })
}

func withPools(pools ...samplecrdv1.AllocationPool) func(*samplecrdv1.Network) {
	return withSpec(func(s *samplecrdv1.NetworkSpec) { s.AllocationPools = pools })
}

type planCase struct {
	tweaks []func(*samplecrdv1.Network)
	have   actual
	want   []operation
}

func checkPlans(t *testing.T, tests map[string]planCase) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want, err := newDesired(newNetwork(tc.tweaks...), testMarker)
			if err != nil {
				t.Fatal(err)
			}
			got := plan(want, tc.have)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(operation{})); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanOfANetwork(t *testing.T) {
	checkPlans(t, map[string]planCase{
		"nothing is there": {
			want: []operation{{verb: createNetwork, network: neutron.NetworkAttributes{
				Name: new("example"), Description: new(testMarker), AdminStateUp: new(true),
			}}},
		},
		"all that can be asked for is in the POST": {
			tweaks: []func(*samplecrdv1.Network){
				withOpenStack(samplecrdv1.OpenStack{
					External: samplecrdv1.Enabled, Shared: samplecrdv1.Disabled, PortSecurity: samplecrdv1.Disabled,
					Provider: &samplecrdv1.Provider{NetworkType: "vlan", PhysicalNetwork: "physnet1", SegmentationID: new(int32(7))},
				}),
				withSpec(func(s *samplecrdv1.NetworkSpec) { s.MTU, s.AdminState = new(int32(1400)), samplecrdv1.AdminStateDown }),
			},
			want: []operation{{verb: createNetwork, network: neutron.NetworkAttributes{
				Name: new("example"), Description: new(testMarker), AdminStateUp: new(false), MTU: new(1400),
				External: new(true), Shared: new(false), PortSecurity: new(false),
				Provider: &neutron.Provider{NetworkType: "vlan", PhysicalNetwork: "physnet1", SegmentationID: 7},
			}}},
		},
		"all is as declared": {have: newActual()},
		"only what differs is sent": {
			tweaks: []func(*samplecrdv1.Network){withSpec(func(s *samplecrdv1.NetworkSpec) { s.MTU = new(int32(1400)) })},
			have:   newActual(withNetwork(func(n *neutron.Network) { n.AdminStateUp = false })),
			want:   []operation{changeNetwork(neutron.NetworkAttributes{AdminStateUp: new(true), MTU: new(1400)})},
		},
		"another name is put right": {
			have: newActual(withNetwork(func(n *neutron.Network) { n.Name = "renamed" })),
			want: []operation{changeNetwork(neutron.NetworkAttributes{Name: new("example")})},
		},
		"what the spec leaves out is as Neutron has it": {
			have: newActual(withNetwork(func(n *neutron.Network) {
				n.MTU, n.Shared, n.External, n.PortSecurity = 9000, true, true, new(false)
			})),
		},
		"port security that differs is sent": {
			tweaks: []func(*samplecrdv1.Network){withOpenStack(samplecrdv1.OpenStack{PortSecurity: samplecrdv1.Disabled})},
			have:   newActual(),
			want:   []operation{changeNetwork(neutron.NetworkAttributes{PortSecurity: new(false)})},
		},
		"port security that the answer does not hold is no difference": {
			tweaks: []func(*samplecrdv1.Network){withOpenStack(samplecrdv1.OpenStack{PortSecurity: samplecrdv1.Disabled})},
			have:   newActual(withNetwork(func(n *neutron.Network) { n.PortSecurity = nil })),
		},
		"the provider can't change and is not compared": {
			tweaks: []func(*samplecrdv1.Network){withOpenStack(samplecrdv1.OpenStack{Provider: &samplecrdv1.Provider{NetworkType: "vlan"}})},
			have:   newActual(withNetwork(func(n *neutron.Network) { n.Provider = &neutron.Provider{NetworkType: "vxlan"} })),
		},
	})
}

func TestPlanOfWhatIsTakenOver(t *testing.T) {
	const markedText = "of old [" + testMarker + "]"
	ofOld := func(description string) func(*neutron.Subnet) {
		return func(s *neutron.Subnet) {
			s.Name, s.Description, s.EnableDHCP, s.DNSNameservers = "old", description, false, []string{"192.0.2.53"}
			s.Gateway, s.AllocationPools = "10.0.0.77", []neutron.AllocationPool{{Start: "10.0.0.100", End: "10.0.0.110"}}
		}
	}
	newHave := func(network, subnet string) actual {
		return newActual(
			withNetwork(func(n *neutron.Network) { n.Name, n.Description, n.AdminStateUp = "old", network, false }),
			withFirst(ofOld(subnet)),
		)
	}
	declared := withSpec(func(s *samplecrdv1.NetworkSpec) { s.CIDR = "10.0.0.0/24" })
	checkPlans(t, map[string]planCase{
		"nothing is sent but the marker": {
			tweaks: []func(*samplecrdv1.Network){takingOver("net"), declared},
			have:   newHave("of old", ""),
			want: []operation{
				changeNetwork(neutron.NetworkAttributes{Description: new(markedText)}),
				changeFirst(neutron.SubnetAttributes{Description: new(" [" + testMarker + "]")}),
			},
		},
		"nothing is sent once all is marked": {
			tweaks: []func(*samplecrdv1.Network){takingOver("net"), declared},
			have:   newHave(markedText, markedText),
		},
		"what is declared is sent, and no more": {
			tweaks: []func(*samplecrdv1.Network){takingOver("net"), declared, withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.AdminState, s.DHCP, s.Gateway, s.DNSNameservers = samplecrdv1.AdminStateUp, samplecrdv1.Enabled, "10.0.0.1", []string{"192.0.2.1"}
				s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.5.0.0/16", NextHop: "10.0.0.5"}}
			})},
			have: newHave(markedText, markedText),
			want: []operation{
				changeNetwork(neutron.NetworkAttributes{AdminStateUp: new(true)}),
				changeFirst(neutron.SubnetAttributes{
					EnableDHCP: new(true), Gateway: new("10.0.0.1"), DNSNameservers: &[]string{"192.0.2.1"},
					HostRoutes: &[]neutron.HostRoute{{Destination: "10.5.0.0/16", NextHop: "10.0.0.5"}},
				}),
			},
		},
		"what is no longer declared is let go with its own text": {
			tweaks: []func(*samplecrdv1.Network){takingOver("net")},
			have:   newHave(markedText, "also of old ["+testMarker+"]"),
			want:   []operation{changeFirst(neutron.SubnetAttributes{Description: new("also of old")})},
		},
		"what was never declared stays": {
			tweaks: []func(*samplecrdv1.Network){takingOver("net")},
			have:   newHave(markedText, "also of old"),
		},
		"what is added is made with the bare marker": {
			tweaks: []func(*samplecrdv1.Network){takingOver("net"), withSpec(func(s *samplecrdv1.NetworkSpec) { s.CIDR = "10.1.0.0/24" })},
			have:   newHave(markedText, "also of old"),
			want: []operation{{verb: createSubnet, id: "net", cidr: "10.1.0.0/24", subnet: neutron.SubnetAttributes{
				Name: new("example"), Description: new(testMarker), CIDR: "10.1.0.0/24",
			}}},
		},
		"what we made in it is deleted when it is no longer declared": {
			tweaks: []func(*samplecrdv1.Network){takingOver("net")},
			have: newActual(withNetwork(func(n *neutron.Network) { n.Description = markedText }),
				withSubnet(foreign(newSubnet("second", "10.1.0.0/24", "10.1.0.1", "10.1.0.2", "10.1.0.254")))),
			want: []operation{{verb: deleteSubnet, id: "first", cidr: "10.0.0.0/24"}},
		},
	})
}
