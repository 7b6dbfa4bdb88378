package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

func TestWarnings(t *testing.T) {
	hostBits := tweakIPv4(func(s *samplecrd.Subnet) { s.CIDR = "192.168.1.0/16" })
	for name, tc := range map[string]struct {
		stored, changed []tweak
		create          bool
		want            []string
	}{
		"nothing to warn of":             {create: true},
		"no gateway, or any":             {create: true, changed: []tweak{gateway4("None"), gateway6("")}},
		"garbage is for validation":      {create: true, changed: []tweak{cidr4("garbage"), gateway4("x"), gateway6("x")}},
		"no subnets":                     {create: true, changed: []tweak{noSubnets()}},
		"the host bits of the course":    {create: true, changed: []tweak{hostBits}, want: []string{`{0}.cidr: the host bits of "192.168.1.0/16" are ignored, the subnet is 192.168.0.0/16`}},
		"host bits of a later subnet":    {create: true, changed: []tweak{cidr6("fd00::5/64")}, want: []string{`{1}.cidr: the host bits of "fd00::5/64" are ignored, the subnet is fd00::/64`}},
		"a gateway outside":              {create: true, changed: []tweak{gateway4("10.0.0.1")}, want: []string{`{0}.gateway: 10.0.0.1 is outside of the CIDR 192.168.0.0/16`}},
		"a gateway within the host bits": {create: true, changed: []tweak{hostBits, gateway4("192.168.0.1")}, want: []string{`{0}.cidr: the host bits of "192.168.1.0/16" are ignored, the subnet is 192.168.0.0/16`}},
		"an IPv6 gateway outside":        {create: true, changed: []tweak{gateway6("fe80::1")}, want: []string{`{1}.gateway: fe80::1 is outside of the CIDR fd00::/64`}},

		"what is stored was warned of":             {stored: []tweak{hostBits, gateway4("10.0.0.1")}, changed: []tweak{hostBits, gateway4("10.0.0.1"), mtu(1400)}},
		"another gateway outside of a kept subnet": {stored: []tweak{hostBits, gateway4("10.0.0.1")}, changed: []tweak{hostBits, gateway4("10.0.0.2")}, want: []string{`{0}.gateway: 10.0.0.2 is outside of the CIDR 192.168.0.0/16`}},
		"a kept CIDR gets host bits":               {changed: []tweak{hostBits}, want: []string{`{0}.cidr: the host bits of "192.168.1.0/16" are ignored, the subnet is 192.168.0.0/16`}},
		"a new CIDR leaves the gateway outside":    {changed: []tweak{tweakIPv4(func(s *samplecrd.Subnet) { s.CIDR = "10.0.0.0/24" })}, want: []string{`{0}.gateway: 192.168.1.1 is outside of the CIDR 10.0.0.0/24`}},
		"a subnet with host bits comes beside a kept one": {
			stored:  []tweak{hostBits, onlyIPv4()},
			changed: []tweak{hostBits, cidr6("fd00::1/64")},
			want:    []string{`{1}.cidr: the host bits of "fd00::1/64" are ignored, the subnet is fd00::/64`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stored *samplecrd.Network
			if !tc.create {
				stored = validNetwork(tc.stored...)
			}
			for version := range places {
				got := Warnings(validNetwork(tc.changed...), stored, SubnetPath(version))
				if diff := cmp.Diff(expand(version, tc.want), got); diff != "" {
					t.Errorf("%s: unexpected warnings (-want +got):\n%s", version, diff)
				}
			}
		})
	}
}
