package simulator

import (
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"slices"
)

type subnet struct {
	object
	NetworkID           string
	CIDR                netip.Prefix
	Gateway             netip.Addr // not valid: none
	Pools               []pool
	Nameservers         []string
	HostRoutes          []hostRoute
	DHCP                bool
	RAMode, AddressMode string // empty: none
	ServiceTypes        []string
}

type hostRoute struct {
	Destination string `json:"destination"`
	NextHop     string `json:"nexthop"`
}

const (
	slaac         = "slaac"
	dhcpStateful  = "dhcpv6-stateful"
	dhcpStateless = "dhcpv6-stateless"
)

var subnets = kind{
	name:  "subnet",
	title: "Subnet",
	attributes: slices.Concat([]attribute{
		idAttribute,
		nameAttribute,
		{name: "ip_version", flags: onPost | required | filters | sorts, convert: integer, validate: oneOf(4, 6)},
		{name: "network_id", flags: onPost | required | filters | sorts, validate: isUUID},
		{name: "subnetpool_id", flags: onPost | filters | sorts, validate: uuidOrNone},
		{name: "prefixlen", flags: onPost, convert: integer, validate: notNegative},
		{name: "cidr", flags: onPost | filters | sorts, convert: cidr},
		{name: "gateway_ip", flags: onPost | onPut | filters | sorts, convert: canonicalAddress, validate: addressOrNone},
		{name: "allocation_pools", flags: onPost | onPut, validate: allocationPools},
		{name: "dns_nameservers", flags: onPost | onPut, convert: noneIsEmpty, validate: nameservers},
		{name: "host_routes", flags: onPost | onPut, convert: noneIsEmpty, validate: hostRoutes},
		tenant,
		{name: "enable_dhcp", flags: onPost | onPut | filters | sorts, convert: boolean},
		{name: "ipv6_ra_mode", flags: onPost | filters | sorts, validate: oneOf(slaac, dhcpStateful, dhcpStateless)},
		{name: "ipv6_address_mode", flags: onPost | filters | sorts, validate: oneOf(slaac, dhcpStateful, dhcpStateless)},
		{name: "shared", flags: filters | hidden, convert: boolean},
		{name: "service_types", flags: onPost | onPut, validate: uniqueStrings},
		{name: "tags"},
	}, standard),
	all: func(c *call) iter.Seq[view] {
		return func(yield func(view) bool) {
			for s := range c.subnets.all() {
				if v, ok := c.seeSubnet(s); ok && !yield(v) {
					return
				}
			}
		}
	},
	get: func(c *call, id string) (view, bool) {
		s, ok := c.subnets.get(id)
		if !ok {
			return nil, false
		}
		return c.seeSubnet(s)
	},
	owned: func(c *call, v view) bool {
		n, _ := c.networks.get(v["network_id"].(string))
		return c.who.owns(v["project_id"].(string)) || c.who.owns(n.Project)
	},
	admit:  (*call).admitToNetwork,
	create: (*call).createSubnet,
	update: (*call).updateSubnet,
	delete: (*call).deleteSubnet,
	tag: func(c *call, id string, tags []string) {
		s, _ := c.subnets.get(id)
		s.Tags = tags
		s.touch()
		c.subnets.put(id, s)
	},
}

func uuidOrNone(v any) string {
	if v == nil {
		return ""
	}
	return isUUID(v)
}

// seeSubnet shows a subnet to those who may see it: its project, and all where the network is shared.
func (c *call) seeSubnet(s subnet) (view, bool) {
	n, _ := c.networks.get(s.NetworkID)
	if !c.who.owns(s.Project) && !n.Shared {
		return nil, false
	}
	v := s.view()
	v["shared"] = n.Shared
	return v, true
}

func (s subnet) view() view {
	v := s.object.view()
	v["network_id"] = s.NetworkID
	v["ip_version"] = s.version()
	v["subnetpool_id"] = nil
	v["cidr"] = s.CIDR.String()
	v["gateway_ip"] = nil
	if s.Gateway.IsValid() {
		v["gateway_ip"] = s.Gateway.String()
	}
	v["allocation_pools"] = orEmpty(s.Pools)
	v["dns_nameservers"] = orEmpty(s.Nameservers)
	v["host_routes"] = orEmpty(s.HostRoutes)
	v["enable_dhcp"] = s.DHCP
	v["ipv6_ra_mode"] = orNone(s.RAMode)
	v["ipv6_address_mode"] = orNone(s.AddressMode)
	v["service_types"] = orEmpty(s.ServiceTypes)
	return v
}

func (s subnet) version() int {
	if s.CIDR.Addr().Is4() {
		return 4
	}
	return 6
}

// assignsItself says whether hosts make their own addresses (SLAAC).
func (s subnet) assignsItself() bool {
	itself := []string{slaac, dhcpStateless}
	return slices.Contains(itself, s.RAMode) || slices.Contains(itself, s.AddressMode)
}

// admitToNetwork hides networks that the caller does not see, and those it sees but may not build on.
func (c *call) admitToNetwork(k *kind, v values) error {
	if c.who.admin {
		return nil
	}
	id := v["network_id"].(string)
	n, ok := c.networks.get(id)
	if !ok || !c.seesNetwork(n) {
		return notFound("Network", id)
	}
	if !n.Shared && n.Project != v["project_id"] {
		return &fault{http.StatusForbidden, "HTTPForbidden", fmt.Sprintf("Tenant %s not allowed to create %s on this network", v["project_id"], k.name)}
	}
	return nil
}

