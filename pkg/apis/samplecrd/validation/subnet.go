package validation

import (
	"fmt"
	"net/netip"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// Limits of one subnet. Those on name servers and routes are Neutron's
// defaults of max_dns_nameservers and max_subnet_host_routes.
const (
	maxAllocationPools = 32
	maxDNSNameservers  = 5
	maxHostRoutes      = 20
)

// reservedRanges can't be subnets (RFC 6890, RFC 5771, RFC 4291).
var reservedRanges = []struct {
	prefix netip.Prefix
	use    string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("::/127"), "unspecified and loopback"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// MaskedCIDR returns the identity of a subnet: its CIDR with the host bits
// cleared, in canonical text. What does not parse is its own identity.
func MaskedCIDR(cidr string) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return cidr
	}
	return prefix.Masked().String()
}

// validateSubnets checks the subnets one by one and against each other.
// oldSpec is nil on create.
func validateSubnets(newSpec, oldSpec *samplecrd.NetworkSpec, subnetPath func(int) *field.Path) field.ErrorList {
	if newSpec.ManagementPolicy == samplecrd.ManagementPolicyObserve {
		return nil
	}
	var errs field.ErrorList
	takenOver := networkID(newSpec) != ""
	// More are refused as a whole; without a bound their pairs would be too many to compare.
	subnets := newSpec.Subnets[:min(len(newSpec.Subnets), maxSubnets)]
	kept := keptSubnets(subnets, ptr.Deref(oldSpec, samplecrd.NetworkSpec{}).Subnets)
	for i := range subnets {
		fldPath := subnetPath(i)
		subnetErrs := validateSubnet(&subnets[i], takenOver, fldPath)
		if old := kept[i]; old != nil {
			subnetErrs = introduced(subnetErrs, validateSubnet(old, takenOver, fldPath))
			subnetErrs = append(subnetErrs, validateImmutableModes(subnets[i].IPv6, old.IPv6, fldPath.Child("ipv6"))...)
		}
		errs = append(errs, subnetErrs...)
	}
	return append(errs, validateOverlap(subnets, kept, subnetPath)...)
}

// keptSubnets returns for each subnet the stored one that it continues, nil
// for a new one. A stored subnet is continued once, so a copy of it is new.
func keptSubnets(subnets, stored []samplecrd.Subnet) []*samplecrd.Subnet {
	byIdentity := map[string][]*samplecrd.Subnet{}
	for i := range stored {
		identity := MaskedCIDR(stored[i].CIDR)
		byIdentity[identity] = append(byIdentity[identity], &stored[i])
	}
	kept := make([]*samplecrd.Subnet, len(subnets))
	for i := range subnets {
		identity := MaskedCIDR(subnets[i].CIDR)
		if same := byIdentity[identity]; len(same) > 0 {
			kept[i], byIdentity[identity] = same[0], same[1:]
		}
	}
	return kept
}

// validateSubnet checks one subnet. Of a network taken over an absent field
// means "as it is", so nothing is concluded from it.
func validateSubnet(subnet *samplecrd.Subnet, takenOver bool, fldPath *field.Path) field.ErrorList {
	prefix, errs := parseCIDR(subnet.CIDR, fldPath.Child("cidr"))
	if maxBits := prefix.Addr().BitLen() - 2; prefix.IsValid() && subnet.DHCP == samplecrd.Enabled && prefix.Bits() > maxBits {
		errs = append(errs, field.Invalid(fldPath.Child("cidr"), subnet.CIDR,
			fmt.Sprintf("a subnet with DHCP must have a prefix of at most /%d", maxBits)))
	}
	errs = append(errs, validateGateway(subnet, prefix, fldPath.Child("gateway"))...)
	errs = append(errs, validatePools(subnet.AllocationPools, prefix, gatewayInForce(subnet, prefix, takenOver), fldPath.Child("allocationPools"))...)
	errs = append(errs, validateNameservers(subnet.DNSNameservers, prefix, fldPath.Child("dnsNameservers"))...)
	errs = append(errs, validateRoutes(subnet.HostRoutes, prefix, fldPath.Child("hostRoutes"))...)
	errs = append(errs, validateToggle(fldPath.Child("dhcp"), subnet.DHCP)...)
	return append(errs, validateIPv6(subnet, prefix, fldPath)...)
}

