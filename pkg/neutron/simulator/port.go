package simulator

import (
	"crypto/rand"
	"iter"
	"net"
	"net/netip"
	"slices"
)

type port struct {
	object
	NetworkID, DeviceID, DeviceOwner, MAC, HostID, VNICType string
	AdminStateUp, PortSecurity                              bool
	FixedIPs                                                []fixedIP
	SecurityGroups                                          []string
}

type fixedIP struct {
	SubnetID string     `json:"subnet_id"`
	Address  netip.Addr `json:"ip_address"`
}

var ports = kind{
	name:  "port",
	title: "Port",
	attributes: slices.Concat([]attribute{
		idAttribute,
		nameAttribute,
		{name: "network_id", flags: onPost | required | filters | sorts, validate: isUUID},
		{name: "admin_state_up", flags: onPost | onPut | filters | sorts, convert: boolean},
		{name: "mac_address", flags: onPost | filters | sorts, validate: macAddress},
		{name: "fixed_ips", flags: onPost | filters, validate: fixedIPs},
		{name: "device_id", flags: onPost | onPut | filters | sorts, validate: stringUpTo(maxText)},
		{name: "device_owner", flags: onPost | onPut | filters | sorts, validate: stringUpTo(maxText)},
		tenant,
		{name: "status", flags: filters | sorts},
		{name: "port_security_enabled", flags: onPost, convert: boolean},
		{name: "security_groups", flags: onPost, validate: uniqueStrings},
		{name: "binding:vnic_type", flags: onPost, validate: stringUpTo(maxText)},
		{name: "binding:host_id", flags: onPost | filters | adminSets | adminSees, validate: stringUpTo(maxText), initial: ""},
		{name: "binding:profile", flags: adminSees},
		{name: "binding:vif_type", flags: adminSees},
		{name: "binding:vif_details", flags: adminSees},
		{name: "allowed_address_pairs"},
		{name: "extra_dhcp_opts"},
		{name: "dns_name"},
		{name: "dns_assignment"},
		{name: "tags", flags: onPost, validate: uniqueStrings}, // and then not kept
	}, standard),
	all: func(c *call) iter.Seq[view] {
		return func(yield func(view) bool) {
			for p := range c.ports.all() {
				if c.ownsPort(p) && !yield(p.view()) {
					return
				}
			}
		}
	},
	get: func(c *call, id string) (view, bool) {
		p, ok := c.ports.get(id)
		if !ok || !c.ownsPort(p) {
			return nil, false
		}
		return p.view(), true
	},
	owned:  func(*call, view) bool { return true },
	admit:  (*call).admitToNetwork,
	create: (*call).createPort,
	update: (*call).updatePort,
	delete: func(c *call, id string) error {
		if p, _ := c.ports.get(id); c.attached(p) {
			return conflict("ServicePortInUse", "Port %s cannot be deleted directly via the port API: has device owner %s.", id, p.DeviceOwner)
		}
		c.ports.delete(id)
		return nil
	},
	tag: func(c *call, id string, tags []string) {
		p, _ := c.ports.get(id)
		p.Tags = tags
		p.touch()
		c.ports.put(id, p)
	},
}

// ownsPort is true for the project of the port and that of its network. Nobody else sees it.
func (c *call) ownsPort(p port) bool {
	n, _ := c.networks.get(p.NetworkID)
	return c.who.owns(p.Project) || c.who.owns(n.Project)
}

// automatic says whether Neutron made the port and takes it away by itself.
func (p port) automatic() bool {
	return p.DeviceOwner == "network:dhcp" || p.DeviceOwner == "network:distributed"
}

func (p port) onRouter() bool {
	return slices.Contains([]string{
		routerInterface, "network:router_interface_distributed", "network:ha_router_replicated_interface",
	}, p.DeviceOwner)
}

func (p port) view() view {
	v := p.object.view()
	v["network_id"] = p.NetworkID
	v["admin_state_up"] = p.AdminStateUp
	v["mac_address"] = p.MAC
	v["fixed_ips"] = orEmpty(p.FixedIPs)
	v["device_id"] = p.DeviceID
	v["device_owner"] = p.DeviceOwner
	v["status"] = "DOWN"
	v["port_security_enabled"] = p.PortSecurity
	v["security_groups"] = orEmpty(p.SecurityGroups)
	v["binding:vnic_type"] = p.VNICType
	v["binding:host_id"] = p.HostID
	v["binding:profile"] = map[string]any{}
	v["binding:vif_type"] = "unbound"
	v["binding:vif_details"] = map[string]any{}
	v["allowed_address_pairs"] = []any{}
	v["extra_dhcp_opts"] = []any{}
	v["dns_name"] = ""
	v["dns_assignment"] = []any{}
	return v
}

func (c *call) portsOn(network string) iter.Seq[port] {
	return func(yield func(port) bool) {
		for p := range c.ports.all() {
			if p.NetworkID == network && !yield(p) {
				return
			}
		}
	}
}

func (c *call) createPort(v values) (view, error) {
	id := v["network_id"].(string)
	n, ok := c.networks.get(id)
	if !ok {
		return nil, notFound("Network", id)
	}
	p := port{
		object:         newObject(v, 1),
		NetworkID:      id,
		DeviceID:       value(v, "device_id", ""),
		DeviceOwner:    value(v, "device_owner", ""),
		MAC:            value(v, "mac_address", ""),
		HostID:         value(v, "binding:host_id", ""),
		VNICType:       value(v, "binding:vnic_type", "normal"),
		AdminStateUp:   value(v, "admin_state_up", true),
		PortSecurity:   value(v, "port_security_enabled", n.PortSecurity),
		SecurityGroups: stringsOf(v["security_groups"]),
	}
	if _, ok := v["security_groups"]; !ok && p.PortSecurity && !p.automatic() && !p.onRouter() {
		p.SecurityGroups = []string{c.securityGroup(p.Project)}
	}
	if err := c.address(&p, n, v); err != nil {
		return nil, err
	}
	c.ports.put(p.ID, p)
	return p.view(), nil
}

func (c *call) address(p *port, n network, v values) (err error) {
	if p.MAC == "" {
		p.MAC = randomMAC()
	}
	for other := range c.portsOn(n.ID) {
		if other.MAC == p.MAC {
			return conflict("MacAddressInUse", "Unable to complete operation for network %s. The mac address %s is in use.", n.ID, p.MAC)
		}
	}
	p.FixedIPs, err = c.allocate(*p, n, v)
	return err
}

// randomMAC has the prefix that Neutron's base_mac has by default.
func randomMAC() string {
	mac := net.HardwareAddr{0xfa, 0x16, 0x3e, 0, 0, 0}
	_, _ = rand.Read(mac[3:])
	return mac.String()
}

func macAddress(v any) string {
	s, _ := v.(string)
	if mac, err := net.ParseMAC(s); err != nil || len(mac) != 6 {
		return "'" + text(v) + "' is not a valid MAC address"
	}
	return ""
}

func (c *call) updatePort(id string, v values) error {
	if len(v) == 0 {
		return nil
	}
	p, _ := c.ports.get(id)
	p.AdminStateUp = value(v, "admin_state_up", p.AdminStateUp)
	p.DeviceID = value(v, "device_id", p.DeviceID)
	p.DeviceOwner = value(v, "device_owner", p.DeviceOwner)
	p.update(v)
	c.ports.put(id, p)
	return nil
}
