package network

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// layouts are the ways to cut a part of the address space; %d is the part.
// Those of one part overlap each other.
var layouts = [][]string{
	{"10.%d.0.0/16"}, {"10.%d.0.0/24"}, {"10.%d.0.0/25", "10.%d.0.128/25"}, {"10.%d.128.0/17"},
	{"fd00:%d::/48"}, {"fd00:%d::/64"}, {"fd00:%d::/65", "fd00:%d:0:0:8000::/65"}, {"fd00:%d:0:1::/64"},
}

// nthAddress returns the nth address of the range.
func nthAddress(cidr string, n int) string {
	a := netip.MustParsePrefix(cidr).Addr()
	for range n {
		a = a.Next()
	}
	return a.String()
}

// maybe draws one of the choices.
func maybe[T any](t *rapid.T, name string, choices ...T) T {
	return choices[rapid.IntRange(0, len(choices)-1).Draw(t, name)]
}

// drawSubnet returns a valid subnet. Gateways and pools keep clear of each other.
func drawSubnet(t *rapid.T, cidr string) samplecrdv1.Subnet {
	s := samplecrdv1.Subnet{CIDR: cidr, DHCP: maybe(t, "dhcp", samplecrdv1.Enabled, samplecrdv1.Disabled)}
	outside, hop, route := "192.0.2.1", nthAddress(cidr, 70), "198.51.100.0/24"
	if netip.MustParsePrefix(cidr).Addr().Is6() {
		outside, route = "2001:db8::1", "2001:db8:5::/48"
	}
	s.Gateway = maybe(t, "gateway", "", samplecrdv1.GatewayNone, nthAddress(cidr, 1), nthAddress(cidr, 60), outside)
	pools := []samplecrdv1.AllocationPool{
		{Start: nthAddress(cidr, 20), End: nthAddress(cidr, 30)}, {Start: nthAddress(cidr, 31), End: nthAddress(cidr, 40)}, {Start: nthAddress(cidr, 50), End: nthAddress(cidr, 55)},
	}
	s.AllocationPools = maybe(t, "pools", nil, pools[:1], pools[1:], pools)
	servers := []string{nthAddress(cidr, 7), outside}
	s.DNSNameservers = maybe(t, "servers", nil, servers, []string{outside, nthAddress(cidr, 7)}, servers[:1])
	routes := []samplecrdv1.HostRoute{{Destination: route, NextHop: hop}, {Destination: route, NextHop: nthAddress(cidr, 71)}}
	s.HostRoutes = maybe(t, "routes", nil, routes, routes[1:])
	if cidr[len(cidr)-6:] == ":1::/64" { // a mode can't change, so the range decides
		s.DHCP = samplecrdv1.Enabled
		s.IPv6 = &samplecrdv1.IPv6{AddressMode: samplecrdv1.IPv6SLAAC, RAMode: samplecrdv1.IPv6SLAAC}
	}
	return s
}

// drawSpec returns a valid spec: what validation accepts, and a member may ask.
func drawSpec(t *rapid.T) func(*samplecrdv1.Network) {
	var subnets []samplecrdv1.Subnet
	for _, part := range rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 1, 2, rapid.ID[int]).Draw(t, "parts") {
		for _, layout := range maybe(t, "layout", layouts...) {
			subnets = append(subnets, drawSubnet(t, fmt.Sprintf(layout, part)))
		}
	}
	spec := samplecrdv1.NetworkSpec{
		Subnet: subnets[0], AdditionalSubnets: subnets[1:],
		MTU:        maybe(t, "mtu", nil, new(int32(1300)), new(int32(1400))),
		AdminState: maybe(t, "adminState", samplecrdv1.AdminStateUp, samplecrdv1.AdminStateDown),
		OpenStack:  &samplecrdv1.OpenStack{PortSecurity: maybe(t, "portSecurity", "", samplecrdv1.Enabled, samplecrdv1.Disabled)},
	}
	return withSpec(func(s *samplecrdv1.NetworkSpec) { *s = spec })
}

// strangers are networks and subnets that are not ours.
type strangers struct {
	networks map[string]neutron.Network
	subnets  map[string]neutron.Subnet
}

func drawDescription(t *rapid.T) string {
	return maybe(t, "description", "", "not ours", otherMarker, "of old ["+otherMarker+"]", "of old ["+testMarker+"]", testMarker+" ")
}

// meet makes strangers beside the network, and in it.
func meet(t *rapid.T, w *world) strangers {
	ours := w.network().ID
	for range rapid.IntRange(0, 2).Draw(t, "foreign networks") {
		w.foreignSubnet(w.foreignNetwork(drawDescription(t)).ID, "10.0.0.0/24", drawDescription(t))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "foreign subnets") {
		w.foreignSubnet(ours, fmt.Sprintf("172.16.%d.0/24", i), drawDescription(t))
	}
	return look(w, ours)
}

