package network

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// newDesired puts a Network into Neutron's words. The API server has checked
// the spec, but what etcd holds may be of another release, or written behind
// its back: what can't be read is an error that names its field.
func newDesired(network *samplecrdv1.Network, marker string) (desired, error) {
	spec := &network.Spec
	openStack := samplecrdv1.OpenStack{}
	if spec.OpenStack != nil {
		openStack = *spec.OpenStack
	}
	if err := checkWords(spec, openStack); err != nil {
		return desired{}, err
	}
	want := desired{
		marker:    marker,
		takenOver: openStack.NetworkID != "",
		from:      network.Annotations[samplecrdv1.AnnotationTakeOverFrom],
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
	for i, subnet := range subnetsOf(spec, want.takenOver) {
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

// checkWords refuses words that have no meaning here: another release may know
// them, and a guess could open or cut a network.
func checkWords(spec *samplecrdv1.NetworkSpec, openStack samplecrdv1.OpenStack) error {
	onOff := []samplecrdv1.Toggle{"", samplecrdv1.Enabled, samplecrdv1.Disabled}
	if spec.ManagementPolicy == samplecrdv1.ManagementPolicyObserve && openStack.NetworkID == "" {
		return errors.New("spec.openStack.networkID: is needed to observe")
	}
	return cmp.Or(
		checkWord("spec.adminState", spec.AdminState, "", samplecrdv1.AdminStateUp, samplecrdv1.AdminStateDown),
		checkWord("spec.managementPolicy", spec.ManagementPolicy, "", samplecrdv1.ManagementPolicyManaged, samplecrdv1.ManagementPolicyObserve),
		checkWord("spec.openStack.external", openStack.External, onOff...),
		checkWord("spec.openStack.shared", openStack.Shared, onOff...),
		checkWord("spec.openStack.portSecurity", openStack.PortSecurity, onOff...),
	)
}

func checkWord[T ~string](field string, word T, known ...T) error {
	if slices.Contains(known, word) {
		return nil
	}
	return fmt.Errorf("%s: %q has no meaning here", field, word)
}

// subnetsOf returns the subnets of a spec, the flat one first. Only what is
// taken over can do without: there a spec may leave all as it is.
func subnetsOf(spec *samplecrdv1.NetworkSpec, takenOver bool) []samplecrdv1.Subnet {
	if takenOver && len(spec.AdditionalSubnets) == 0 && equality.Semantic.DeepEqual(spec.Subnet, samplecrdv1.Subnet{}) {
		return nil
	}
	return append([]samplecrdv1.Subnet{spec.Subnet}, spec.AdditionalSubnets...)
}

func newDesiredSubnet(subnet samplecrdv1.Subnet, takenOver bool) (desiredSubnet, error) {
	cidr, err := netip.ParsePrefix(subnet.CIDR)
	if err != nil {
		return desiredSubnet{}, fmt.Errorf("cidr: %q is not an address range", subnet.CIDR)
	}
	if err := checkWord("dhcp", subnet.DHCP, "", samplecrdv1.Enabled, samplecrdv1.Disabled); err != nil {
		return desiredSubnet{}, err
	}
	w := desiredSubnet{cidr: cidr.Masked()}
	a := &w.attributes
	a.CIDR = w.cidr.String()
	a.EnableDHCP = toggle(subnet.DHCP)
	if subnet.IPv6 != nil {
		modes := []samplecrdv1.IPv6Mode{"", samplecrdv1.IPv6SLAAC, samplecrdv1.IPv6DHCPv6Stateful, samplecrdv1.IPv6DHCPv6Stateless}
		if err := cmp.Or(checkWord("ipv6.addressMode", subnet.IPv6.AddressMode, modes...), checkWord("ipv6.raMode", subnet.IPv6.RAMode, modes...)); err != nil {
			return desiredSubnet{}, err
		}
		a.IPv6AddressMode, a.IPv6RAMode = ipv6Mode(subnet.IPv6.AddressMode), ipv6Mode(subnet.IPv6.RAMode)
	}
	switch subnet.Gateway {
	case "":
	case samplecrdv1.GatewayNone:
		a.Gateway = new("")
	default:
		gateway, err := address("gateway", subnet.Gateway)
		if err != nil {
			return desiredSubnet{}, err
		}
		a.Gateway = &gateway
	}
	if len(subnet.AllocationPools) > 0 {
		if a.AllocationPools, err = newPools(subnet.AllocationPools); err != nil {
			return desiredSubnet{}, err
		}
	}
	// Absent lists are empty ones, but not in what is taken over.
	if !takenOver || len(subnet.DNSNameservers) > 0 {
		if a.DNSNameservers, err = newNameservers(subnet.DNSNameservers); err != nil {
			return desiredSubnet{}, err
		}
	}
	if !takenOver || len(subnet.HostRoutes) > 0 {
		if a.HostRoutes, err = newHostRoutes(subnet.HostRoutes); err != nil {
			return desiredSubnet{}, err
		}
	}
	return w, nil
}

func newPools(pools []samplecrdv1.AllocationPool) (*[]neutron.AllocationPool, error) {
	out := make([]neutron.AllocationPool, len(pools))
	for i, p := range pools {
		var startErr, endErr error
		out[i].Start, startErr = address(fmt.Sprintf("allocationPools[%d].start", i), p.Start)
		out[i].End, endErr = address(fmt.Sprintf("allocationPools[%d].end", i), p.End)
		if err := cmp.Or(startErr, endErr); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

func newNameservers(servers []string) (*[]string, error) {
	out := make([]string, len(servers))
	for i, s := range servers {
		var err error
		if out[i], err = address(fmt.Sprintf("dnsNameservers[%d]", i), s); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

func newHostRoutes(routes []samplecrdv1.HostRoute) (*[]neutron.HostRoute, error) {
	out := make([]neutron.HostRoute, len(routes))
	for i, r := range routes {
		destination, err := netip.ParsePrefix(r.Destination)
		if err != nil {
			return nil, fmt.Errorf("hostRoutes[%d].destination: %q is not an address range", i, r.Destination)
		}
		out[i].Destination = destination.Masked().String()
		if out[i].NextHop, err = address(fmt.Sprintf("hostRoutes[%d].nextHop", i), r.NextHop); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// address returns the canonical text of an address, or an error that names the
// field that holds none.
func address(field, text string) (string, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return "", fmt.Errorf("%s: %q is not an address", field, text)
	}
	return a.String(), nil
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
