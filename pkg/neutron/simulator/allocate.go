package simulator

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// allocate chooses the addresses of a new port: those asked for, or one of each IP version, and those that the host will make itself.
func (c *call) allocate(p port, n network, v values) ([]fixedIP, error) {
	on := make([]subnet, len(n.Subnets))
	for i, id := range n.Subnets {
		on[i], _ = c.subnets.get(id)
	}
	a := allocation{call: c, network: n, subnets: on}
	given, ok := v["fixed_ips"].([]any)
	if !ok {
		if err := a.automatic(); err != nil {
			return nil, err
		}
	}
	// Addresses that are named go first: one that is not must not take them.
	slices.SortStableFunc(given, func(x, y any) int { return present(unnamed(x)) - present(unnamed(y)) })
	for _, item := range given {
		if err := a.asked(item.(map[string]any), p); err != nil {
			return nil, err
		}
	}
	if !p.onRouter() {
		a.selfMade(p)
	}
	return a.ips, nil
}

func unnamed(item any) any {
	if _, ok := item.(map[string]any)["ip_address"]; ok {
		return nil
	}
	return item
}

type allocation struct {
	*call
	network network
	subnets []subnet
	ips     []fixedIP
}

func (a *allocation) automatic() error {
	for _, version := range []int{4, 6} {
		from := slices.DeleteFunc(slices.Clone(a.subnets), func(s subnet) bool { return s.version() != version || s.assignsItself() })
		if len(from) == 0 {
			continue
		}
		if err := a.free(from); err != nil {
			return err
		}
	}
	return nil
}

// free takes the lowest free address of the pools of the subnets.
func (a *allocation) free(from []subnet) error {
	for _, s := range from {
		used := a.used(s.ID)
		for _, p := range s.Pools {
			for ip := p.Start; p.contains(ip); ip = ip.Next() {
				if !used[ip] {
					a.ips = append(a.ips, fixedIP{s.ID, ip})
					return nil
				}
			}
		}
	}
	return conflict("IpAddressGenerationFailure", "No more IP addresses available on network %s.", a.network.ID)
}

func (a *allocation) used(id string) map[netip.Addr]bool {
	used := map[netip.Addr]bool{}
	add := func(ips []fixedIP) {
		for _, ip := range ips {
			if ip.SubnetID == id {
				used[ip.Address] = true
			}
		}
	}
	add(a.ips)
	for p := range a.portsOn(a.network.ID) {
		add(p.FixedIPs)
	}
	return used
}

// asked takes what one entry of fixed_ips asks for.
func (a *allocation) asked(given map[string]any, p port) error {
	id, hasSubnet := given["subnet_id"].(string)
	literal, hasAddress := given["ip_address"].(string)
	if len(a.subnets) == 0 {
		return invalidInput("IP allocation requires subnets for network")
	}
	if !hasSubnet && !hasAddress {
		return invalidInput("IP allocation requires subnet_id or ip_address")
	}
	i := slices.IndexFunc(a.subnets, func(s subnet) bool {
		return s.ID == id || !hasSubnet && s.takes(literal, p)
	})
	if i < 0 && hasSubnet {
		if _, ok := a.call.subnets.get(id); !ok {
			return notFound("Subnet", id)
		}
		return invalidInput("Failed to create port on network %s, because fixed_ips included invalid subnet %s", a.network.ID, id)
	}
	if i < 0 {
		return badPool("InvalidIpForNetwork", "IP address %s is not a valid IP for any of the subnets on the specified network.", literal)
	}
	s := a.subnets[i]
	switch {
	case !hasAddress && s.assignsItself() && !p.onRouter():
		return nil
	case !hasAddress:
		return a.free([]subnet{s})
	case !s.takes(literal, p):
		return badPool("InvalidIpForSubnet", "IP address %s is not a valid IP for the specified subnet.", literal)
	case s.assignsItself() && !p.onRouter() && netip.MustParseAddr(literal) != s.eui64(p.MAC):
		return invalidInput("IPv6 address %s cannot be directly assigned to a port on subnet %s as the subnet is configured for automatic addresses", literal, s.ID)
	}
	ip := netip.MustParseAddr(literal)
	if a.used(s.ID)[ip] {
		return conflict("IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", ip, s.ID)
	}
	a.ips = append(a.ips, fixedIP{s.ID, ip})
	return nil
}

// takes says whether the port may have the address on the subnet.
func (s subnet) takes(literal string, p port) bool {
	ip := netip.MustParseAddr(literal)
	switch {
	case !s.CIDR.Contains(ip):
		return false
	case ip.Is4():
		return ip != s.CIDR.Addr() && ip != lastAddress(s.CIDR)
	}
	return ip != s.CIDR.Addr() || p.DeviceOwner == "" || strings.HasPrefix(p.DeviceOwner, "network:router")
}

func (a *allocation) selfMade(p port) {
	for _, s := range a.subnets {
		if ip := (fixedIP{s.ID, s.eui64(p.MAC)}); s.assignsItself() && !slices.Contains(a.ips, ip) {
			a.ips = append(a.ips, ip)
		}
	}
}

// eui64 is the address that a host makes of its MAC address (RFC 4291, appendix A).
func (s subnet) eui64(address string) netip.Addr {
	mac, err := net.ParseMAC(address)
	if err != nil || s.CIDR.Addr().Is4() {
		return netip.Addr{}
	}
	b := s.CIDR.Addr().As16()
	copy(b[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.AddrFrom16(b)
}

// filterByFixedIPs reads conditions of the form subnet_id=X and ip_address=Y.
func filterByFixedIPs(conditions []string) (func(view) bool, error) {
	wanted := map[string][]string{}
	for _, condition := range conditions {
		name, value, ok := strings.Cut(condition, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, invalidInput("'%s' is not of the form <key>=[value]", condition)
		}
		name = strings.TrimSpace(name)
		wanted[name] = append(wanted[name], strings.TrimSpace(value))
	}
	return func(v view) bool {
		return slices.ContainsFunc(v["fixed_ips"].([]fixedIP), func(ip fixedIP) bool {
			subnets, addresses := wanted["subnet_id"], wanted["ip_address"]
			return (subnets == nil || slices.Contains(subnets, ip.SubnetID)) &&
				(addresses == nil || slices.Contains(addresses, ip.Address.String()))
		})
	}, nil
}