func look(w *world, ours string) strangers {
	seen := strangers{map[string]neutron.Network{}, map[string]neutron.Subnet{}}
	for _, n := range w.networks() {
		if n.ID != ours {
			seen.networks[n.ID] = n
		}
		for _, s := range w.subnets(n.ID) {
			if s.Description != testMarker {
				seen.subnets[s.ID] = s
			}
		}
	}
	return seen
}

// disturb has someone change what is ours.
func disturb(t *rapid.T, w *world, networkID string) {
	for _, s := range w.subnets(networkID) {
		if s.Description != testMarker {
			continue
		}
		var change neutron.SubnetAttributes
		switch maybe(t, "disturbance", "none", "name", "lists", "pools", "deleted") {
		case "none":
			continue
		case "name":
			change.Name = new("renamed")
		case "lists":
			change.DNSNameservers, change.HostRoutes = &[]string{}, &[]neutron.HostRoute{}
		case "pools":
			change.AllocationPools = &[]neutron.AllocationPool{}
		case "deleted":
			if err := w.admin.DeleteSubnet(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := w.admin.UpdateSubnet(t.Context(), s.ID, s.Revision, change); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEachPlanComesToItsEnd leads a Network from any spec to any other and
// back, among strangers and disturbances. One pass must be enough, with no more
// calls than there are things to change; the next must find nothing to do.
func TestEachPlanComesToItsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		first, second := drawSpec(t), drawSpec(t)
		w.create(newNetwork(first))
		converge(t, w, 0)
		id := w.network().ID
		want := meet(t, w)
		for _, spec := range []func(*samplecrdv1.Network){second, first} {
			disturb(t, w, id)
			w.edit(spec)
			before := len(w.subnets(id))
			converge(t, w, before)
			if diff := cmp.Diff(want, look(w, id), cmp.AllowUnexported(strangers{})); diff != "" {
				t.Fatalf("what is not ours changed (-want +got):\n%s", diff)
			}
		}
	})
}

func converge(t *rapid.T, w *world, before int) {
	requests, _ := w.traffic(func() {
		if err := w.pass(); err != nil {
			t.Fatalf("pass over %+v: %v", w.get().Spec, err)
		}
	})
	wanted := 1 + len(w.get().Spec.AdditionalSubnets)
	if got := len(writesIn(requests)); got > 1+before+wanted {
		t.Fatalf("%d changes where %d subnets were and %d are wanted: %v", got, before, wanted, requests)
	}
	requests, writes := w.traffic(func() {
		if err := w.pass(); err != nil {
			t.Fatalf("second pass over %+v: %v", w.get().Spec, err)
		}
	})
	if changes := writesIn(requests); len(changes)+len(writes) > 0 {
		t.Fatalf("the second pass changes %v and writes %v", changes, writes)
	}
}

// TestTakingOverLosesNothing takes over any network and lets it go again.
func TestTakingOverLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.create(newNetwork(drawSpec(t)))
		w.settle()
		network := w.network()
		w.describe(network, maybe(t, "text", "", " ", "of old", "[of old]", "ü [x] "))
		var cidrs []string
		for _, s := range w.subnets(network.ID) {
			cidrs = append(cidrs, s.CIDR)
			if _, err := w.admin.UpdateSubnet(t.Context(), s.ID, s.Revision, neutron.SubnetAttributes{
				Description: new(maybe(t, "text", "", "also of old", otherMarker)), Name: new("old"),
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.clients.Tracker().Delete(networksResource, testName.Namespace, testName.Name); err != nil {
			t.Fatal(err)
		}
		before := timeless(w, network.ID)

		free := slices.DeleteFunc(w.subnets(network.ID), func(s neutron.Subnet) bool { return s.Description == otherMarker })
		declared := withSpec(func(s *samplecrdv1.NetworkSpec) {
			for i, f := range free {
				if i == 0 {
					s.CIDR = f.CIDR
				} else if rapid.Bool().Draw(t, "declared") {
					s.AdditionalSubnets = append(s.AdditionalSubnets, samplecrdv1.Subnet{CIDR: f.CIDR})
				}
			}
		})
		w.create(newNetwork(takingOver(network.ID), declared))
		converge(t, w, len(cidrs))
		w.delete()
		w.settle()
		if diff := cmp.Diff(before, timeless(w, network.ID)); diff != "" {
			t.Fatalf("network and subnets after the release (-want +got):\n%s", diff)
		}
	})
}

// timeless is the network and its subnets without what counts changes.
func timeless(w *world, networkID string) []any {
	n := w.network()
	n.Revision = 0
	all := []any{n}
	for _, s := range w.subnets(networkID) {
		s.Revision = 0
		all = append(all, s)
	}
	return all
}