// parseCIDR returns the masked prefix. It is invalid where the text is, and
// then no rule that relates another field to it applies.
func parseCIDR(cidr string, fldPath *field.Path) (netip.Prefix, field.ErrorList) {
	if cidr == "" {
		return netip.Prefix{}, field.ErrorList{field.Required(fldPath, "")}
	}
	prefix, _ := netip.ParsePrefix(cidr)
	if prefix.Addr().Is4In6() {
		return netip.Prefix{}, field.ErrorList{field.Invalid(fldPath, cidr, "must not be a range of IPv4-mapped IPv6 addresses")}
	}
	if errs := utilvalidation.IsValidInterfaceAddress(fldPath, cidr); len(errs) > 0 {
		return netip.Prefix{}, errs
	}
	prefix = prefix.Masked()
	if prefix.Bits() == 0 {
		return prefix, field.ErrorList{field.Invalid(fldPath, cidr, "must have a prefix of at least /1")}
	}
	for _, reserved := range reservedRanges {
		if prefix.Overlaps(reserved.prefix) {
			return prefix, field.ErrorList{field.Invalid(fldPath, cidr, fmt.Sprintf("must not overlap %s (%s)", reserved.prefix, reserved.use))}
		}
	}
	return prefix, nil
}

func validateGateway(subnet *samplecrd.Subnet, prefix netip.Prefix, fldPath *field.Path) field.ErrorList {
	if isPointToPoint(prefix) && subnet.DHCP == samplecrd.Disabled && subnet.Gateway != samplecrd.GatewayNone {
		return field.ErrorList{field.Invalid(fldPath, subnet.Gateway, `must be "None" in an IPv4 subnet with a prefix of /31 or /32`)}
	}
	if subnet.Gateway == "" || subnet.Gateway == samplecrd.GatewayNone {
		return nil
	}
	gateway, errs := parseAddr(subnet.Gateway, prefix, fldPath)
	switch {
	case len(errs) > 0:
		for _, err := range errs {
			err.Detail += `, or "None"`
		}
	case !gateway.Is4() || !prefix.IsValid() || isPointToPoint(prefix):
		// IPv6 has no broadcast address, and a gateway at the network address is Neutron's own choice.
	case gateway == prefix.Addr():
		errs = append(errs, field.Invalid(fldPath, subnet.Gateway, fmt.Sprintf("must not be the network address %s", gateway)))
	case gateway == lastAddr(prefix):
		errs = append(errs, field.Invalid(fldPath, subnet.Gateway, fmt.Sprintf("must not be the broadcast address %s", gateway)))
	}
	return errs
}

// gatewayInForce is the declared gateway or the one that Neutron will choose;
// invalid where there is none or it can't be known. The choice for IPv6 differs
// between releases, and where it is the network address no pool can hold it.
func gatewayInForce(subnet *samplecrd.Subnet, prefix netip.Prefix, takenOver bool) netip.Addr {
	if subnet.Gateway == "" && !takenOver && prefix.Addr().Is4() && !isPointToPoint(prefix) {
		return prefix.Addr().Next()
	}
	gateway, _ := netip.ParseAddr(subnet.Gateway)
	return gateway
}

