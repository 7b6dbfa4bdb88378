package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// TestWhatCannotBeRead stores what validation would have refused.
func TestWhatCannotBeRead(t *testing.T) {
	tests := map[string]struct {
		tweak func(*samplecrdv1.Network)
		want  string
	}{
		"no range": {
			tweak: withCIDR(""),
			want:  `spec.cidr: "" is not an address range`,
		},
		"no range beside additional ones": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.CIDR, s.AdditionalSubnets = "", []samplecrdv1.Subnet{{CIDR: "10.1.0.0/24"}}
			}),
			want: `spec.cidr: "" is not an address range`,
		},
		"a range that is none": {
			tweak: withCIDR("10.0.0.0"),
			want:  `spec.cidr: "10.0.0.0" is not an address range`,
		},
		"an additional range that is none": {
			tweak: additional(samplecrdv1.Subnet{CIDR: "fd00::/64"}, samplecrdv1.Subnet{CIDR: "fd00::/650"}),
			want:  `spec.additionalSubnets[1].cidr: "fd00::/650" is not an address range`,
		},
		"a gateway that is no address": {
			tweak: withGateway("none"),
			want:  `spec.gateway: "none" is not an address`,
		},
		"a destination that is no range": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.5.0.0/16", NextHop: "10.0.0.5"}, {Destination: "there", NextHop: "10.0.0.6"}}
			}),
			want: `spec.hostRoutes[1].destination: "there" is not an address range`,
		},
		"a next hop that is no address": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.5.0.0/16", NextHop: "there"}}
			}),
			want: `spec.hostRoutes[0].nextHop: "there" is not an address`,
		},
		"a pool that starts nowhere": {
			tweak: withPools(samplecrdv1.AllocationPool{Start: "10.0.0.5", End: "10.0.0.6"}, samplecrdv1.AllocationPool{End: "10.0.0.9"}),
			want:  `spec.allocationPools[1].start: "" is not an address`,
		},
		"a pool that ends nowhere": {
			tweak: withPools(samplecrdv1.AllocationPool{Start: "10.0.0.5", End: "10.0.0.256"}),
			want:  `spec.allocationPools[0].end: "10.0.0.256" is not an address`,
		},
		"a name server that is a name": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) { s.DNSNameservers = []string{"192.0.2.1", "ns.example.com"} }),
			want:  `spec.dnsNameservers[1]: "ns.example.com" is not an address`,
		},
		"DHCP that is neither on nor off": {
			tweak: additional(samplecrdv1.Subnet{CIDR: "fd00::/64", DHCP: "Perhaps"}),
			want:  `spec.additionalSubnets[0].dhcp: "Perhaps" has no meaning here`,
		},
		"an IPv6 mode of another release": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) { s.IPv6 = &samplecrdv1.IPv6{RAMode: "Magic"} }),
			want:  `spec.ipv6.raMode: "Magic" has no meaning here`,
		},
		"an administrative state between": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) { s.AdminState = "Sideways" }),
			want:  `spec.adminState: "Sideways" has no meaning here`,
		},
		"a management policy of another release": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) { s.ManagementPolicy = "Import" }),
			want:  `spec.managementPolicy: "Import" has no meaning here`,
		},
		"sharing of another release": {
			tweak: withOpenStack(samplecrdv1.OpenStack{Shared: "Friends"}),
			want:  `spec.openStack.shared: "Friends" has no meaning here`,
		},
		"nothing to observe": {
			tweak: withSpec(func(s *samplecrdv1.NetworkSpec) { s.ManagementPolicy = samplecrdv1.ManagementPolicyObserve }),
			want:  "spec.openStack.networkID: is needed to observe",
		},
		"a network to take over whose ID is none": {
			tweak: takingOver("../subnets"),
			want:  `get network: "../subnets" is not an ID of Neutron`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newNetwork(tc.tweak))
			requests, _ := w.traffic(func() {
				if err := w.pass(); err == nil {
					t.Error("the pass ends well")
				}
				if diff := cmp.Diff(state{no, no, samplecrdv1.ReasonInvalidConfiguration, tc.want}, stateOf(t, w.get())); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
				w.delete()
				w.settle()
			})
			if n := w.get(); n != nil || len(requests) > 0 {
				t.Errorf("left after requests %v:\n%s", requests, conditions(n))
			}
		})
	}
}

// TestWhatOnlyNeutronCanJudge lets Neutron refuse what is not looked at here.
func TestWhatOnlyNeutronCanJudge(t *testing.T) {
	tests := map[string]func(*samplecrdv1.NetworkSpec){
		"the whole address space": func(s *samplecrdv1.NetworkSpec) { s.CIDR = "0.0.0.0/0" },
		"the wrong family":        func(s *samplecrdv1.NetworkSpec) { s.DNSNameservers = []string{"2001:db8::53"} },
		"the last address":        func(s *samplecrdv1.NetworkSpec) { s.CIDR = "255.255.255.255/32" },
	}
	for name, tweak := range tests {
		t.Run(name, func(t *testing.T) {
			for when, w := range map[string]*world{"from the start": newWorld(t), "later": newWorld(t)} {
				if when == "later" {
					made()(w)
					w.edit(withSpec(tweak))
				} else {
					w.create(newNetwork(withSpec(tweak)))
				}
				if err := w.pass(); neutron.ClassOf(err) != neutron.Invalid {
					t.Errorf("%s: error of the pass is %v, want that Neutron refuses", when, err)
				}
				if s := stateOf(t, w.get()); s.Reason != samplecrdv1.ReasonInvalidConfiguration || s.Progressing != no {
					t.Errorf("%s: conditions are %+v, want InvalidConfiguration", when, s)
				}
				w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.Subnet = samplecrdv1.Subnet{CIDR: "10.0.0.0/24"} }))
				w.settle()
			}
		})
	}
}
