package neutron

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
)

var (
	_ networks.CreateOptsBuilder = networkCreate{}
	_ networks.UpdateOptsBuilder = networkUpdate{}
	_ subnets.CreateOptsBuilder  = subnetCreate{}
	_ subnets.UpdateOptsBuilder  = subnetUpdate{}
)

// The builders below stand in for gophercloud's own options, which cannot send
// an empty list of pools and need one wrapper for each extension.

type networkCreate struct{ NetworkAttributes }

func (c networkCreate) ToNetworkCreateMap() (map[string]any, error) {
	body := c.body()
	if p := c.Provider; p != nil {
		putSet(body, "provider:network_type", p.NetworkType)
		putSet(body, "provider:physical_network", p.PhysicalNetwork)
		putSet(body, "provider:segmentation_id", p.SegmentationID)
	}
	return map[string]any{"network": body}, nil
}

type networkUpdate struct {
	NetworkAttributes
	Revision *int `h:"If-Match"`
}

func (u networkUpdate) ToNetworkUpdateMap() (map[string]any, error) {
	return map[string]any{"network": u.body()}, nil
}

func (a NetworkAttributes) body() map[string]any {
	body := map[string]any{}
	put(body, "name", a.Name)
	put(body, "description", a.Description)
	put(body, "admin_state_up", a.AdminStateUp)
	put(body, "shared", a.Shared)
	put(body, "router:external", a.External)
	put(body, "port_security_enabled", a.PortSecurity)
	put(body, "mtu", a.MTU)
	return body
}

type subnetCreate struct {
	SubnetAttributes
	NetworkID string
	IPVersion int
}

func (c subnetCreate) ToSubnetCreateMap() (map[string]any, error) {
	body := c.body()
	body["network_id"] = c.NetworkID
	body["ip_version"] = c.IPVersion
	body["cidr"] = c.CIDR
	putSet(body, "ipv6_address_mode", c.IPv6AddressMode)
	putSet(body, "ipv6_ra_mode", c.IPv6RAMode)
	return map[string]any{"subnet": body}, nil
}

type subnetUpdate struct {
	SubnetAttributes
	Revision *int `h:"If-Match"`
}

func (u subnetUpdate) ToSubnetUpdateMap() (map[string]any, error) {
	return map[string]any{"subnet": u.body()}, nil
}

func (a SubnetAttributes) body() map[string]any {
	body := map[string]any{}
	put(body, "name", a.Name)
	put(body, "description", a.Description)
	put(body, "enable_dhcp", a.EnableDHCP)
	putList(body, "allocation_pools", a.AllocationPools)
	putList(body, "dns_nameservers", a.DNSNameservers)
	putList(body, "host_routes", a.HostRoutes)
	if put(body, "gateway_ip", a.Gateway); body["gateway_ip"] == "" {
		body["gateway_ip"] = nil
	}
	return body
}

func put[T any](body map[string]any, key string, value *T) {
	if value != nil {
		body[key] = *value
	}
}

func putSet[T comparable](body map[string]any, key string, value T) {
	var zero T
	if value != zero {
		body[key] = value
	}
}

// putList sends an empty list as [], never as null, which Neutron refuses.
func putList[T any](body map[string]any, key string, list *[]T) {
	if list != nil {
		body[key] = append([]T{}, *list...)
	}
}

// networkAnswer is a network with the provider attributes as Neutron sends
// them: flat, and with null for none.
type networkAnswer struct {
	Network
	NetworkType     *string `json:"provider:network_type"`
	PhysicalNetwork string  `json:"provider:physical_network"`
	SegmentationID  int     `json:"provider:segmentation_id"`
}

func (a networkAnswer) network() Network {
	n := a.Network
	if a.NetworkType != nil {
		n.Provider = &Provider{
			NetworkType:     *a.NetworkType,
			PhysicalNetwork: a.PhysicalNetwork,
			SegmentationID:  a.SegmentationID,
		}
	}
	return n
}

var errNoID = errors.New("answer holds no ID")

func extractNetwork(r gophercloud.Result) (*Network, error) {
	var answer networkAnswer
	if err := extract(r, "network", &answer); err != nil {
		return nil, err
	}
	if answer.ID == "" {
		return nil, errNoID
	}
	n := answer.network()
	return &n, nil
}

func extractSubnet(r gophercloud.Result) (*Subnet, error) {
	var s Subnet
	if err := extract(r, "subnet", &s); err != nil {
		return nil, err
	}
	if s.ID == "" {
		return nil, errNoID
	}
	return &s, nil
}

// extract decodes the value of key. gophercloud's own ExtractIntoStructPtr
// takes the answer {} for a resource without attributes.
func extract(r gophercloud.Result, key string, to any) error {
	var body map[string]json.RawMessage
	if err := r.ExtractInto(&body); err != nil {
		return err
	}
	if err := json.Unmarshal(body[key], to); err != nil {
		return fmt.Errorf("decode %q of the answer: %w", key, err)
	}
	return nil
}