func (c *call) createSubnet(v values) (view, error) {
	prefix, ok := v["cidr"].(netip.Prefix)
	if _, both := v["prefixlen"]; ok && both {
		return nil, badPart("subnets", "cidr and prefixlen must not be supplied together")
	}
	if id := v["subnetpool_id"]; id != nil {
		return nil, &fault{http.StatusNotFound, "SubnetPoolNotFound", "Subnet pool " + text(id) + " could not be found."}
	}
	if !ok {
		return nil, badPart("subnets", "a subnetpool must be specified in the absence of a cidr")
	}
	s := subnet{
		object:       newObject(v, 0),
		NetworkID:    v["network_id"].(string),
		CIDR:         prefix,
		Gateway:      defaultGateway(prefix),
		DHCP:         value(v, "enable_dhcp", true),
		RAMode:       value(v, "ipv6_ra_mode", ""),
		AddressMode:  value(v, "ipv6_address_mode", ""),
		ServiceTypes: stringsOf(v["service_types"]),
	}
	if version := v["ip_version"].(int); version != s.version() {
		return nil, wrongFamily("cidr", prefix, version)
	}
	if err := s.set(v, "new subnet", false); err != nil {
		return nil, err
	}
	if err := s.checkModes(); err != nil {
		return nil, err
	}
	return c.addSubnet(s, v)
}

// addSubnet puts a subnet whose own attributes are right on its network.
func (c *call) addSubnet(s subnet, v values) (shown view, err error) {
	n, ok := c.networks.get(s.NetworkID)
	if !ok {
		return nil, notFound("Network", s.NetworkID)
	}
	if given, ok := v["allocation_pools"].([]any); !ok {
		s.Pools = automaticPools(s.CIDR, s.Gateway)
	} else if s.Pools, err = readPools(given, s.CIDR); err != nil {
		return nil, err
	} else if err := gatewayOutside(s.Gateway, s.Pools); err != nil {
		return nil, err
	}
	if !validGateway(s.CIDR, s.Gateway) {
		return nil, conflict("IpamValueInvalid", "Gateway IP %s cannot be allocated in CIDR %s", s.Gateway, s.CIDR)
	}
	if s.CIDR.Bits() == 0 {
		return nil, invalidInput("0 is not allowed as CIDR prefix length")
	}
	for _, id := range n.Subnets {
		if other, _ := c.subnets.get(id); other.CIDR.Overlaps(s.CIDR) {
			return nil, invalidInput("Requested subnet with cidr: %s for network: %s overlaps with another subnet", s.CIDR, n.ID)
		}
	}
	c.subnets.put(s.ID, s)
	n.Subnets = slices.Concat(n.Subnets, []string{s.ID})
	n.touch()
	c.networks.put(n.ID, n)
	return s.view(), nil
}

// defaultGateway is the first host address in IPv4, and in this release the network address in IPv6.
func defaultGateway(p netip.Prefix) netip.Addr {
	if p.Addr().Is4() {
		return p.Addr().Next()
	}
	return p.Addr()
}

// updateSubnet counts an update that names no attribute too. Networks and ports do not.
func (c *call) updateSubnet(id string, v values) (err error) {
	s, _ := c.subnets.get(id)
	old := s
	if err := s.set(v, id, old.DHCP); err != nil {
		return err
	}
	if used := c.gatewayPort(old); used != "" && s.Gateway.IsValid() && s.Gateway != old.Gateway {
		return conflict("GatewayIpInUse", "Current gateway ip %s already in use by port %s. Unable to update.", old.Gateway, used)
	}
	if !s.DHCP && (s.RAMode != "" || s.AddressMode != "") {
		return invalidInput("Cannot disable enable_dhcp with ipv6 attributes set")
	}
	given, pooled := v["allocation_pools"].([]any)
	if pooled {
		if s.Pools, err = readPools(given, s.CIDR); err != nil {
			return err
		}
	}
	if pooled || s.Gateway != old.Gateway {
		if err := gatewayOutside(s.Gateway, s.Pools); err != nil {
			return err
		}
	}
	if types, ok := v["service_types"]; ok {
		s.ServiceTypes = stringsOf(types)
	}
	s.update(v)
	c.subnets.put(id, s)
	n, _ := c.networks.get(s.NetworkID)
	n.touch()
	c.networks.put(n.ID, n)
	return nil
}

// deleteSubnet refuses while a port has an address of it, save ports that Neutron made and addresses that hosts made.
func (c *call) deleteSubnet(id string) error {
	s, _ := c.subnets.get(id)
	left := []port{}
	for p := range c.portsOn(s.NetworkID) {
		ips := slices.DeleteFunc(slices.Clone(p.FixedIPs), func(ip fixedIP) bool { return ip.SubnetID == id })
		if len(ips) == len(p.FixedIPs) {
			continue
		}
		if p.onRouter() || !p.automatic() && !s.assignsItself() {
			return conflict("SubnetInUse", "Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.", id)
		}
		p.FixedIPs = ips
		p.touch()
		left = append(left, p)
	}
	for _, p := range left {
		c.ports.put(p.ID, p)
	}
	c.subnets.delete(id)
	n, _ := c.networks.get(s.NetworkID)
	n.Subnets = slices.DeleteFunc(slices.Clone(n.Subnets), func(other string) bool { return other == id })
	n.touch()
	c.networks.put(n.ID, n)
	return nil
}
