package network

import (
	"testing"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

func TestPlanOfASubnet(t *testing.T) {
	newHave := func(tweak func(*neutron.Subnet)) actual { return newActual(withFirst(tweak)) }
	checkPlans(t, map[string]planCase{
		"host bits mean nothing": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("10.0.0.77/24")},
			have:   newActual(),
		},
		"the gateway moves and takes the pools along": {
			tweaks: []func(*samplecrdv1.Network){withGateway("10.0.0.9")},
			have:   newActual(),
			want: []operation{changeFirst(neutron.SubnetAttributes{
				Gateway:         new("10.0.0.9"),
				AllocationPools: &[]neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.8"}, {Start: "10.0.0.10", End: "10.0.0.254"}},
			})},
		},
		"the gateway goes and its address may be handed out": {
			tweaks: []func(*samplecrdv1.Network){withGateway(samplecrdv1.GatewayNone)},
			have:   newActual(),
			want: []operation{changeFirst(neutron.SubnetAttributes{
				Gateway: new(""), AllocationPools: &[]neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.254"}},
			})},
		},
		"the gateway moves out of the range and leaves all of it": {
			tweaks: []func(*samplecrdv1.Network){withGateway("192.0.2.1")},
			have:   newActual(),
			want: []operation{changeFirst(neutron.SubnetAttributes{
				Gateway: new("192.0.2.1"), AllocationPools: &[]neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.254"}},
			})},
		},
		"an absent gateway after an explicit one is what Neutron would choose": {
			have: newHave(func(s *neutron.Subnet) {
				s.Gateway, s.AllocationPools = "10.0.0.254", []neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.253"}}
			}),
			want: []operation{changeFirst(neutron.SubnetAttributes{
				Gateway: new("10.0.0.1"), AllocationPools: &[]neutron.AllocationPool{{Start: "10.0.0.2", End: "10.0.0.254"}},
			})},
		},
		"a gateway moves within explicit pools alone": {
			tweaks: []func(*samplecrdv1.Network){withGateway("10.0.0.2"), withPools(samplecrdv1.AllocationPool{Start: "10.0.0.100", End: "10.0.0.200"})},
			have: newHave(func(s *neutron.Subnet) {
				s.AllocationPools = []neutron.AllocationPool{{Start: "10.0.0.100", End: "10.0.0.200"}}
			}),
			want: []operation{changeFirst(neutron.SubnetAttributes{Gateway: new("10.0.0.2")})},
		},
		"pools in another order and cut otherwise are the same": {
			tweaks: []func(*samplecrdv1.Network){withPools(
				samplecrdv1.AllocationPool{Start: "10.0.0.10", End: "10.0.0.19"}, samplecrdv1.AllocationPool{Start: "10.0.0.20", End: "10.0.0.30"})},
			have: newHave(func(s *neutron.Subnet) {
				s.AllocationPools = []neutron.AllocationPool{{Start: "10.0.0.16", End: "10.0.0.30"}, {Start: "10.0.0.10", End: "10.0.0.15"}}
			}),
		},
		"pools with a hole are others": {
			tweaks: []func(*samplecrdv1.Network){withPools(samplecrdv1.AllocationPool{Start: "10.0.0.10", End: "10.0.0.30"})},
			have: newHave(func(s *neutron.Subnet) {
				s.AllocationPools = []neutron.AllocationPool{{Start: "10.0.0.10", End: "10.0.0.15"}, {Start: "10.0.0.17", End: "10.0.0.30"}}
			}),
			want: []operation{changeFirst(neutron.SubnetAttributes{AllocationPools: &[]neutron.AllocationPool{{Start: "10.0.0.10", End: "10.0.0.30"}}})},
		},
		"absent pools after explicit ones are the whole range": {
			have: newHave(func(s *neutron.Subnet) {
				s.AllocationPools = []neutron.AllocationPool{{Start: "10.0.0.10", End: "10.0.0.15"}}
			}),
			want: []operation{changeFirst(neutron.SubnetAttributes{AllocationPools: &[]neutron.AllocationPool{{Start: "10.0.0.2", End: "10.0.0.254"}}})},
		},
		"routes in another order and with host bits are the same": {
			tweaks: []func(*samplecrdv1.Network){withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.5.0.0/16", NextHop: "10.0.0.5"}, {Destination: "10.6.7.8/16", NextHop: "10.0.0.6"}}
			})},
			have: newHave(func(s *neutron.Subnet) {
				s.HostRoutes = []neutron.HostRoute{{Destination: "10.6.1.0/16", NextHop: "10.0.0.6"}, {Destination: "10.5.0.0/16", NextHop: "10.0.0.5"}}
			}),
		},
		"a route by another hop is another": {
			tweaks: []func(*samplecrdv1.Network){withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.5.0.0/16", NextHop: "10.0.0.5"}}
			})},
			have: newHave(func(s *neutron.Subnet) {
				s.HostRoutes = []neutron.HostRoute{{Destination: "10.5.0.0/16", NextHop: "10.0.0.6"}}
			}),
			want: []operation{changeFirst(neutron.SubnetAttributes{HostRoutes: &[]neutron.HostRoute{{Destination: "10.5.0.0/16", NextHop: "10.0.0.5"}}})},
		},
		"the order of name servers matters": {
			tweaks: []func(*samplecrdv1.Network){withSpec(func(s *samplecrdv1.NetworkSpec) { s.DNSNameservers = []string{"192.0.2.1", "192.0.2.2"} })},
			have:   newHave(func(s *neutron.Subnet) { s.DNSNameservers = []string{"192.0.2.2", "192.0.2.1"} }),
			want:   []operation{changeFirst(neutron.SubnetAttributes{DNSNameservers: &[]string{"192.0.2.1", "192.0.2.2"}})},
		},
		"name servers and routes that nobody declares go": {
			have: newHave(func(s *neutron.Subnet) {
				s.DNSNameservers, s.HostRoutes = []string{"192.0.2.2"}, []neutron.HostRoute{{Destination: "10.6.0.0/16", NextHop: "10.0.0.6"}}
			}),
			want: []operation{changeFirst(neutron.SubnetAttributes{DNSNameservers: &[]string{}, HostRoutes: &[]neutron.HostRoute{}})},
		},
		"DHCP and the name are put right": {
			have: newHave(func(s *neutron.Subnet) { s.EnableDHCP, s.Name = false, "renamed" }),
			want: []operation{changeFirst(neutron.SubnetAttributes{EnableDHCP: new(true), Name: new("example")})},
		},
		"an IPv6 subnet may have its first address as gateway": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("fd00::/64")},
			have: newHave(func(s *neutron.Subnet) {
				*s = newSubnet("first", "fd00::/64", "fd00::1", "fd00::2", "fd00::ffff:ffff:ffff:ffff")
			}),
		},
		"an IPv6 subnet may have its network address as gateway": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("fd00::/64")},
			have: newHave(func(s *neutron.Subnet) {
				*s = newSubnet("first", "fd00::/64", "fd00::", "fd00::1", "fd00::ffff:ffff:ffff:ffff")
			}),
		},
		"an IPv6 address is written as RFC 5952 says": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("fd00:0::/64"), withGateway("fd00:0::a"), withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.DNSNameservers = []string{"2001:DB8:0::53"}
			})},
			have: newHave(func(s *neutron.Subnet) {
				*s = newSubnet("first", "fd00::/64", "fd00::a", "fd00::b", "fd00::ffff:ffff:ffff:ffff")
				s.AllocationPools = append(s.AllocationPools, neutron.AllocationPool{Start: "fd00::1", End: "fd00::9"})
				s.DNSNameservers = []string{"2001:db8::53"}
			}),
		},
	})
}

