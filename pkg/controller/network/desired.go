package network

import (
	"fmt"
	"net/netip"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// newDesired puts a Network into Neutron's words. The API server has checked
// the spec, but what etcd holds may be older, or written behind its back: an
// address that does not parse is an error that names its field.
func newDesired(network *samplecrdv1.Network, marker string) (desired, error) {
	spec := &network.Spec
	openStack := samplecrdv1.OpenStack{}
	if spec.OpenStack != nil {
		openStack = *spec.OpenStack
	}
	want := desired{
		marker:    marker,
		takenOver: openStack.NetworkID != "",
		network: neutron.NetworkAttributes{
			External:     toggle(openStack.External),
			Shared:       toggle(openStack.Shared),
			PortSecurity: toggle(openStack.PortSecurity),
			Provider:     newProvider(openStack.Provider),
		},
	}
	if spec.AdminState != "" {
		up := spec.AdminState == samplecrdv1.AdminStateUp
		want.network.AdminStateUp = &up
	}
	if spec.MTU != nil {
		mtu := int(*spec.MTU)
		want.network.MTU = &mtu
	}
	if !want.takenOver {
		want.network.Name, want.network.Description = &network.Name, &marker
	}
	for i, subnet := range subnetsOf(spec) {
		path := "spec"
		if i > 0 {
			path = fmt.Sprintf("spec.additionalSubnets[%d]", i-1)
		}
		w, err := newDesiredSubnet(subnet, want.takenOver)
		if err != nil {
			return desired{}, fmt.Errorf("%s.%w", path, err)
		}
		w.attributes.Name, w.attributes.Description = &network.Name, &marker
		want.subnets = append(want.subnets, w)
	}
	return want, nil
}

// subnetsOf returns the subnets of a spec, the flat one first.
func subnetsOf(spec *samplecrdv1.NetworkSpec) []samplecrdv1.Subnet {
	if spec.CIDR == "" && len(spec.AdditionalSubnets) == 0 {
		return nil
	}
	return append([]samplecrdv1.Subnet{spec.Subnet}, spec.AdditionalSubnets...)
}

func newDesiredSubnet(subnet samplecrdv1.Subnet, takenOver bool) (desiredSubnet, error) {
	cidr, err := netip.ParsePrefix(subnet.CIDR)
	if err != nil {
		return desiredSubnet{}, fmt.Errorf("cidr: %q is not an address range", subnet.CIDR)
	}
	w := desiredSubnet{cidr: cidr.Masked()}
	a := &w.attributes
	a.CIDR = w.cidr.String()
	a.EnableDHCP = toggle(subnet.DHCP)
	if subnet.IPv6 != nil {
		a.IPv6AddressMode, a.IPv6RAMode = ipv6Mode(subnet.IPv6.AddressMode), ipv6Mode(subnet.IPv6.RAMode)
	}
	switch subnet.Gateway {
	case "":
	case samplecrdv1.GatewayNone:
		a.Gateway = new("")
	default:
		gateway, err := netip.ParseAddr(subnet.Gateway)
		if err != nil {
			return desiredSubnet{}, fmt.Errorf("gateway: %q is not an address", subnet.Gateway)
		}
		a.Gateway = new(gateway.String())
	}
	if len(subnet.AllocationPools) > 0 {
		pools := make([]neutron.AllocationPool, len(subnet.AllocationPools))
		for i, p := range subnet.AllocationPools {
			pools[i] = neutron.AllocationPool{Start: canonicalAddress(p.Start), End: canonicalAddress(p.End)}
		}
		a.AllocationPools = &pools
	}
	// Absent lists are empty ones, but not in what is taken over.
	if !takenOver || len(subnet.DNSNameservers) > 0 {
		servers := make([]string, len(subnet.DNSNameservers))
		for i, s := range subnet.DNSNameservers {
			servers[i] = canonicalAddress(s)
		}
		a.DNSNameservers = &servers
	}
	if !takenOver || len(subnet.HostRoutes) > 0 {
		routes := make([]neutron.HostRoute, len(subnet.HostRoutes))
		for i, r := range subnet.HostRoutes {
			destination, err := netip.ParsePrefix(r.Destination)
			if err != nil {
				return desiredSubnet{}, fmt.Errorf("hostRoutes[%d].destination: %q is not an address range", i, r.Destination)
			}
			routes[i] = neutron.HostRoute{Destination: destination.Masked().String(), NextHop: canonicalAddress(r.NextHop)}
		}
		a.HostRoutes = &routes
	}
	return w, nil
}

func newProvider(p *samplecrdv1.Provider) *neutron.Provider {
	if p == nil {
		return nil
	}
	provider := &neutron.Provider{NetworkType: p.NetworkType, PhysicalNetwork: p.PhysicalNetwork}
	if p.SegmentationID != nil {
		provider.SegmentationID = int(*p.SegmentationID)
	}
	return provider
}

func toggle(t samplecrdv1.Toggle) *bool {
	if t == "" {
		return nil
	}
	return new(t == samplecrdv1.Enabled)
}

// ipv6Mode returns Neutron's word.
func ipv6Mode(mode samplecrdv1.IPv6Mode) string {
	switch mode {
	case samplecrdv1.IPv6SLAAC:
		return "slaac"
	case samplecrdv1.IPv6DHCPv6Stateful:
		return "dhcpv6-stateful"
	case samplecrdv1.IPv6DHCPv6Stateless:
		return "dhcpv6-stateless"
	}
	return ""
}
