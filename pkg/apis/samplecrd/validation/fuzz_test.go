package validation

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// seedTexts are lists of texts separated by spaces, as textNetwork takes them.
var seedTexts = []string{
	"192.168.1.0/16 192.168.1.1 Enabled 192.168.2.1 192.168.2.9 8.8.8.8 10.0.0.0/8 192.168.1.2",
	"fd00::/64 fd00::1 Enabled fd00::2 fd00::9 2001:db8::1 fd01::/64 fd00::3 SLAAC SLAAC 1c7d7f0e-9d6c-4b59-a4a3-6a0d3b6f2b11 vlan physnet1 secret cloud",
	"10.0.0.0/31 None Disabled 10.0.0.0 10.0.0.1",
	"10.0.0.1/32 10.0.0.1 Disabled 10.0.0.1 10.0.0.1",
	"255.255.255.255/32 255.255.255.255 Enabled 255.255.255.255 255.255.255.255",
	"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 None  :: ::",
	"::ffff:10.0.0.0/120 ::ffff:10.0.0.1 Enabled ::ffff:10.0.0.2 ::ffff:10.0.0.3",
	"0.0.0.0/0 0.0.0.0", "::/0 ::", "garbage fe80::1%eth0 x y z", "10.0.0.0/-1", "/", "",
}

// textNetwork spreads texts over all fields, twice: the second subnet has them backwards.
func textNetwork(text string, number int32) *samplecrd.Network {
	texts := strings.Split(text, " ")
	at := func(i int) string { return texts[i%len(texts)] }
	subnet := func(at func(int) string) samplecrd.Subnet {
		return samplecrd.Subnet{
			CIDR: at(0), Gateway: at(1), DHCP: samplecrd.Toggle(at(2)),
			AllocationPools: []samplecrd.AllocationPool{{Start: at(3), End: at(4)}, {Start: at(4), End: at(5)}},
			DNSNameservers:  []string{at(5), at(3)},
			HostRoutes:      []samplecrd.HostRoute{{Destination: at(6), NextHop: at(7)}},
			IPv6:            &samplecrd.IPv6{AddressMode: samplecrd.IPv6Mode(at(8)), RAMode: samplecrd.IPv6Mode(at(9))},
		}
	}
	backwards := func(i int) string { return at(len(texts)*9 - i + 9) }
	return validNetwork(tweakSpec(func(s *samplecrd.NetworkSpec) {
		s.Subnets = []samplecrd.Subnet{subnet(at), subnet(backwards)}
		if number%2 == 0 {
			s.Subnets[0].IPv6 = nil
			s.Subnets = s.Subnets[:1]
		}
		s.MTU = &number
		s.ManagementPolicy = samplecrd.ManagementPolicy(at(15))
	}), takeOver(at(10)), physical(at(11), at(12), number), credentials(at(13), at(14)))
}

func FuzzValidateNetwork(f *testing.F) {
	for i, text := range seedTexts {
		f.Add(text, int32(i))
	}
	f.Fuzz(func(t *testing.T, text string, number int32) {
		network := textNetwork(text, number)
		for version := range places {
			if len(ValidateNetwork(network, SubnetPath(version))) > 0 || network.Spec.ManagementPolicy == samplecrd.ManagementPolicyObserve {
				continue
			}
			for _, subnet := range network.Spec.Subnets {
				if _, err := netip.ParsePrefix(subnet.CIDR); err != nil {
					t.Errorf("accepted the cidr %q", subnet.CIDR)
				}
				if masked := MaskedCIDR(subnet.CIDR); MaskedCIDR(masked) != masked {
					t.Errorf("%q is masked to %q, which is not masked", subnet.CIDR, masked)
				}
			}
		}
	})
}

func FuzzValidateNetworkUpdate(f *testing.F) {
	for i, text := range seedTexts {
		f.Add(text, seedTexts[len(seedTexts)-1-i], int32(i), int32(i/2))
	}
	f.Fuzz(func(t *testing.T, newText, oldText string, newNumber, oldNumber int32) {
		newNetwork, oldNetwork := textNetwork(newText, newNumber), textNetwork(oldText, oldNumber)
		for version := range places {
			ValidateNetworkUpdate(newNetwork, oldNetwork, SubnetPath(version))
			// Whatever is stored, a change of one other field is accepted.
			changed := oldNetwork.DeepCopy()
			changed.Spec.OpenStack.CredentialsRef = &samplecrd.CredentialsRef{SecretName: "secret", CloudName: "cloud"}
			if errs := ValidateNetworkUpdate(changed, oldNetwork, SubnetPath(version)); len(errs) > 0 {
				t.Errorf("what is stored blocks a change of credentials: %v", errs.ToAggregate())
			}
		}
	})
}

func FuzzWarnings(f *testing.F) {
	for i, text := range seedTexts {
		f.Add(text, seedTexts[len(seedTexts)-1-i], int32(i))
	}
	f.Fuzz(func(t *testing.T, newText, oldText string, number int32) {
		newNetwork, oldNetwork := textNetwork(newText, number), textNetwork(oldText, number)
		for version := range places {
			Warnings(newNetwork, nil, SubnetPath(version))
			Warnings(newNetwork, oldNetwork, SubnetPath(version))
			if warnings := Warnings(oldNetwork, oldNetwork, SubnetPath(version)); len(warnings) > 0 {
				t.Errorf("warned of what is stored: %q", warnings)
			}
		}
	})
}
