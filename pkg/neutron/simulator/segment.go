package simulator

import (
	"iter"
	"slices"
)

// The recorded server has one physical network with VLANs to choose from.
const (
	vlanNetwork            = "physnet1"
	firstVLAN, lastVLAN    = 100, 199
	firstVNI, lastVNI      = 1, 1<<24 - 1
	tunnelMTU, plainMTU    = 1450, 1500
	minVLANTag, maxVLANTag = 1, 4094
)

// segment is what carries a network: the provider attributes.
type segment struct {
	Type            string
	PhysicalNetwork string
	ID              int // 0: none
}

// mtu is the MTU of a network on the segment for the one asked for, in bytes, where 0 asks for the largest.
func (s segment) mtu(asked int) (int, error) {
	largest := plainMTU
	if s.Type == "vxlan" || s.Type == "geneve" {
		largest = tunnelMTU
	}
	if asked > largest {
		return 0, invalidInput("Requested MTU is too big, maximum is %d", largest)
	}
	if asked == 0 {
		return largest, nil
	}
	return asked, nil
}

// reserveSegment chooses what is left open in the provider attributes of a new network.
func (c *call) reserveSegment(v values) (segment, error) {
	s := segment{
		Type:            value(v, "provider:network_type", ""),
		PhysicalNetwork: value(v, "provider:physical_network", ""),
		ID:              value(v, "provider:segmentation_id", 0),
	}
	_, numbered := v["provider:segmentation_id"]
	switch s.Type {
	case "":
		if s.PhysicalNetwork != "" || numbered {
			return s, invalidInput("network_type required")
		}
		s.Type = "vxlan"
		return c.reserveTunnel(s, false)
	case "vxlan", "geneve":
		if s.PhysicalNetwork != "" {
			return s, invalidInput("provider:physical_network specified for %s network", s.Type)
		}
		return c.reserveTunnel(s, numbered)
	case "vlan":
		return c.reserveVLAN(s, numbered)
	case "flat":
		return c.reserveFlat(s)
	case "local":
		if s.PhysicalNetwork != "" {
			return s, invalidInput("physical_network prohibited for local provider network")
		}
		if s.ID != 0 {
			return s, invalidInput("segmentation_id prohibited for local provider network")
		}
		return s, nil
	}
	return s, invalidInput("network_type value '%s' not supported", s.Type)
}

// change takes over the provider attributes of an update. Only a VLAN can move.
func (c *call) change(s segment, v values) (segment, error) {
	if kind, network := value(v, "provider:network_type", s.Type), value(v, "provider:physical_network", s.PhysicalNetwork); kind != s.Type || network != s.PhysicalNetwork {
		return s, invalidInput("Plugin does not support updating the following provider network attributes: provider:network_type, provider:physical_network")
	}
	id := value(v, "provider:segmentation_id", 0)
	if id == 0 {
		return s, nil
	}
	if s.Type != "vlan" {
		return s, invalidInput("Only VLAN type networks can be updated.")
	}
	s.ID = id
	return c.reserveVLAN(s, true)
}

func (c *call) reserveTunnel(s segment, numbered bool) (segment, error) {
	if !numbered {
		return c.reserveFree(s, firstVNI, lastVNI)
	}
	if c.segmentTaken(s) {
		return s, conflict("TunnelIdInUse", "Unable to create the network. The tunnel ID %d is in use.", s.ID)
	}
	return s, nil
}

func (c *call) reserveVLAN(s segment, numbered bool) (segment, error) {
	switch {
	case s.PhysicalNetwork == "" && numbered:
		return s, invalidInput("segmentation_id requires physical_network for VLAN provider network")
	case s.PhysicalNetwork == "":
		s.PhysicalNetwork = vlanNetwork
	case s.PhysicalNetwork != vlanNetwork:
		return s, invalidInput("physical_network '%s' unknown for VLAN provider network", s.PhysicalNetwork)
	}
	if !numbered {
		return c.reserveFree(s, firstVLAN, lastVLAN)
	}
	if s.ID < minVLANTag || s.ID > maxVLANTag {
		return s, invalidInput("segmentation_id out of range (%d through %d)", minVLANTag, maxVLANTag)
	}
	if c.segmentTaken(s) {
		return s, conflict("VlanIdInUse", "Unable to create the network. The VLAN %d on physical network %s is in use.", s.ID, s.PhysicalNetwork)
	}
	return s, nil
}

func (c *call) reserveFlat(s segment) (segment, error) {
	if s.PhysicalNetwork == "" {
		return s, invalidInput("physical_network required for flat provider network")
	}
	if s.ID != 0 {
		return s, invalidInput("segmentation_id prohibited for flat provider network")
	}
	if c.segmentTaken(s) {
		return s, conflict("FlatNetworkInUse", "Unable to create the flat network. Physical network %s is in use.", s.PhysicalNetwork)
	}
	return s, nil
}

// reserveFree takes the lowest segmentation id that no network has.
func (c *call) reserveFree(s segment, first, last int) (segment, error) {
	// With so many networks there is a free one among so many and one.
	used := make([]bool, min(last-first, len(c.networks.committed)+len(c.networks.changed))+1)
	for id := range c.segmentIDs(s) {
		if i := id - first; 0 <= i && i < len(used) {
			used[i] = true
		}
	}
	if free := slices.Index(used, false); free >= 0 {
		s.ID = first + free
		return s, nil
	}
	return s, errNoSegment
}

// segmentIDs are those in use with the type and physical network of s.
func (c *call) segmentIDs(s segment) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := range c.networks.all() {
			if n.Segment.Type == s.Type && n.Segment.PhysicalNetwork == s.PhysicalNetwork && !yield(n.Segment.ID) {
				return
			}
		}
	}
}

func (c *call) segmentTaken(s segment) bool {
	for id := range c.segmentIDs(s) {
		if id == s.ID {
			return true
		}
	}
	return false
}
