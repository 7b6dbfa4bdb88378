package simulator

import (
	"iter"
	"slices"
	"strings"
)

type network struct {
	object
	AdminStateUp, Shared, External, PortSecurity bool
	MTU                                          int
	DNSDomain                                    string
	ZoneHints                                    []string
	Segment                                      segment
	Subnets                                      []string // ids
}

var networks = kind{
	name:  "network",
	title: "Network",
	attributes: slices.Concat([]attribute{
		idAttribute,
		nameAttribute,
		{name: "subnets"},
		{name: "admin_state_up", flags: onPost | onPut | filters | sorts, convert: boolean},
		{name: "status", flags: filters | sorts},
		tenant,
		{name: "shared", flags: onPost | onPut | filters | adminSets, convert: boolean, initial: false},
		{name: "router:external", flags: onPost | onPut | filters | adminSets, convert: boolean, initial: false},
		{name: "is_default", flags: onPost | onPut | adminSets, convert: boolean, initial: false},
		{name: "mtu", flags: onPost | onPut | filters | sorts, convert: integer, validate: notNegative},
		{name: "port_security_enabled", flags: onPost | onPut, convert: boolean},
		{name: "dns_domain", flags: onPost | onPut, validate: stringUpTo(maxText)},
		{name: "provider:network_type", flags: onPost | onPut | filters | adminSets | adminSees, validate: stringUpTo(32)},
		{name: "provider:physical_network", flags: onPost | onPut | filters | adminSets | adminSees, validate: stringUpTo(64)},
		{name: "provider:segmentation_id", flags: onPost | onPut | filters | adminSets | adminSees, convert: integer},
		{name: "availability_zone_hints", flags: onPost, validate: uniqueStrings},
		{name: "availability_zones"},
		{name: "ipv4_address_scope"},
		{name: "ipv6_address_scope"},
		{name: "tags"},
	}, standard),
	all: func(c *call) iter.Seq[view] {
		return func(yield func(view) bool) {
			for n := range c.networks.all() {
				if c.seesNetwork(n) && !yield(n.view()) {
					return
				}
			}
		}
	},
	get: func(c *call, id string) (view, bool) {
		n, ok := c.networks.get(id)
		if !ok || !c.seesNetwork(n) {
			return nil, false
		}
		return n.view(), true
	},
	owned:  func(c *call, v view) bool { return c.who.owns(v["project_id"].(string)) },
	create: (*call).createNetwork,
	update: (*call).updateNetwork,
	delete: (*call).deleteNetwork,
	tag: func(c *call, id string, tags []string) {
		n, _ := c.networks.get(id)
		n.Tags = tags
		n.touch()
		c.networks.put(id, n)
	},
}

func (c *call) seesNetwork(n network) bool { return c.who.owns(n.Project) || n.Shared || n.External }

func (n network) view() view {
	v := n.object.view()
	v["subnets"] = orEmpty(n.Subnets)
	v["admin_state_up"] = n.AdminStateUp
	v["status"] = "ACTIVE"
	v["shared"] = n.Shared
	v["router:external"] = n.External
	v["mtu"] = n.MTU
	v["port_security_enabled"] = n.PortSecurity
	v["dns_domain"] = n.DNSDomain
	v["provider:network_type"] = n.Segment.Type
	v["provider:physical_network"] = orNone(n.Segment.PhysicalNetwork)
	v["provider:segmentation_id"] = orNone(n.Segment.ID)
	v["availability_zone_hints"] = orEmpty(n.ZoneHints)
	v["availability_zones"] = []string{}
	v["ipv4_address_scope"] = nil
	v["ipv6_address_scope"] = nil
	return v
}

// orNone makes JSON show null for a value that is not set.
func orNone[T comparable](v T) any {
	var unset T
	if v == unset {
		return nil
	}
	return v
}

func (c *call) createNetwork(v values) (view, error) {
	segment, err := c.reserveSegment(v)
	if err != nil {
		return nil, err
	}
	mtu, err := segment.mtu(value(v, "mtu", 0))
	if err != nil {
		return nil, err
	}
	n := network{
		object:       newObject(v, 1),
		AdminStateUp: value(v, "admin_state_up", true),
		Shared:       value(v, "shared", false),
		External:     value(v, "router:external", false),
		PortSecurity: value(v, "port_security_enabled", true),
		MTU:          mtu,
		DNSDomain:    value(v, "dns_domain", ""),
		ZoneHints:    stringsOf(v["availability_zone_hints"]),
		Segment:      segment,
	}
	c.networks.put(n.ID, n)
	c.securityGroup(n.Project)
	shown := n.view()
	shown["is_default"] = value(v, "is_default", false)
	return shown, nil
}

func (c *call) updateNetwork(id string, v values) error {
	if len(v) == 0 {
		return nil
	}
	n, _ := c.networks.get(id)
	segment, err := c.change(n.Segment, v)
	if err != nil {
		return err
	}
	n.Segment = segment
	if n.Shared && !value(v, "shared", true) && c.usedByOthers(n) {
		return conflict("InvalidSharedSetting", "Unable to reconfigure sharing settings for network %s. Multiple tenants are using it.", n.Name)
	}
	mtu, err := n.Segment.mtu(value(v, "mtu", n.MTU))
	if err != nil {
		return err
	}
	n.MTU = mtu
	n.AdminStateUp = value(v, "admin_state_up", n.AdminStateUp)
	n.Shared = value(v, "shared", n.Shared)
	n.External = value(v, "router:external", n.External)
	n.PortSecurity = value(v, "port_security_enabled", n.PortSecurity)
	n.DNSDomain = value(v, "dns_domain", n.DNSDomain)
	n.update(v)
	c.networks.put(id, n)
	return nil
}

func (c *call) usedByOthers(n network) bool {
	for _, id := range n.Subnets {
		if s, _ := c.subnets.get(id); s.Project != n.Project {
			return true
		}
	}
	for p := range c.portsOn(n.ID) {
		if p.Project != n.Project && !strings.HasPrefix(p.DeviceOwner, "network:") {
			return true
		}
	}
	return false
}

// deleteNetwork takes the subnets of the network along, and ports that Neutron itself made.
func (c *call) deleteNetwork(id string) error {
	used := []string{}
	for p := range c.portsOn(id) {
		if !p.automatic() {
			used = append(used, p.ID)
		}
	}
	if len(used) > 0 {
		slices.Sort(used)
		return conflict("NetworkInUse", "Unable to complete operation on network %s. There are one or more ports still in use on the network, id for these ports is: %s.",
			id, strings.Join(used, ","))
	}
	for p := range c.portsOn(id) {
		c.ports.delete(p.ID)
	}
	n, _ := c.networks.get(id)
	for _, subnet := range n.Subnets {
		c.subnets.delete(subnet)
	}
	c.networks.delete(id)
	return nil
}
