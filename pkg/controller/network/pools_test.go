package network

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// drawRange returns any range that Neutron takes with that DHCP.
func drawRange(t *rapid.T, dhcp bool) netip.Prefix {
	spare := 0
	if dhcp {
		spare = 2
	}
	if rapid.Bool().Draw(t, "IPv4") {
		bytes := [4]byte{byte(rapid.IntRange(1, 223).Filter(func(b int) bool { return b != 127 }).Draw(t, "byte"))}
		for i := 1; i < 4; i++ {
			bytes[i] = rapid.Byte().Draw(t, "byte")
		}
		return netip.PrefixFrom(netip.AddrFrom4(bytes), rapid.IntRange(8, 32-spare).Draw(t, "bits"))
	}
	bytes := [16]byte{0x20, 0x01}
	for i := 2; i < 16; i++ {
		bytes[i] = rapid.Byte().Draw(t, "byte")
	}
	return netip.PrefixFrom(netip.AddrFrom16(bytes), rapid.IntRange(48, 128-spare).Draw(t, "bits"))
}

// TestWhatNeutronChoosesIsNoDifference makes any subnet with what a user may
// leave out left out.
func TestWhatNeutronChoosesIsNoDifference(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		dhcp := rapid.Bool().Draw(t, "dhcp")
		cidr := drawRange(t, dhcp)
		subnet := samplecrdv1.Subnet{CIDR: cidr.String(), DHCP: samplecrdv1.Disabled}
		if dhcp {
			subnet.DHCP = samplecrdv1.Enabled
		}
		gateways := []string{samplecrdv1.GatewayNone, ""}
		if masked, last := cidr.Masked().Addr(), lastAddress(cidr.Masked()); cidr.Addr().Is6() {
			gateways = append(gateways, masked.String(), last.String(), cidr.Addr().String(), "2001:db8::1")
		} else if cidr.Bits() > 30 {
			gateways = gateways[:1]
		} else {
			gateways = append(gateways, masked.Next().String(), last.Prev().String(), "192.0.2.1")
			if cidr.Addr() != masked && cidr.Addr() != last {
				gateways = append(gateways, cidr.Addr().String())
			}
		}
		subnet.Gateway = maybe(t, "gateway", gateways...)
		want, err := newDesired(newNetwork(withSpec(func(s *samplecrdv1.NetworkSpec) { s.Subnet = subnet })), testMarker)
		if err != nil {
			t.Fatal(err)
		}

		p := &pass{Controller: w.controller, client: w.admin, want: want}
		for _, wantVerb := range []verb{createNetwork, createSubnet} {
			operations := plan(p.want, p.have)
			if len(operations) == 0 || operations[0].verb != wantVerb {
				t.Fatalf("plan is %v, want to %s", operations, wantVerb)
			}
			if err := p.do(w.context(), operations[0]); err != nil {
				t.Fatal(err)
			}
		}
		if operations := plan(p.want, p.have); len(operations) > 0 {
			t.Errorf("plan after the creation of %+v is %+v, want none:\n%+v", subnet, operations, p.have.subnets)
		}
		if err := w.admin.DeleteNetwork(t.Context(), p.have.network.ID); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPoolsOfARange has the sums done by hand for small ranges.
func TestPoolsOfARange(t *testing.T) {
	tests := map[string]struct {
		cidr, gateway string
		want          []neutron.AllocationPool
	}{
		"IPv4 with the first as gateway":   {"10.0.0.0/29", "10.0.0.1", []neutron.AllocationPool{{Start: "10.0.0.2", End: "10.0.0.6"}}},
		"IPv4 with one in the middle":      {"10.0.0.0/29", "10.0.0.3", []neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.2"}, {Start: "10.0.0.4", End: "10.0.0.6"}}},
		"IPv4 with the last as gateway":    {"10.0.0.0/29", "10.0.0.6", []neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.5"}}},
		"IPv4 without gateway":             {"10.0.0.0/29", "", []neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.6"}}},
		"IPv4 with a gateway outside":      {"10.0.0.0/29", "10.0.1.1", []neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.6"}}},
		"IPv4 with room for two":           {"10.0.0.0/30", "10.0.0.1", []neutron.AllocationPool{{Start: "10.0.0.2", End: "10.0.0.2"}}},
		"IPv4 of a link (RFC 3021)":        {"10.0.0.0/31", "", []neutron.AllocationPool{{Start: "10.0.0.0", End: "10.0.0.1"}}},
		"IPv4 of one":                      {"10.0.0.7/32", "", []neutron.AllocationPool{{Start: "10.0.0.7", End: "10.0.0.7"}}},
		"IPv6 has no broadcast address":    {"fd00::/125", "fd00::1", []neutron.AllocationPool{{Start: "fd00::2", End: "fd00::7"}}},
		"IPv6 with the network's address":  {"fd00::/125", "fd00::", []neutron.AllocationPool{{Start: "fd00::1", End: "fd00::7"}}},
		"IPv6 of a link with nothing left": {"fd00::/127", "fd00::1", []neutron.AllocationPool{}},
		"IPv6 of one":                      {"fd00::7/128", "fd00::7", []neutron.AllocationPool{{Start: "fd00::7", End: "fd00::7"}}},
		"all of IPv4":                      {"0.0.0.0/0", "", []neutron.AllocationPool{{Start: "0.0.0.1", End: "255.255.255.254"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, wholeRange(netip.MustParsePrefix(tc.cidr), tc.gateway)); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
		})
	}
}
