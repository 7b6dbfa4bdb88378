package network

import (
	"net/netip"
	"slices"

	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// networkChanges returns the attributes of a PUT: only those that differ.
func networkChanges(want desired, have neutron.Network) (changes neutron.NetworkAttributes, changed bool) {
	w := want.network
	changes = neutron.NetworkAttributes{
		Name:         differs(w.Name, have.Name, &changed),
		AdminStateUp: differs(w.AdminStateUp, have.AdminStateUp, &changed),
		Shared:       differs(w.Shared, have.Shared, &changed),
		External:     differs(w.External, have.External, &changed),
		MTU:          differs(w.MTU, have.MTU, &changed),
	}
	if have.PortSecurity != nil {
		changes.PortSecurity = differs(w.PortSecurity, *have.PortSecurity, &changed)
	}
	changes.Description = markChange(want, have.Description, &changed)
	return changes, changed
}

// subnetChanges returns the attributes of a PUT: only those that differ in
// canonical form. In a network of our making an absent gateway and absent
// pools stand for what Neutron chooses at creation; Neutron does not move the
// pools with the gateway, so both go in one PUT, also in a network taken over
// where the pools are what they would be by themselves.
func subnetChanges(want desired, w desiredSubnet, have neutron.Subnet) (changes neutron.SubnetAttributes, changed bool) {
	a := w.attributes
	changes = neutron.SubnetAttributes{
		EnableDHCP:  differs(a.EnableDHCP, have.EnableDHCP, &changed),
		Description: markChange(want, have.Description, &changed),
	}
	if !want.takenOver {
		changes.Name = differs(a.Name, have.Name, &changed)
	}
	gateway := have.Gateway
	if a.Gateway != nil {
		gateway = *a.Gateway
	} else if !want.takenOver && !slices.Contains(defaultGateways(w.cidr), have.Gateway) {
		gateway = defaultGateways(w.cidr)[0]
	}
	if gateway != have.Gateway {
		changes.Gateway, changed = &gateway, true
	}
	pools := a.AllocationPools
	follow := gateway != have.Gateway && samePools(wholeRange(w.cidr, have.Gateway), have.AllocationPools)
	if pools == nil && (!want.takenOver || follow) {
		whole := wholeRange(w.cidr, gateway)
		pools = &whole
	}
	if pools != nil && !samePools(*pools, have.AllocationPools) {
		changes.AllocationPools, changed = pools, true
	}
	if a.DNSNameservers != nil && !sameAddresses(*a.DNSNameservers, have.DNSNameservers) {
		changes.DNSNameservers, changed = a.DNSNameservers, true
	}
	if a.HostRoutes != nil && !sameRoutes(*a.HostRoutes, have.HostRoutes) {
		changes.HostRoutes, changed = a.HostRoutes, true
	}
	return changes, changed
}

// markChange marks what is taken over; what we made has its marker from the
// POST, and has lost it only if ownership was denied before planning.
func markChange(want desired, description string, changed *bool) *string {
	if !want.takenOver || marked(description, want.marker) {
		return nil
	}
	*changed = true
	text := mark(description, want.marker, want.from)
	return &text
}

func differs[T comparable](want *T, have T, changed *bool) *T {
	if want == nil || *want == have {
		return nil
	}
	*changed = true
	return want
}

// sameAddresses compares in order, but not the text, which Neutron keeps as it
// was given.
func sameAddresses(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return canonicalAddress(x) == canonicalAddress(y) })
}

// sameRoutes compares without order, which Neutron does not keep.
func sameRoutes(a, b []neutron.HostRoute) bool {
	canonical := func(routes []neutron.HostRoute) []neutron.HostRoute {
		out := make([]neutron.HostRoute, len(routes))
		for i, r := range routes {
			if p, err := netip.ParsePrefix(r.Destination); err == nil {
				r.Destination = p.Masked().String()
			}
			out[i] = neutron.HostRoute{Destination: r.Destination, NextHop: canonicalAddress(r.NextHop)}
		}
		slices.SortFunc(out, func(x, y neutron.HostRoute) int {
			return slices.Compare([]string{x.Destination, x.NextHop}, []string{y.Destination, y.NextHop})
		})
		return out
	}
	return slices.Equal(canonical(a), canonical(b))
}

// canonicalAddress writes an address as RFC 5952 says, and anything else as it is.
func canonicalAddress(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String()
	}
	return text
}
