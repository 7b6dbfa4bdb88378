package simulator

import "net/netip"

var (
	multicast4 = netip.MustParsePrefix("224.0.0.0/4")
	multicast6 = netip.MustParsePrefix("ff00::/8")
	loopback4  = netip.MustParsePrefix("127.0.0.0/8")
	loopback6  = netip.MustParsePrefix("::1/128")
)

// set takes over the attributes that create and update have in common, checked in the order of Neutron's _validate_subnet.
func (s *subnet) set(v values, id string, hadDHCP bool) error {
	s.DHCP = value(v, "enable_dhcp", s.DHCP)
	if s.DHCP && !hadDHCP {
		if err := checkDHCP(s.CIDR); err != nil {
			return err
		}
	}
	if given, ok := v["gateway_ip"]; ok {
		gateway, err := s.readGateway(given)
		if err != nil {
			return err
		}
		s.Gateway = gateway
	}
	if given, ok := v["dns_nameservers"].([]any); ok {
		servers, err := s.readNameservers(given, id)
		if err != nil {
			return err
		}
		s.Nameservers = servers
	}
	if given, ok := v["host_routes"].([]any); ok {
		routes, err := s.readHostRoutes(given, id)
		if err != nil {
			return err
		}
		s.HostRoutes = routes
	}
	return nil
}

func checkDHCP(p netip.Prefix) error {
	switch {
	case p.Addr().BitLen()-p.Bits() < 2:
		return invalidInput("Subnet has a prefix length that is incompatible with DHCP service enabled")
	case within(p, multicast4) || within(p, multicast6):
		return invalidInput("Multicast IP subnet is not supported if enable_dhcp is True")
	case within(p, loopback4) || within(p, loopback6):
		return invalidInput("Loopback IP subnet is not supported if enable_dhcp is True")
	case p.Addr() == netip.IPv4Unspecified():
		return invalidInput("First IP '0.0.0.0' of network is not supported if enable_dhcp is True.")
	}
	return nil
}

func within(p, outer netip.Prefix) bool { return p.Bits() >= outer.Bits() && outer.Contains(p.Addr()) }

func wrongFamily(name string, given any, version int) error {
	return invalidInput("%s '%s' does not match the ip_version '%d'", name, given, version)
}

func (s *subnet) readGateway(given any) (netip.Addr, error) {
	if given == nil {
		return netip.Addr{}, nil
	}
	gateway := netip.MustParseAddr(given.(string))
	if gateway.Is4() != s.CIDR.Addr().Is4() {
		return gateway, wrongFamily("gateway_ip", gateway, s.version())
	}
	if !validGateway(s.CIDR, gateway) {
		return gateway, invalidInput("Gateway is not valid on subnet")
	}
	return gateway, nil
}

// validGateway is false for the network and the broadcast address of IPv4. Anything outside the CIDR is valid.
func validGateway(p netip.Prefix, gateway netip.Addr) bool {
	return !p.Contains(gateway) || gateway.Is6() || gateway != p.Addr() && gateway != lastAddress(p)
}

func (s *subnet) readNameservers(given []any, id string) ([]string, error) {
	if len(given) > maxNameservers {
		return nil, badPool("DNSNameServersExhausted", "Unable to complete operation for %s. The number of DNS nameservers exceeds the limit %d.", id, maxNameservers)
	}
	servers := stringsOf(given)
	for _, server := range servers {
		if netip.MustParseAddr(server).Is4() != s.CIDR.Addr().Is4() {
			return nil, wrongFamily("dns_nameserver", server, s.version())
		}
	}
	return servers, nil
}

func (s *subnet) readHostRoutes(given []any, id string) ([]hostRoute, error) {
	if len(given) > maxRoutes {
		return nil, badPool("HostRoutesExhausted", "Unable to complete operation for %s. The number of host routes exceeds the limit %d.", id, maxRoutes)
	}
	routes := make([]hostRoute, len(given))
	for i, item := range given {
		object := item.(map[string]any)
		nextHop := netip.MustParseAddr(object["nexthop"].(string))
		route := hostRoute{object["destination"].(string), nextHop.String()}
		if nextHop.Is4() != s.CIDR.Addr().Is4() {
			return nil, wrongFamily("nexthop", route.NextHop, s.version())
		}
		if destination, _ := parseCIDR(route.Destination); destination.Addr().Is4() != s.CIDR.Addr().Is4() {
			return nil, wrongFamily("destination", route.Destination, s.version())
		}
		routes[i] = route
	}
	return routes, nil
}

func (s *subnet) checkModes() error {
	switch ra, address := s.RAMode != "", s.AddressMode != ""; {
	case s.version() == 4 && ra:
		return invalidInput("ipv6_ra_mode is not valid when ip_version is 4")
	case s.version() == 4 && address:
		return invalidInput("ipv6_address_mode is not valid when ip_version is 4")
	case (ra || address) && !s.DHCP:
		return invalidInput("ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False")
	case ra && address && s.RAMode != s.AddressMode:
		return invalidInput("ipv6_ra_mode set to '%s' with ipv6_address_mode set to '%s' is not valid. If both attributes are set, they must be the same value", s.RAMode, s.AddressMode)
	case s.assignsItself() && s.CIDR.Bits() != 64:
		return invalidInput("Invalid CIDR %s for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the prefix to be /64", s.CIDR)
	}
	return nil
}
