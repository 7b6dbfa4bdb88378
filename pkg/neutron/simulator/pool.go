package simulator

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// pool is a range of addresses, both ends included.
type pool struct {
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
}

func (p pool) String() string { return p.Start.String() + "-" + p.End.String() }

func (p pool) contains(a netip.Addr) bool {
	return p.Start.BitLen() == a.BitLen() && !a.Less(p.Start) && !p.End.Less(a)
}

// parseCIDR reads a CIDR as Python's netaddr does: with host bits, a netmask, a short IPv4 address, or no prefix length at all.
func parseCIDR(s string) (netip.Prefix, bool) {
	host, length, found := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil {
		var ok bool
		if addr, ok = decimalAddress(host); !ok {
			return netip.Prefix{}, false
		}
	}
	n := addr.BitLen()
	if found {
		var ok bool
		if n, ok = prefixLength(strings.TrimSpace(length)); !ok || n > addr.BitLen() {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(addr, n).Masked(), addr.Zone() == ""
}

func prefixLength(s string) (int, bool) {
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return int(n), true
	}
	mask, err := netip.ParseAddr(s)
	if err != nil {
		return 0, false
	}
	ones, ended := 0, false
	for _, b := range mask.AsSlice() {
		n := bits.LeadingZeros8(^b)
		if ended && b != 0 || bits.OnesCount8(b) != n {
			return 0, false
		}
		ones += n
		ended = ended || n < 8
	}
	return ones, true
}

// cidr is the converter of the attribute. Neutron fails with what is no string.
func cidr(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, errInternal
	}
	if prefix, ok := parseCIDR(s); ok {
		return prefix, nil
	}
	return nil, invalidInput("%s is not in a CIDR format", text(v))
}

// canonicalAddress writes IPv6 addresses in their canonical form. What is no address is left to validation.
func canonicalAddress(v any) (any, error) {
	s, _ := v.(string)
	if a, err := netip.ParseAddr(s); err == nil && a.Is6() && a.Zone() == "" {
		return a.String(), nil
	}
	return v, nil
}

func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// span is where the pools of a subnet may lie: without network and broadcast address in IPv4, without the first address in IPv6.
func span(p netip.Prefix) pool {
	first, last := p.Addr(), lastAddress(p)
	switch {
	case first.Is6():
		return pool{first.Next(), last}
	case p.Bits() <= 30:
		return pool{first.Next(), last.Prev()}
	}
	return pool{first, last}
}

// automaticPools are the pools of a subnet for which none were asked: all of it but the gateway.
func automaticPools(p netip.Prefix, gateway netip.Addr) []pool {
	if p.IsSingleIP() {
		return []pool{{p.Addr(), p.Addr()}}
	}
	all := span(p)
	if !all.contains(gateway) {
		return []pool{all}
	}
	pools := []pool{}
	if all.Start.Less(gateway) {
		pools = append(pools, pool{all.Start, gateway.Prev()})
	}
	if gateway.Less(all.End) {
		pools = append(pools, pool{gateway.Next(), all.End})
	}
	return pools
}

// readPools reads pools that are valid in form and checks them against the subnet.
func readPools(given []any, p netip.Prefix) ([]pool, error) {
	pools := make([]pool, len(given))
	for i, item := range given {
		object := item.(map[string]any)
		start, end := object["start"].(string), object["end"].(string)
		pools[i] = pool{netip.MustParseAddr(start), netip.MustParseAddr(end)}
		if pools[i].Start.BitLen() != pools[i].End.BitLen() || pools[i].End.Less(pools[i].Start) {
			return nil, invalidPool(fmt.Sprintf("{'start': '%s', 'end': '%s'}", start, end))
		}
	}
	all := span(p)
	for _, one := range pools {
		if one.Start.BitLen() != p.Addr().BitLen() {
			return nil, invalidPool(one.String())
		}
		if !all.contains(one.Start) || !all.contains(one.End) {
			return nil, badPool("OutOfBoundsAllocationPool", "The allocation pool %s spans beyond the subnet cidr %s.", one, p)
		}
	}
	for i, one := range pools {
		for _, other := range pools[i+1:] {
			if one.contains(other.Start) || other.contains(one.Start) {
				return nil, conflict("OverlappingAllocationPools", "Found overlapping allocation pools: %s %s for subnet %s.", one, other, p)
			}
		}
	}
	return pools, nil
}

func invalidPool(p string) error {
	return badPool("InvalidAllocationPool", "The allocation pool %s is not valid.", p)
}

func badPool(kind, format string, args ...any) error {
	f := conflict(kind, format, args...)
	f.status = 400
	return f
}

func gatewayOutside(gateway netip.Addr, pools []pool) error {
	for _, p := range pools {
		if p.contains(gateway) {
			return conflict("GatewayConflictWithAllocationPools", "Gateway ip %s conflicts with allocation pool %s.", gateway, p)
		}
	}
	return nil
}