func TestPlanOfSubnetsThatComeAndGo(t *testing.T) {
	post := func(cidr string) operation {
		return operation{verb: createSubnet, id: "net", cidr: cidr, subnet: neutron.SubnetAttributes{
			Name: new("example"), Description: new(testMarker), CIDR: cidr, EnableDHCP: new(true),
			DNSNameservers: &[]string{}, HostRoutes: &[]neutron.HostRoute{},
		}}
	}
	removed := func(id, cidr string) operation { return operation{verb: deleteSubnet, id: id, cidr: cidr} }
	second := newSubnet("second", "10.1.0.0/24", "10.1.0.1", "10.1.0.2", "10.1.0.254")
	third := newSubnet("third", "10.0.1.0/24", "10.0.1.1", "10.0.1.2", "10.0.1.254")
	checkPlans(t, map[string]planCase{
		"one is missing": {
			tweaks: []func(*samplecrdv1.Network){additional(samplecrdv1.Subnet{CIDR: "fd00::/64"})},
			have:   newActual(),
			want:   []operation{post("fd00::/64")},
		},
		"its modes are in the POST": {
			tweaks: []func(*samplecrdv1.Network){
				withCIDR("fd00::/64"), withGateway("fd00::1"), withPools(samplecrdv1.AllocationPool{Start: "fd00::10", End: "fd00::20"}),
				withSpec(func(s *samplecrdv1.NetworkSpec) {
					s.IPv6 = &samplecrdv1.IPv6{AddressMode: samplecrdv1.IPv6DHCPv6Stateless, RAMode: samplecrdv1.IPv6DHCPv6Stateless}
				}),
			},
			have: newActual(func(a *actual) { a.subnets = nil }),
			want: []operation{{verb: createSubnet, id: "net", cidr: "fd00::/64", subnet: neutron.SubnetAttributes{
				Name: new("example"), Description: new(testMarker), CIDR: "fd00::/64", EnableDHCP: new(true), Gateway: new("fd00::1"),
				AllocationPools: &[]neutron.AllocationPool{{Start: "fd00::10", End: "fd00::20"}},
				DNSNameservers:  &[]string{}, HostRoutes: &[]neutron.HostRoute{},
				IPv6AddressMode: "dhcpv6-stateless", IPv6RAMode: "dhcpv6-stateless",
			}}},
		},
		"one is no longer declared": {
			have: newActual(withSubnet(second)),
			want: []operation{removed("second", "10.1.0.0/24")},
		},
		"a range that changes is made before the old one goes": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("10.9.0.0/24")},
			have:   newActual(),
			want:   []operation{post("10.9.0.0/24"), removed("first", "10.0.0.0/24")},
		},
		"a range that grows needs the place of the old one": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("10.0.0.0/16")},
			have:   newActual(),
			want:   []operation{removed("first", "10.0.0.0/24"), post("10.0.0.0/16")},
		},
		"changes first, then what has room, then what needs a place, then the rest": {
			tweaks: []func(*samplecrdv1.Network){
				withCIDR("10.0.0.0/16"),
				additional(samplecrdv1.Subnet{CIDR: "10.1.0.0/24", Gateway: "10.1.0.254"}, samplecrdv1.Subnet{CIDR: "10.9.0.0/24"}),
			},
			have: newActual(
				withNetwork(func(n *neutron.Network) { n.AdminStateUp = false }),
				withSubnet(second), withSubnet(third), withSubnet(newSubnet("fourth", "10.4.0.0/24", "10.4.0.1", "10.4.0.2", "10.4.0.254")),
			),
			want: []operation{
				changeNetwork(neutron.NetworkAttributes{AdminStateUp: new(true)}),
				{verb: updateSubnet, id: "second", cidr: "10.1.0.0/24", revision: 1, subnet: neutron.SubnetAttributes{
					Gateway: new("10.1.0.254"), AllocationPools: &[]neutron.AllocationPool{{Start: "10.1.0.1", End: "10.1.0.253"}},
				}},
				post("10.9.0.0/24"),
				removed("first", "10.0.0.0/24"),
				removed("third", "10.0.1.0/24"),
				post("10.0.0.0/16"),
				removed("fourth", "10.4.0.0/24"),
			},
		},
		"a range that splits needs the place of the old one only once": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("10.0.0.0/25"), additional(samplecrdv1.Subnet{CIDR: "10.0.0.128/25"})},
			have:   newActual(),
			want:   []operation{removed("first", "10.0.0.0/24"), post("10.0.0.0/25"), post("10.0.0.128/25")},
		},
		"what others made stays": {
			have: newActual(withSubnet(foreign(second)), withSubnet(foreign(third))),
		},
		"what others made stays in the way too": {
			tweaks: []func(*samplecrdv1.Network){withCIDR("10.0.0.0/16")},
			have:   newActual(withFirst(func(s *neutron.Subnet) { *s = foreign(*s) })),
			want:   []operation{post("10.0.0.0/16")},
		},
		"a description that only holds the marker was written by someone else": {
			have: newActual(withSubnet(neutron.Subnet{ID: "second", CIDR: "10.1.0.0/24", Description: "mine [" + testMarker + "]"})),
		},
	})
}
