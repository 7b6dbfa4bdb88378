package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

func TestSubnetPath(t *testing.T) {
	for version, want := range map[string][]string{
		"v1":         {"spec", "spec.additionalSubnets[0]", "spec.additionalSubnets[14]"},
		"v2alpha1":   {"spec.subnets[0]", "spec.subnets[1]", "spec.subnets[15]"},
		"__internal": {"spec.subnets[0]", "spec.subnets[1]", "spec.subnets[15]"},
	} {
		t.Run(version, func(t *testing.T) {
			subnetPath := SubnetPath(version)
			got := []string{subnetPath(0).String(), subnetPath(1).String(), subnetPath(15).String()}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateNetwork(t *testing.T) {
	const supportedNetworkTypes = `supported values: "flat", "vlan", "vxlan", "geneve", "gre", "local"`
	for name, tc := range map[string]struct {
		tweaks []tweak
		want   []string
	}{
		"a network with an IPv4 and an IPv6 subnet": {},
		"the name is needed": {
			tweaks: []tweak{func(n *samplecrd.Network) { n.Name = "" }},
			want:   []string{"metadata.name: Required value: name or generateName is required"},
		},
		"the namespace is needed": {
			tweaks: []tweak{func(n *samplecrd.Network) { n.Namespace = "" }},
			want:   []string{"metadata.namespace: Required value"},
		},
		"a name that is no DNS subdomain": {
			tweaks: []tweak{func(n *samplecrd.Network) { n.Name = "a..b" }},
			want:   []string{`metadata.name: Invalid value: "a..b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		},
		"a managed network needs a subnet": {
			tweaks: []tweak{noSubnets()},
			want:   []string{"{subnets}: Required value"},
		},
		"a network taken over needs no subnet": {tweaks: []tweak{noSubnets(), takeOver(testNetworkID)}},
		"a network taken over may declare subnets and leave dhcp and adminState as they are": {
			tweaks: []tweak{takeOver(testNetworkID)},
		},
		"a network taken over may be deleted with the object": {
			tweaks: []tweak{takeOver(testNetworkID), deletionPolicy(samplecrd.DeletionPolicyDelete)},
		},
		"the smallest mtu":                {tweaks: []tweak{onlyIPv4(), mtu(68)}},
		"the largest mtu":                 {tweaks: []tweak{mtu(9216)}},
		"the smallest mtu for IPv6":       {tweaks: []tweak{mtu(1280)}},
		"an mtu too small for IPv6 alone": {tweaks: []tweak{onlyIPv4(), mtu(1279)}},
		"an mtu too small for IPv6": {
			tweaks: []tweak{mtu(1279)},
			want:   []string{"spec.mtu: Invalid value: 1279: must be at least 1280 with an IPv6 subnet"},
		},
		"an mtu too small": {
			tweaks: []tweak{mtu(67)},
			want:   []string{"spec.mtu: Invalid value: 67: must be between 68 and 9216, inclusive"},
		},
		"an mtu too large": {
			tweaks: []tweak{mtu(9217)},
			want:   []string{"spec.mtu: Invalid value: 9217: must be between 68 and 9216, inclusive"},
		},
		"an mtu below zero": {
			tweaks: []tweak{mtu(-1)},
			want:   []string{"spec.mtu: Invalid value: -1: must be between 68 and 9216, inclusive"},
		},
		"a network that is down": {
			tweaks: []tweak{tweakSpec(func(s *samplecrd.NetworkSpec) { s.AdminState = samplecrd.AdminStateDown })},
		},
		"an unknown adminState": {
			tweaks: []tweak{tweakSpec(func(s *samplecrd.NetworkSpec) { s.AdminState = "up" })},
			want:   []string{`spec.adminState: Unsupported value: "up": supported values: "Up", "Down"`},
		},
		"an unknown managementPolicy": {
			tweaks: []tweak{tweakSpec(func(s *samplecrd.NetworkSpec) { s.ManagementPolicy = "Watch" })},
			want:   []string{`spec.managementPolicy: Unsupported value: "Watch": supported values: "Managed", "Observe"`},
		},
		"an unknown deletionPolicy": {
			tweaks: []tweak{deletionPolicy("Keep")},
			want:   []string{`spec.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Retain"`},
		},
		"a network that stays": {tweaks: []tweak{deletionPolicy(samplecrd.DeletionPolicyRetain)}},
		"an observed network":  {tweaks: []tweak{observe(), noSubnets(), takeOver(testNetworkID)}},
		"an observed network needs its id, and the default of deletionPolicy is not held against it": {
			tweaks: []tweak{observe(), noSubnets()},
			want:   []string{"spec.openStack.networkID: Required value"},
		},
		"an observed network declares no subnets, and what is in them does not matter": {
			tweaks: []tweak{observe(), takeOver(testNetworkID), cidr4("garbage")},
			want:   []string{"{subnets}: Forbidden: subnets must not be declared where managementPolicy is Observe"},
		},
		"an observed network is not deleted": {
			tweaks: []tweak{observe(), noSubnets(), takeOver(testNetworkID), deletionPolicy(samplecrd.DeletionPolicyDelete)},
			want:   []string{`spec.deletionPolicy: Invalid value: "Delete": must be Retain where managementPolicy is Observe, which never writes to Neutron`},
		},
		"a networkID that is no UUID": {
			tweaks: []tweak{takeOver("net-1")},
			want:   []string{`spec.openStack.networkID: Invalid value: "net-1": must be a lowercase UUID in 8-4-4-4-12 format`},
		},
		"a networkID in upper case": {
			tweaks: []tweak{takeOver("1C7D7F0E-9D6C-4B59-A4A3-6A0D3B6F2B11")},
			want:   []string{`spec.openStack.networkID: Invalid value: "1C7D7F0E-9D6C-4B59-A4A3-6A0D3B6F2B11": must be a lowercase UUID in 8-4-4-4-12 format`},
		},
		"a networkID in braces": {
			tweaks: []tweak{takeOver("{" + testNetworkID + "}")},
			want:   []string{`spec.openStack.networkID: Invalid value: "{1c7d7f0e-9d6c-4b59-a4a3-6a0d3b6f2b11}": must be a lowercase UUID in 8-4-4-4-12 format`},
		},
		"credentials":                     {tweaks: []tweak{credentials("my.secret", "openstack")}},
		"an empty openStack says nothing": {tweaks: []tweak{tweakOpenStack(func(*samplecrd.OpenStack) {})}},
		"both fields of credentialsRef are needed": {
			tweaks: []tweak{credentials("", "")},
			want: []string{
				"spec.openStack.credentialsRef.secretName: Required value",
				"spec.openStack.credentialsRef.cloudName: Required value",
			},
		},
		"a secretName that is no DNS subdomain": {
			tweaks: []tweak{credentials("../other", "openstack")},
			want:   []string{`spec.openStack.credentialsRef.secretName: Invalid value: "../other": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		},
		"toggles of the network": {
			tweaks: []tweak{tweakOpenStack(func(o *samplecrd.OpenStack) {
				o.External, o.Shared, o.PortSecurity = samplecrd.Enabled, samplecrd.Disabled, samplecrd.Enabled
			})},
		},
		"unknown toggles of the network": {
			tweaks: []tweak{tweakOpenStack(func(o *samplecrd.OpenStack) { o.External, o.Shared, o.PortSecurity = "true", "on", "no" })},
			want: []string{
				`spec.openStack.external: Unsupported value: "true": supported values: "Enabled", "Disabled"`,
				`spec.openStack.shared: Unsupported value: "on": supported values: "Enabled", "Disabled"`,
				`spec.openStack.portSecurity: Unsupported value: "no": supported values: "Enabled", "Disabled"`,
			},
		},
		"a flat network":             {tweaks: []tweak{physical("flat", "physnet1")}},
		"the first VLAN":             {tweaks: []tweak{physical("vlan", "physnet1", 1)}},
		"the last VLAN":              {tweaks: []tweak{physical("vlan", "physnet1", 4094)}},
		"a VLAN of Neutron's choice": {tweaks: []tweak{physical("vlan", "physnet1")}},
		"the last VXLAN segment":     {tweaks: []tweak{physical("vxlan", "", 1<<24-1)}},
		"the last Geneve segment":    {tweaks: []tweak{physical("geneve", "", 1<<24-1)}},
		"the last GRE key there is":  {tweaks: []tweak{physical("gre", "", 1<<31-1)}},
		"a local network":            {tweaks: []tweak{physical("local", "")}},
		"only a physical network, of 64 characters of more than one byte": {
			tweaks: []tweak{physical("", strings.Repeat("é", 64))},
		},
		"an unknown networkType": {
			tweaks: []tweak{physical("VLAN", "", 7)},
			want:   []string{`spec.openStack.provider.networkType: Unsupported value: "VLAN": ` + supportedNetworkTypes},
		},
		"a physicalNetwork of 65 characters": {
			tweaks: []tweak{physical("vlan", strings.Repeat("é", 65), 7)},
			want:   []string{"spec.openStack.provider.physicalNetwork: Too long: may not be more than 64 characters"},
		},
		"a segmentationID without networkType": {
			tweaks: []tweak{physical("", "", 7)},
			want:   []string{"spec.openStack.provider.segmentationID: Forbidden: must not be set without networkType"},
		},
		"a segmentationID of a flat network": {
			tweaks: []tweak{physical("flat", "physnet1", 7)},
			want:   []string{"spec.openStack.provider.segmentationID: Forbidden: must not be set with networkType flat"},
		},
		"a segmentationID of a local network": {
			tweaks: []tweak{physical("local", "", 7)},
			want:   []string{"spec.openStack.provider.segmentationID: Forbidden: must not be set with networkType local"},
		},
		"a VLAN above the last": {
			tweaks: []tweak{physical("vlan", "physnet1", 4095)},
			want:   []string{"spec.openStack.provider.segmentationID: Invalid value: 4095: must be between 1 and 4094, inclusive"},
		},
		"a segment of zero": {
			tweaks: []tweak{physical("vxlan", "", 0)},
			want:   []string{"spec.openStack.provider.segmentationID: Invalid value: 0: must be between 1 and 16777215, inclusive"},
		},
		"a GRE key below zero": {
			tweaks: []tweak{physical("gre", "", -1)},
			want:   []string{"spec.openStack.provider.segmentationID: Invalid value: -1: must be between 1 and 2147483647, inclusive"},
		},
		"a Geneve segment of more than 24 bits": {
			tweaks: []tweak{physical("geneve", "", 1<<24)},
			want:   []string{"spec.openStack.provider.segmentationID: Invalid value: 16777216: must be between 1 and 16777215, inclusive"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version := range places {
				wantErrors(t, version, ValidateNetwork(validNetwork(tc.tweaks...), SubnetPath(version)), tc.want)
			}
		})
	}
}

func TestValidateNetworkWithTooManySubnets(t *testing.T) {
	more := func(count int) tweak {
		return tweakSpec(func(s *samplecrd.NetworkSpec) {
			for i := range count {
				s.Subnets = append(s.Subnets, samplecrd.Subnet{CIDR: fmt.Sprintf("10.0.%d.0/24", i)})
			}
		})
	}
	for version, want := range map[string][]string{
		"v1":       {"spec.additionalSubnets: Too many: 16: must have at most 15 items"},
		"v2alpha1": {"spec.subnets: Too many: 17: must have at most 16 items"},
	} {
		t.Run(version, func(t *testing.T) {
			wantErrors(t, version, ValidateNetwork(validNetwork(more(14)), SubnetPath(version)), nil)
			wantErrors(t, version, ValidateNetwork(validNetwork(more(15)), SubnetPath(version)), want)
		})
	}
}

func TestValidateNetworkStatusUpdate(t *testing.T) {
	condition := func(reason string) tweak {
		return func(n *samplecrd.Network) {
			n.Status.Conditions = append(n.Status.Conditions, metav1.Condition{
				Type: "Ready", Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: n.CreationTimestamp,
			})
		}
	}
	for name, tc := range map[string]struct {
		stored, changed []tweak
		want            []string
	}{
		"a condition is set": {changed: []tweak{condition("Success")}},
		"a condition without reason": {
			changed: []tweak{condition("")},
			want:    []string{"status.conditions[0].reason: Required value"},
		},
		"a condition given twice": {
			changed: []tweak{condition("Success"), condition("Creating")},
			want:    []string{`status.conditions[1]: Duplicate value: "Ready"`},
		},
		"a stored condition without reason does not block the rest": {
			stored:  []tweak{condition("")},
			changed: []tweak{condition(""), func(n *samplecrd.Network) { n.Status.NetworkID = testNetworkID }},
		},
		"what Neutron says is not judged": {
			changed: []tweak{func(n *samplecrd.Network) {
				n.Status.Subnets = []samplecrd.SubnetStatus{{CIDR: "garbage"}}
				n.Status.Provider = &samplecrd.Provider{NetworkType: "new"}
			}},
		},
		"an invalid spec does not block the status": {
			stored:  []tweak{cidr4("garbage")},
			changed: []tweak{cidr4("garbage"), condition("InvalidConfiguration")},
		},
		"the metadata follows the rules of an update": {
			changed: []tweak{func(n *samplecrd.Network) { n.UID = "other" }},
			want:    []string{`metadata.uid: Invalid value: "other": field is immutable`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateNetworkStatusUpdate(validNetwork(tc.changed...), validNetwork(tc.stored...))
			wantErrors(t, "v1", errs, tc.want)
		})
	}
}