func validateIPv6(subnet *samplecrd.Subnet, prefix netip.Prefix, fldPath *field.Path) field.ErrorList {
	if subnet.IPv6 == nil {
		return nil
	}
	ipv6Path := fldPath.Child("ipv6")
	if prefix.Addr().Is4() {
		return field.ErrorList{field.Forbidden(ipv6Path, "must not be set in an IPv4 subnet")}
	}
	if subnet.DHCP == samplecrd.Disabled {
		return field.ErrorList{field.Forbidden(ipv6Path, "must not be set where dhcp is Disabled")}
	}
	choices := []samplecrd.IPv6Mode{samplecrd.IPv6SLAAC, samplecrd.IPv6DHCPv6Stateful, samplecrd.IPv6DHCPv6Stateless}
	address, ra := subnet.IPv6.AddressMode, subnet.IPv6.RAMode
	errs := validateEnum(ipv6Path.Child("addressMode"), address, choices...)
	errs = append(errs, validateEnum(ipv6Path.Child("raMode"), ra, choices...)...)
	if len(errs) > 0 {
		return errs
	}
	if address != "" && ra != "" && address != ra {
		errs = append(errs, field.Invalid(ipv6Path.Child("raMode"), ra, fmt.Sprintf("must be the addressMode %s, if both are set", address)))
	}
	// Hosts make their own address of the prefix and 64 bits (RFC 4862, RFC 4291 appendix A).
	for _, mode := range []samplecrd.IPv6Mode{samplecrd.IPv6SLAAC, samplecrd.IPv6DHCPv6Stateless} {
		if prefix.IsValid() && prefix.Bits() != 64 && (address == mode || ra == mode) {
			errs = append(errs, field.Invalid(fldPath.Child("cidr"), subnet.CIDR, fmt.Sprintf("must have the prefix /64 with the ipv6 mode %s", mode)))
		}
	}
	return errs
}

// validateImmutableModes takes an empty ipv6 for an absent one.
func validateImmutableModes(newIPv6, oldIPv6 *samplecrd.IPv6, fldPath *field.Path) field.ErrorList {
	newModes, oldModes := ptr.Deref(newIPv6, samplecrd.IPv6{}), ptr.Deref(oldIPv6, samplecrd.IPv6{})
	errs := apimachineryvalidation.ValidateImmutableField(newModes.AddressMode, oldModes.AddressMode, fldPath.Child("addressMode"))
	return append(errs, apimachineryvalidation.ValidateImmutableField(newModes.RAMode, oldModes.RAMode, fldPath.Child("raMode"))...)
}

// validateOverlap blames the later subnet of a pair, or the one that is new.
func validateOverlap(subnets []samplecrd.Subnet, kept []*samplecrd.Subnet, subnetPath func(int) *field.Path) field.ErrorList {
	var errs field.ErrorList
	prefixes := make([]netip.Prefix, len(subnets))
	for i := range subnets {
		prefixes[i], _ = netip.ParsePrefix(subnets[i].CIDR)
		for j := range i {
			if !prefixes[i].Overlaps(prefixes[j]) || kept[i] != nil && kept[j] != nil {
				continue
			}
			blamed, other := i, j
			if kept[i] != nil {
				blamed, other = j, i
			}
			errs = append(errs, field.Invalid(subnetPath(blamed).Child("cidr"), subnets[blamed].CIDR,
				fmt.Sprintf("must not overlap %s of %s", prefixes[other].Masked(), subnetPath(other).Child("cidr"))))
		}
	}
	return errs
}

func isIPv6(subnet samplecrd.Subnet) bool {
	prefix, err := netip.ParsePrefix(subnet.CIDR)
	return err == nil && prefix.Addr().Is6()
}

// isPointToPoint tells whether an IPv4 subnet is too small to have a network
// and a broadcast address (RFC 3021).
func isPointToPoint(prefix netip.Prefix) bool {
	return prefix.Addr().Is4() && prefix.Bits() > 30
}

// lastAddr is the last address of a valid prefix, for IPv4 the broadcast address.
func lastAddr(prefix netip.Prefix) netip.Addr {
	addr := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(addr)*8; bit++ {
		addr[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(addr)
	return last
}
