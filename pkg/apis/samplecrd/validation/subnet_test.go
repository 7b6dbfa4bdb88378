package validation

import (
	"testing"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

func TestMaskedCIDR(t *testing.T) {
	for name, tc := range map[string]struct{ cidr, want string }{
		"host bits are cleared":                 {"192.168.1.0/16", "192.168.0.0/16"},
		"a masked CIDR stays":                   {"192.168.0.0/16", "192.168.0.0/16"},
		"IPv6 text becomes canonical":           {"FD00:0::5/64", "fd00::/64"},
		"a single address stays":                {"10.0.0.1/32", "10.0.0.1/32"},
		"garbage is its own identity":           {"garbage", "garbage"},
		"an address without prefix is garbage":  {"10.0.0.1", "10.0.0.1"},
		"leading zeros are garbage":             {"10.01.0.0/16", "10.01.0.0/16"},
		"a prefix that is too long is garbage":  {"10.0.0.0/33", "10.0.0.0/33"},
		"nothing is nothing":                    {"", ""},
		"a zone is garbage":                     {"fe80::1%eth0/64", "fe80::1%eth0/64"},
		"an IPv4-mapped range keeps its family": {"::ffff:10.0.0.1/120", "::ffff:10.0.0.0/120"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MaskedCIDR(tc.cidr); got != tc.want {
				t.Errorf("MaskedCIDR(%q) = %q, want %q", tc.cidr, got, tc.want)
			}
		})
	}
}

