package validation

import (
	"fmt"
	"testing"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

func TestValidateLists(t *testing.T) {
	for name, tc := range map[string]struct {
		tweaks []tweak
		want   []string
	}{
		"pools on both sides of the gateway":        {tweaks: []tweak{pools4("192.168.0.1", "192.168.1.0", "192.168.1.2", "192.168.255.254")}},
		"a pool of one address":                     {tweaks: []tweak{pools4("192.168.1.2", "192.168.1.2")}},
		"adjacent pools in any order":               {tweaks: []tweak{pools4("192.168.2.10", "192.168.2.19", "192.168.2.0", "192.168.2.9")}},
		"all of IPv6 but the network address":       {tweaks: []tweak{pools6("fd00::1", "fd00::ffff:ffff:ffff:ffff")}},
		"a pool around a gateway that is outside":   {tweaks: []tweak{gateway4("10.0.0.1"), pools4("192.168.0.1", "192.168.255.254")}},
		"a pool with the first address, no gateway": {tweaks: []tweak{gateway4("None"), pools4("192.168.0.1", "192.168.0.9")}},
		"a pool of all of a /31":                    {tweaks: []tweak{cidr4("10.0.0.0/31"), gateway4("None"), dhcp4(samplecrd.Disabled), pools4("10.0.0.0", "10.0.0.1")}},
		"a pool with what is perhaps not the gateway of a network taken over": {
			tweaks: []tweak{gateway4(""), takeOver(testNetworkID), pools4("192.168.0.1", "192.168.0.9")},
		},
		"a pool with the gateway": {
			tweaks: []tweak{pools4("192.168.1.0", "192.168.1.9")},
			want:   []string{`{0}.allocationPools[0]: Invalid value: "192.168.1.0-192.168.1.9": must not hold the gateway 192.168.1.1`},
		},
		"a pool that ends with the gateway": {
			tweaks: []tweak{pools4("192.168.0.9", "192.168.1.1")},
			want:   []string{`{0}.allocationPools[0]: Invalid value: "192.168.0.9-192.168.1.1": must not hold the gateway 192.168.1.1`},
		},
		"a pool with the gateway that Neutron will choose": {
			tweaks: []tweak{gateway4(""), pools4("192.168.0.1", "192.168.0.9")},
			want:   []string{`{0}.allocationPools[0]: Invalid value: "192.168.0.1-192.168.0.9": must not hold the gateway 192.168.0.1`},
		},
		"an IPv6 pool with the gateway": {
			tweaks: []tweak{gateway6("fd00::1"), pools6("fd00::1", "fd00::9")},
			want:   []string{`{1}.allocationPools[0]: Invalid value: "fd00::1-fd00::9": must not hold the gateway fd00::1`},
		},
		"a pool outside": {
			tweaks: []tweak{pools4("10.0.0.1", "10.0.0.9")},
			want: []string{
				`{0}.allocationPools[0].start: Invalid value: "10.0.0.1": must be within 192.168.0.1-192.168.255.254`,
				`{0}.allocationPools[0].end: Invalid value: "10.0.0.9": must be within 192.168.0.1-192.168.255.254`,
			},
		},
		"a pool that ends outside": {
			tweaks: []tweak{pools4("192.168.2.0", "192.169.0.0")},
			want:   []string{`{0}.allocationPools[0].end: Invalid value: "192.169.0.0": must be within 192.168.0.1-192.168.255.254`},
		},
		"a pool with network and broadcast address": {
			tweaks: []tweak{pools4("192.168.0.0", "192.168.255.255")},
			want: []string{
				`{0}.allocationPools[0].start: Invalid value: "192.168.0.0": must be within 192.168.0.1-192.168.255.254`,
				`{0}.allocationPools[0].end: Invalid value: "192.168.255.255": must be within 192.168.0.1-192.168.255.254`,
			},
		},
		"an IPv6 pool with the network address": {
			tweaks: []tweak{pools6("fd00::", "fd00::9")},
			want:   []string{`{1}.allocationPools[0].start: Invalid value: "fd00::": must be within fd00::1-fd00::ffff:ffff:ffff:ffff`},
		},
		"a pool upside down": {
			tweaks: []tweak{pools4("192.168.2.9", "192.168.2.1")},
			want:   []string{`{0}.allocationPools[0].end: Invalid value: "192.168.2.1": must not be below start 192.168.2.9`},
		},
		"a pool of another family": {
			tweaks: []tweak{pools4("fd00::1", "fd00::9")},
			want: []string{
				`{0}.allocationPools[0].start: Invalid value: "fd00::1": must be an IPv4 address, as the CIDR is`,
				`{0}.allocationPools[0].end: Invalid value: "fd00::9": must be an IPv4 address, as the CIDR is`,
			},
		},
		"overlapping pools": {
			tweaks: []tweak{pools4("192.168.2.1", "192.168.2.9", "192.168.2.9", "192.168.2.12")},
			want:   []string{`{0}.allocationPools[1]: Invalid value: "192.168.2.9-192.168.2.12": must not overlap the pool 192.168.2.1-192.168.2.9`},
		},
		"as many pools as there may be": {tweaks: []tweak{pools4(manyPools(32)...)}},
		"more pools than there may be": {
			tweaks: []tweak{pools4(manyPools(33)...)},
			want:   []string{"{0}.allocationPools: Too many: 33: must have at most 32 items"},
		},

		"as many name servers as there may be": {tweaks: []tweak{nameservers4("8.8.8.8", "8.8.8.1", "1.1.1.1", "9.9.9.9", "8.8.4.4")}},
		"a name server of another family": {
			tweaks: []tweak{nameservers4("8.8.8.8", "2001:4860:4860::8888")},
			want:   []string{`{0}.dnsNameservers[1]: Invalid value: "2001:4860:4860::8888": must be an IPv4 address, as the CIDR is`},
		},
		"an empty name server": {
			tweaks: []tweak{nameservers4("")},
			want:   []string{"{0}.dnsNameservers[0]: Required value"},
		},
		"a name for a name server": {
			tweaks: []tweak{nameservers4("dns.example.org")},
			want:   []string{`{0}.dnsNameservers[0]: Invalid value: "dns.example.org": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		},
		"an IPv4-mapped name server": {
			tweaks: []tweak{nameservers4("::ffff:8.8.8.8")},
			want:   []string{`{0}.dnsNameservers[0]: Invalid value: "::ffff:8.8.8.8": must not be an IPv4-mapped IPv6 address`},
		},
		"a name server given twice": {
			tweaks: []tweak{nameservers4("8.8.8.8", "1.1.1.1", "8.8.8.8")},
			want:   []string{`{0}.dnsNameservers[2]: Duplicate value: "8.8.8.8"`},
		},
		"more name servers than there may be": {
			tweaks: []tweak{nameservers4("8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4", "8.8.8.5", "8.8.8.6")},
			want:   []string{"{0}.dnsNameservers: Too many: 6: must have at most 5 items"},
		},

		"a default route and two ways to one range": {
			tweaks: []tweak{routes4("0.0.0.0/0", "192.168.1.1", "10.5.0.0/16", "192.168.1.2", "10.5.0.0/16", "192.168.1.3")},
		},
		"as many routes as there may be": {tweaks: []tweak{routes4(manyRoutes(20)...)}},
		"more routes than there may be": {
			tweaks: []tweak{routes4(manyRoutes(21)...)},
			want:   []string{"{0}.hostRoutes: Too many: 21: must have at most 20 items"},
		},
		"both ends of a route are needed": {
			tweaks: []tweak{routes4("", "")},
			want:   []string{"{0}.hostRoutes[0].destination: Required value", "{0}.hostRoutes[0].nextHop: Required value"},
		},
		"a route to a range that is garbage": {
			tweaks: []tweak{routes4("garbage", "192.168.1.1")},
			want:   []string{`{0}.hostRoutes[0].destination: Invalid value: "garbage": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`},
		},
		"a route with host bits": {
			tweaks: []tweak{routes4("10.5.1.0/16", "192.168.1.1")},
			want:   []string{`{0}.hostRoutes[0].destination: Invalid value: "10.5.1.0/16": must not have bits set beyond the prefix length`},
		},
		"a route of another family": {
			tweaks: []tweak{routes4("fd05::/64", "fd00::1")},
			want: []string{
				`{0}.hostRoutes[0].destination: Invalid value: "fd05::/64": must be an IPv4 range, as the CIDR is`,
				`{0}.hostRoutes[0].nextHop: Invalid value: "fd00::1": must be an IPv4 address, as the CIDR is`,
			},
		},
		"a route given twice": {
			tweaks: []tweak{routes4("10.5.0.0/16", "192.168.1.2", "10.5.0.0/16", "192.168.1.2")},
			want:   []string{`{0}.hostRoutes[1]: Duplicate value: "10.5.0.0/16 via 192.168.1.2"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version := range places {
				wantErrors(t, version, ValidateNetwork(validNetwork(tc.tweaks...), SubnetPath(version)), tc.want)
			}
		})
	}
}

func manyPools(count int) []string {
	var ends []string
	for i := range count {
		ends = append(ends, fmt.Sprintf("192.168.2.%d", i), fmt.Sprintf("192.168.2.%d", i))
	}
	return ends
}

func manyRoutes(count int) []string {
	var routes []string
	for i := range count {
		routes = append(routes, fmt.Sprintf("10.%d.0.0/16", i), "192.168.1.1")
	}
	return routes
}
