package network

import (
	"net/netip"
	"slices"

	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// defaultGateways are the gateways that Neutron may choose where none is asked
// for, the one to ask for first: the first address or, for IPv6, in some
// releases the network address.
func defaultGateways(cidr netip.Prefix) []string {
	network := cidr.Addr()
	if cidr.IsSingleIP() && network.Is6() {
		return []string{network.String()}
	}
	gateways := []string{network.Next().String()}
	if network.Is6() {
		gateways = append(gateways, network.String())
	}
	return gateways
}

// wholeRange returns the pools that Neutron makes where none are asked for: all
// addresses that a host may have, less the gateway.
func wholeRange(cidr netip.Prefix, gateway string) []neutron.AllocationPool {
	first, last := cidr.Addr(), lastAddress(cidr)
	switch {
	case cidr.IsSingleIP():
		return []neutron.AllocationPool{{Start: first.String(), End: last.String()}}
	case first.Is6():
		first = first.Next()
	case cidr.Bits() <= 30:
		first, last = first.Next(), last.Prev()
	}
	taken, err := netip.ParseAddr(gateway)
	if err != nil || taken.Less(first) || last.Less(taken) {
		return []neutron.AllocationPool{{Start: first.String(), End: last.String()}}
	}
	pools := []neutron.AllocationPool{}
	if first.Less(taken) {
		pools = append(pools, neutron.AllocationPool{Start: first.String(), End: taken.Prev().String()})
	}
	if taken.Less(last) {
		pools = append(pools, neutron.AllocationPool{Start: taken.Next().String(), End: last.String()})
	}
	return pools
}

func lastAddress(cidr netip.Prefix) netip.Addr {
	bytes := cidr.Addr().AsSlice()
	for bit := cidr.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// samePools compares the addresses, not how they are cut into pools or in
// which order the pools stand.
func samePools(a, b []neutron.AllocationPool) bool {
	x, okX := addressRanges(a)
	y, okY := addressRanges(b)
	return okX && okY && slices.Equal(x, y)
}

type addressRange struct{ first, last netip.Addr }

func addressRanges(pools []neutron.AllocationPool) ([]addressRange, bool) {
	ranges := make([]addressRange, 0, len(pools))
	for _, p := range pools {
		first, err := netip.ParseAddr(p.Start)
		if err != nil {
			return nil, false
		}
		last, err := netip.ParseAddr(p.End)
		if err != nil {
			return nil, false
		}
		ranges = append(ranges, addressRange{first, last})
	}
	slices.SortFunc(ranges, func(a, b addressRange) int { return a.first.Compare(b.first) })
	var merged []addressRange
	for _, r := range ranges {
		if n := len(merged); n > 0 && merged[n-1].last.Next() == r.first {
			merged[n-1].last = r.last
			continue
		}
		merged = append(merged, r)
	}
	return merged, true
}