func TestValidateSubnets(t *testing.T) {
	for name, tc := range map[string]struct {
		tweaks []tweak
		want   []string
	}{
		"the course's CIDR with host bits": {tweaks: []tweak{cidr4("192.168.1.0/16"), gateway4("192.168.1.1")}},
		"a subnet needs a CIDR": {
			tweaks: []tweak{cidr4(""), cidr6("")},
			want:   []string{"{0}.cidr: Required value", "{1}.cidr: Required value"},
		},
		"the other fields are checked without a CIDR": {
			tweaks: []tweak{cidr4(""), gateway4("x"), pools4("", "y"), nameservers4("z"), routes4("10.1.0.0/16", "w")},
			want: []string{
				"{0}.cidr: Required value",
				`{0}.gateway: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff), or "None"`,
				"{0}.allocationPools[0].start: Required value",
				`{0}.allocationPools[0].end: Invalid value: "y": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
				`{0}.dnsNameservers[0]: Invalid value: "z": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
				`{0}.hostRoutes[0].nextHop: Invalid value: "w": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
			},
		},
		"a CIDR that is garbage": {
			tweaks: []tweak{cidr4("garbage")},
			want:   []string{`{0}.cidr: Invalid value: "garbage": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`},
		},
		"a CIDR without prefix": {
			tweaks: []tweak{cidr4("10.0.0.0")},
			want:   []string{`{0}.cidr: Invalid value: "10.0.0.0": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`},
		},
		"a prefix that is too long": {
			tweaks: []tweak{cidr4("10.0.0.0/33")},
			want:   []string{`{0}.cidr: Invalid value: "10.0.0.0/33": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`},
		},
		"a netmask for a prefix": {
			tweaks: []tweak{cidr4("10.0.0.0/255.255.0.0")},
			want:   []string{`{0}.cidr: Invalid value: "10.0.0.0/255.255.0.0": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`},
		},
		"a CIDR with leading zeros": {
			tweaks: []tweak{cidr4("10.01.0.0/16")},
			want:   []string{`{0}.cidr: Invalid value: "10.01.0.0/16": must be in canonical form ("10.1.0.0/16")`},
		},
		"a CIDR with spaces": {
			tweaks: []tweak{cidr4(" 10.0.0.0/16")},
			want:   []string{`{0}.cidr: Invalid value: " 10.0.0.0/16": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`},
		},
		"an IPv6 CIDR in another form": {
			tweaks: []tweak{cidr6("FD00:0::/64")},
			want:   []string{`{1}.cidr: Invalid value: "FD00:0::/64": must be in canonical form ("fd00::/64")`},
		},
		"an IPv4-mapped IPv6 CIDR": {
			tweaks: []tweak{cidr6("::ffff:10.0.0.0/90")},
			want:   []string{`{1}.cidr: Invalid value: "::ffff:10.0.0.0/90": must not be a range of IPv4-mapped IPv6 addresses`},
		},
		"all of IPv4": {
			tweaks: []tweak{cidr4("10.0.0.0/0")},
			want:   []string{`{0}.cidr: Invalid value: "10.0.0.0/0": must have a prefix of at least /1`},
		},
		"all of IPv6": {
			tweaks: []tweak{cidr6("::/0")},
			want:   []string{`{1}.cidr: Invalid value: "::/0": must have a prefix of at least /1`},
		},
		"a start of zero": {
			tweaks: []tweak{cidr4("0.0.0.0/8")},
			want:   []string{`{0}.cidr: Invalid value: "0.0.0.0/8": must not overlap 0.0.0.0/8 (this network)`},
		},
		"a start of zero, written with host bits": {
			tweaks: []tweak{cidr4("0.1.2.3/16")},
			want:   []string{`{0}.cidr: Invalid value: "0.1.2.3/16": must not overlap 0.0.0.0/8 (this network)`},
		},
		"IPv4 loopback": {
			tweaks: []tweak{cidr4("127.0.0.0/24")},
			want:   []string{`{0}.cidr: Invalid value: "127.0.0.0/24": must not overlap 127.0.0.0/8 (loopback)`},
		},
		"a range around IPv4 loopback": {
			tweaks: []tweak{cidr4("126.0.0.0/7")},
			want:   []string{`{0}.cidr: Invalid value: "126.0.0.0/7": must not overlap 127.0.0.0/8 (loopback)`},
		},
		"IPv4 multicast": {
			tweaks: []tweak{cidr4("239.1.0.0/16")},
			want:   []string{`{0}.cidr: Invalid value: "239.1.0.0/16": must not overlap 224.0.0.0/4 (multicast)`},
		},
		"IPv6 loopback": {
			tweaks: []tweak{cidr6("::1/128"), dhcp6(samplecrd.Disabled)},
			want:   []string{`{1}.cidr: Invalid value: "::1/128": must not overlap ::/127 (unspecified and loopback)`},
		},
		"IPv6 multicast": {
			tweaks: []tweak{cidr6("ff02::/64")},
			want:   []string{`{1}.cidr: Invalid value: "ff02::/64": must not overlap ff00::/8 (multicast)`},
		},
		"link-local and reserved ranges, which Neutron takes": {tweaks: []tweak{cidr4("169.254.0.0/16"), cidr6("fe80::/64")}},
		"the future use range, which Neutron takes":           {tweaks: []tweak{cidr4("240.0.0.0/24")}},
		"the longest prefixes with DHCP":                      {tweaks: []tweak{cidr4("10.0.0.0/30"), cidr6("fd00::/126")}},
		"an IPv4 prefix too long for DHCP": {
			tweaks: []tweak{cidr4("10.0.0.0/31")},
			want:   []string{`{0}.cidr: Invalid value: "10.0.0.0/31": a subnet with DHCP must have a prefix of at most /30`},
		},
		"an IPv6 prefix too long for DHCP": {
			tweaks: []tweak{cidr6("fd00::/127")},
			want:   []string{`{1}.cidr: Invalid value: "fd00::/127": a subnet with DHCP must have a prefix of at most /126`},
		},
		"the longest prefixes without DHCP": {
			tweaks: []tweak{cidr4("10.0.0.1/32"), gateway4("None"), dhcp4(samplecrd.Disabled), cidr6("fd00::1/128"), dhcp6(samplecrd.Disabled)},
		},
		"a /31 without DHCP and gateway":    {tweaks: []tweak{cidr4("10.0.0.0/31"), gateway4("None"), dhcp4(samplecrd.Disabled)}},
		"an IPv6 /127 with a gateway in it": {tweaks: []tweak{cidr6("fd00::/127"), gateway6("fd00::1"), dhcp6(samplecrd.Disabled)}},
		"a /31 of a network taken over":     {tweaks: []tweak{cidr4("10.0.0.0/31"), takeOver(testNetworkID)}},
		"a /31 without DHCP needs gateway None": {
			tweaks: []tweak{cidr4("10.0.0.0/31"), dhcp4(samplecrd.Disabled)},
			want:   []string{`{0}.gateway: Invalid value: "": must be "None" in an IPv4 subnet with a prefix of /31 or /32`},
		},
		"a /32 without DHCP has no gateway": {
			tweaks: []tweak{cidr4("10.0.0.0/32"), gateway4("10.0.0.1"), dhcp4(samplecrd.Disabled)},
			want:   []string{`{0}.gateway: Invalid value: "10.0.0.1": must be "None" in an IPv4 subnet with a prefix of /31 or /32`},
		},
		"an unknown dhcp": {
			tweaks: []tweak{dhcp4("true")},
			want:   []string{`{0}.dhcp: Unsupported value: "true": supported values: "Enabled", "Disabled"`},
		},

		"an equal subnet": {
			tweaks: []tweak{cidr4("10.0.0.0/24"), cidr6("10.0.0.0/24")},
			want:   []string{`{1}.cidr: Invalid value: "10.0.0.0/24": must not overlap 10.0.0.0/24 of {0}.cidr`},
		},
		"an equal subnet in other words": {
			tweaks: []tweak{cidr4("10.0.0.7/24"), cidr6("10.0.0.9/24")},
			want:   []string{`{1}.cidr: Invalid value: "10.0.0.9/24": must not overlap 10.0.0.0/24 of {0}.cidr`},
		},
		"a subnet inside another": {
			tweaks: []tweak{cidr4("10.0.0.0/16"), cidr6("10.0.1.0/24")},
			want:   []string{`{1}.cidr: Invalid value: "10.0.1.0/24": must not overlap 10.0.0.0/16 of {0}.cidr`},
		},
		"a subnet around another": {
			tweaks: []tweak{cidr4("10.0.1.0/24"), cidr6("10.0.0.0/16")},
			want:   []string{`{1}.cidr: Invalid value: "10.0.0.0/16": must not overlap 10.0.1.0/24 of {0}.cidr`},
		},
		"adjacent subnets": {tweaks: []tweak{cidr4("10.0.0.0/24"), cidr6("10.0.1.0/24")}},

		"no gateway":                   {tweaks: []tweak{gateway4("None"), gateway6("None")}},
		"gateways of Neutron's choice": {tweaks: []tweak{gateway4(""), gateway6("")}},
		"a gateway outside":            {tweaks: []tweak{gateway4("10.0.0.1"), gateway6("fe80::1")}},
		"the last IPv4 address":        {tweaks: []tweak{gateway4("192.168.255.254")}},
		"the first address of IPv6":    {tweaks: []tweak{gateway6("fd00::")}},
		"the last address of IPv6":     {tweaks: []tweak{gateway6("fd00::ffff:ffff:ffff:ffff")}},
		"None in lower case": {
			tweaks: []tweak{gateway4("none")},
			want:   []string{`{0}.gateway: Invalid value: "none": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff), or "None"`},
		},
		"a gateway with leading zeros": {
			tweaks: []tweak{gateway4("192.168.1.01")},
			want:   []string{`{0}.gateway: Invalid value: "192.168.1.01": must not have leading 0s, or "None"`},
		},
		"an IPv6 gateway in another form": {
			tweaks: []tweak{gateway6("FD00::1")},
			want:   []string{`{1}.gateway: Invalid value: "FD00::1": must be in canonical form ("fd00::1"), or "None"`},
		},
		"a gateway with a zone": {
			tweaks: []tweak{gateway6("fe80::1%eth0")},
			want:   []string{`{1}.gateway: Invalid value: "fe80::1%eth0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff), or "None"`},
		},
		"a gateway that is the network address": {
			tweaks: []tweak{gateway4("192.168.0.0")},
			want:   []string{`{0}.gateway: Invalid value: "192.168.0.0": must not be the network address 192.168.0.0`},
		},
		"a gateway that is the broadcast address": {
			tweaks: []tweak{gateway4("192.168.255.255")},
			want:   []string{`{0}.gateway: Invalid value: "192.168.255.255": must not be the broadcast address 192.168.255.255`},
		},
		"a gateway that is the network address of a CIDR with host bits": {
			tweaks: []tweak{cidr4("10.1.1.77/26"), gateway4("10.1.1.64")},
			want:   []string{`{0}.gateway: Invalid value: "10.1.1.64": must not be the network address 10.1.1.64`},
		},
		"an IPv6 gateway of an IPv4 subnet": {
			tweaks: []tweak{gateway4("fd00::1")},
			want:   []string{`{0}.gateway: Invalid value: "fd00::1": must be an IPv4 address, as the CIDR is, or "None"`},
		},
		"an IPv4 gateway of an IPv6 subnet": {
			tweaks: []tweak{gateway6("10.0.0.1")},
			want:   []string{`{1}.gateway: Invalid value: "10.0.0.1": must be an IPv6 address, as the CIDR is, or "None"`},
		},

		"SLAAC":                           {tweaks: []tweak{modes6("SLAAC", "SLAAC")}},
		"only an addressMode":             {tweaks: []tweak{modes6("DHCPv6Stateless", "")}},
		"only an raMode":                  {tweaks: []tweak{modes6("", "SLAAC")}},
		"a stateful subnet of any size":   {tweaks: []tweak{cidr6("fd00::/80"), modes6("DHCPv6Stateful", "DHCPv6Stateful")}},
		"modes without a word about DHCP": {tweaks: []tweak{modes6("SLAAC", ""), takeOver(testNetworkID)}},
		"ipv6 in an IPv4 subnet": {
			tweaks: []tweak{modes4("SLAAC", "SLAAC")},
			want:   []string{"{0}.ipv6: Forbidden: must not be set in an IPv4 subnet"},
		},
		"ipv6 without DHCP": {
			tweaks: []tweak{modes6("SLAAC", "SLAAC"), dhcp6(samplecrd.Disabled)},
			want:   []string{"{1}.ipv6: Forbidden: must not be set where dhcp is Disabled"},
		},
		"unknown modes": {
			tweaks: []tweak{modes6("slaac", "dhcpv6-stateful")},
			want: []string{
				`{1}.ipv6.addressMode: Unsupported value: "slaac": supported values: "SLAAC", "DHCPv6Stateful", "DHCPv6Stateless"`,
				`{1}.ipv6.raMode: Unsupported value: "dhcpv6-stateful": supported values: "SLAAC", "DHCPv6Stateful", "DHCPv6Stateless"`,
			},
		},
		"modes that differ": {
			tweaks: []tweak{modes6("DHCPv6Stateful", "SLAAC")},
			want:   []string{`{1}.ipv6.raMode: Invalid value: "SLAAC": must be the addressMode DHCPv6Stateful, if both are set`},
		},
		"SLAAC in a range that is no /64": {
			tweaks: []tweak{cidr6("fd00::/80"), modes6("SLAAC", "SLAAC")},
			want:   []string{`{1}.cidr: Invalid value: "fd00::/80": must have the prefix /64 with the ipv6 mode SLAAC`},
		},
		"stateless DHCPv6 in a range that is no /64": {
			tweaks: []tweak{cidr6("fd00::/48"), modes6("", "DHCPv6Stateless")},
			want:   []string{`{1}.cidr: Invalid value: "fd00::/48": must have the prefix /64 with the ipv6 mode DHCPv6Stateless`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version := range places {
				wantErrors(t, version, ValidateNetwork(validNetwork(tc.tweaks...), SubnetPath(version)), tc.want)
			}
		})
	}
}
