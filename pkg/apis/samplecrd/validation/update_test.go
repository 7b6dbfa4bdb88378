package validation

import (
	"slices"
	"testing"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

func TestValidateNetworkUpdate(t *testing.T) {
	label := func(n *samplecrd.Network) { n.Labels = map[string]string{"a": "b"} }
	swap := tweakSpec(func(s *samplecrd.NetworkSpec) { slices.Reverse(s.Subnets) })
	for name, tc := range map[string]struct {
		stored, changed []tweak
		want            []string
	}{
		"nothing changes": {},
		"metadata follows the rules of an update": {
			changed: []tweak{func(n *samplecrd.Network) { n.Name = "other" }},
			want:    []string{`metadata.name: Invalid value: "other": field is immutable`},
		},
		"what may change":                  {changed: []tweak{gateway4("192.168.1.2"), nameservers4("8.8.8.8"), mtu(1400), deletionPolicy("Retain")}},
		"a subnet is replaced":             {changed: []tweak{cidr4("10.0.0.0/24")}},
		"a subnet goes":                    {changed: []tweak{onlyIPv4()}},
		"a subnet comes":                   {stored: []tweak{onlyIPv4()}},
		"the subnets change places":        {changed: []tweak{swap}},
		"credentials may change":           {stored: []tweak{credentials("a", "b")}, changed: []tweak{credentials("c", "d")}},
		"a CIDR is written with host bits": {changed: []tweak{tweakIPv4(func(s *samplecrd.Subnet) { s.CIDR = "192.168.1.0/16" })}},
		"a network of ours is not observed later": {
			changed: []tweak{observe(), noSubnets(), deletionPolicy("Retain")},
			want:    []string{"spec.openStack.networkID: Required value"},
		},
		"a network taken over is observed from now on": {
			stored:  []tweak{noSubnets(), takeOver(testNetworkID)},
			changed: []tweak{noSubnets(), takeOver(testNetworkID), observe()},
		},

		"networkID is set": {
			changed: []tweak{takeOver(testNetworkID)},
			want:    []string{`spec.openStack.networkID: Invalid value: "1c7d7f0e-9d6c-4b59-a4a3-6a0d3b6f2b11": field is immutable`},
		},
		"networkID is cleared": {
			stored: []tweak{takeOver(testNetworkID)},
			want:   []string{`spec.openStack.networkID: Invalid value: "": field is immutable`},
		},
		"provider is set": {
			changed: []tweak{physical("vlan", "physnet1", 7)},
			want:    []string{"spec.openStack.provider: Invalid value: field is immutable"},
		},
		"provider is cleared": {
			stored: []tweak{physical("vlan", "physnet1", 7)},
			want:   []string{"spec.openStack.provider: Invalid value: field is immutable"},
		},
		"the segment changes": {
			stored:  []tweak{physical("vlan", "physnet1", 7)},
			changed: []tweak{physical("vlan", "physnet1", 8)},
			want:    []string{"spec.openStack.provider: Invalid value: field is immutable"},
		},
		"an equal provider stays":            {stored: []tweak{physical("vlan", "p", 7)}, changed: []tweak{physical("vlan", "p", 7), mtu(1400)}},
		"an empty provider is no provider":   {changed: []tweak{physical("", "")}},
		"an empty openStack is no openStack": {stored: []tweak{tweakOpenStack(func(*samplecrd.OpenStack) {})}},
		"the modes of a kept subnet change": {
			stored:  []tweak{modes6("SLAAC", "SLAAC")},
			changed: []tweak{modes6("DHCPv6Stateful", "DHCPv6Stateful")},
			want: []string{
				`{1}.ipv6.addressMode: Invalid value: "DHCPv6Stateful": field is immutable`,
				`{1}.ipv6.raMode: Invalid value: "DHCPv6Stateful": field is immutable`,
			},
		},
		"the modes of a kept subnet are set, while its CIDR is written in other words": {
			changed: []tweak{cidr6("fd00::5/64"), modes6("SLAAC", "")},
			want:    []string{`{1}.ipv6.addressMode: Invalid value: "SLAAC": field is immutable`},
		},
		"the modes of a kept subnet are cleared, while it changes places": {
			stored:  []tweak{modes6("SLAAC", "")},
			changed: []tweak{swap},
			want:    []string{`{0}.ipv6.addressMode: Invalid value: "": field is immutable`},
		},
		"empty modes are no modes": {changed: []tweak{modes6("", "")}},
		"the modes of a replaced subnet change": {
			stored:  []tweak{modes6("SLAAC", "SLAAC")},
			changed: []tweak{cidr6("fd01::/64"), modes6("DHCPv6Stateful", "")},
		},

		"a new value must be valid": {
			changed: []tweak{gateway4("192.168.0.0"), mtu(1)},
			want: []string{
				"spec.mtu: Invalid value: 1: must be between 68 and 9216, inclusive",
				`{0}.gateway: Invalid value: "192.168.0.0": must not be the network address 192.168.0.0`,
			},
		},
		"a field that was valid until another changed": {
			stored:  []tweak{cidr4("10.0.0.0/31"), gateway4("None"), dhcp4(samplecrd.Disabled)},
			changed: []tweak{cidr4("10.0.0.0/31"), gateway4("None")},
			want:    []string{`{0}.cidr: Invalid value: "10.0.0.0/31": a subnet with DHCP must have a prefix of at most /30`},
		},
		"IPv6 comes to a network with a small mtu": {
			stored:  []tweak{onlyIPv4(), mtu(1000)},
			changed: []tweak{mtu(1000)},
			want:    []string{"spec.mtu: Invalid value: 1000: must be at least 1280 with an IPv6 subnet"},
		},
		"stored garbage does not block a label": {
			stored:  []tweak{cidr4("garbage"), mtu(1)},
			changed: []tweak{cidr4("garbage"), mtu(1), label},
		},
		"stored garbage does not block another field": {
			stored:  []tweak{cidr4("garbage"), mtu(1), deletionPolicy("x"), credentials("", "")},
			changed: []tweak{cidr4("garbage"), mtu(1), deletionPolicy("x"), credentials("", ""), gateway6("None")},
		},
		"a stored bad value does not block another field of its subnet, or its move": {
			stored:  []tweak{gateway4("192.168.0.0")},
			changed: []tweak{gateway4("192.168.0.0"), nameservers4("8.8.8.8"), swap},
		},
		"stored garbage may not become other garbage": {
			stored:  []tweak{gateway4("x"), mtu(1)},
			changed: []tweak{gateway4("y"), mtu(2)},
			want: []string{
				"spec.mtu: Invalid value: 2: must be between 68 and 9216, inclusive",
				`{0}.gateway: Invalid value: "y": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff), or "None"`,
			},
		},
		"stored garbage may be repaired": {stored: []tweak{cidr4("garbage"), mtu(1), gateway6("x")}},
		"a stored overlap does not block another field": {
			stored:  []tweak{cidr4("10.0.0.0/16"), cidr6("10.0.0.0/24")},
			changed: []tweak{cidr4("10.0.0.0/16"), cidr6("10.0.0.0/24"), nameservers4("8.8.8.8")},
		},
		"a new subnet may not overlap a kept one after it": {
			stored:  []tweak{cidr6("10.0.0.0/24")},
			changed: []tweak{cidr4("10.0.0.0/16"), cidr6("10.0.0.0/24")},
			want:    []string{`{0}.cidr: Invalid value: "10.0.0.0/16": must not overlap 10.0.0.0/24 of {1}.cidr`},
		},
		"a copy of a kept subnet is new": {
			stored:  []tweak{onlyIPv4()},
			changed: []tweak{cidr6("192.168.0.0/16")},
			want:    []string{`{1}.cidr: Invalid value: "192.168.0.0/16": must not overlap 192.168.0.0/16 of {0}.cidr`},
		},
		"the last subnet can't go": {
			changed: []tweak{noSubnets()},
			want:    []string{"{subnets}: Required value"},
		},

		"the spec can't change while the object is being deleted, whatever is in it": {
			stored:  []tweak{deleting()},
			changed: []tweak{deleting(), cidr4("garbage")},
			want:    []string{"spec: Forbidden: must not be changed while the Network is being deleted"},
		},
		"metadata can change while the object is being deleted": {
			stored:  []tweak{deleting(), cidr4("garbage"), func(n *samplecrd.Network) { n.Finalizers = []string{samplecrd.NeutronFinalizer} }},
			changed: []tweak{deleting(), cidr4("garbage")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version := range places {
				errs := ValidateNetworkUpdate(validNetwork(tc.changed...), validNetwork(tc.stored...), SubnetPath(version))
				wantErrors(t, version, errs, tc.want)
			}
		})
	}
}
