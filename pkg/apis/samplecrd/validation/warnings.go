package validation

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// Warnings returns what is accepted but probably not meant, of what is new:
// host bits in a CIDR, and a gateway outside of it. oldNetwork is nil on create.
func Warnings(newNetwork, oldNetwork *samplecrd.Network, subnetPath func(int) *field.Path) []string {
	var warnings []string
	subnets := newNetwork.Spec.Subnets
	kept := keptSubnets(subnets, ptr.Deref(oldNetwork, samplecrd.Network{}).Spec.Subnets)
	for i, subnet := range subnets {
		prefix, err := netip.ParsePrefix(subnet.CIDR)
		if err != nil {
			continue
		}
		old := ptr.Deref(kept[i], samplecrd.Subnet{})
		masked := prefix.Masked()
		if subnet.CIDR != old.CIDR && prefix != masked {
			warnings = append(warnings, fmt.Sprintf("%s: the host bits of %q are ignored, the subnet is %s",
				subnetPath(i).Child("cidr"), subnet.CIDR, masked))
		}
		gateway, err := netip.ParseAddr(subnet.Gateway)
		if err == nil && subnet.Gateway != old.Gateway && !masked.Contains(gateway) {
			warnings = append(warnings, fmt.Sprintf("%s: %s is outside of the CIDR %s",
				subnetPath(i).Child("gateway"), gateway, masked))
		}
	}
	return warnings
}
