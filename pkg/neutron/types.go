package neutron

// Network is a network as Neutron shows it to the project.
// https://docs.openstack.org/api-ref/network/v2/#networks
type Network struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Description  string `json:"description"`
	ProjectID    string `json:"project_id"`
	Status       string `json:"status"` // ACTIVE, DOWN, BUILD or ERROR
	AdminStateUp bool   `json:"admin_state_up"`
	Shared       bool   `json:"shared"`
	External     bool   `json:"router:external"`
	MTU          int    `json:"mtu"` // bytes
	// PortSecurity is nil if the answer does not hold it.
	PortSecurity *bool `json:"port_security_enabled"`
	// Provider is nil if the answer does not hold it: only an administrator
	// sees it.
	Provider *Provider `json:"-"`
	// Revision grows with each change of the network or of one of its subnets.
	Revision int `json:"revision_number"`
}

// Provider is how a network is realised.
type Provider struct {
	NetworkType     string // flat, vlan, vxlan, ...
	PhysicalNetwork string // "" for a tunnelled network
	SegmentationID  int    // VLAN or tunnel ID; 0: none
}

// Subnet is a subnet as Neutron shows it to the project.
// https://docs.openstack.org/api-ref/network/v2/#subnets
type Subnet struct {
	ID          string `json:"id"`
	NetworkID   string `json:"network_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	ProjectID   string `json:"project_id"`
	CIDR        string `json:"cidr"`       // masked, canonical
	IPVersion   int    `json:"ip_version"` // 4 or 6
	Gateway     string `json:"gateway_ip"` // "": none
	EnableDHCP  bool   `json:"enable_dhcp"`
	// AllocationPools come in no particular order.
	AllocationPools []AllocationPool `json:"allocation_pools"`
	DNSNameservers  []string         `json:"dns_nameservers"`
	HostRoutes      []HostRoute      `json:"host_routes"`
	// IPv6AddressMode and IPv6RAMode are slaac, dhcpv6-stateful,
	// dhcpv6-stateless or empty.
	IPv6AddressMode string `json:"ipv6_address_mode"`
	IPv6RAMode      string `json:"ipv6_ra_mode"`
	// Revision grows with each change, from 0.
	Revision int `json:"revision_number"`
}

// AllocationPool is a range of addresses, both ends included.
type AllocationPool struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// HostRoute is a static route given to hosts by DHCP.
type HostRoute struct {
	Destination string `json:"destination"` // CIDR
	NextHop     string `json:"nexthop"`
}

// Port is what holds a network or subnet in use.
type Port struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	NetworkID   string `json:"network_id"`
	DeviceOwner string `json:"device_owner"` // such as network:dhcp or compute:nova
	DeviceID    string `json:"device_id"`
}

// NetworkAttributes are the attributes to send; a nil pointer is not sent.
type NetworkAttributes struct {
	Name, Description                            *string // at most 255 characters each
	AdminStateUp, Shared, External, PortSecurity *bool
	MTU                                          *int      // bytes
	Provider                                     *Provider // create only
}

// SubnetAttributes are the attributes to send; a nil pointer is not sent.
type SubnetAttributes struct {
	Name, Description *string // at most 255 characters each
	// Gateway that points to "" asks for no gateway.
	Gateway         *string
	EnableDHCP      *bool
	AllocationPools *[]AllocationPool
	DNSNameservers  *[]string
	HostRoutes      *[]HostRoute

	CIDR                        string // create only
	IPv6AddressMode, IPv6RAMode string // create only; "" is not sent
}

// NetworkFilter selects networks of the client's project. The zero value
// selects all of them.
type NetworkFilter struct {
	Description string // exact
}

// SubnetFilter selects subnets: those of one network, whoever owns them, or
// those of the client's project if NetworkID is empty.
type SubnetFilter struct {
	NetworkID   string
	Description string // exact
}
