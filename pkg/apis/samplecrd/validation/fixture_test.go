package validation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

const testNetworkID = "1c7d7f0e-9d6c-4b59-a4a3-6a0d3b6f2b11"

// places is where the messages of a version say that something stands.
var places = map[string]*strings.Replacer{
	"v1":       strings.NewReplacer("{0}", "spec", "{1}", "spec.additionalSubnets[0]", "{subnets}", "spec.cidr"),
	"v2alpha1": strings.NewReplacer("{0}", "spec.subnets[0]", "{1}", "spec.subnets[1]", "{subnets}", "spec.subnets"),
}

// expand writes messages in the words of a version.
func expand(version string, templates []string) []string {
	var messages []string
	for _, template := range templates {
		messages = append(messages, places[version].Replace(template))
	}
	return messages
}

func wantErrors(t *testing.T, version string, errs field.ErrorList, templates []string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff(expand(version, templates), got); diff != "" {
		t.Errorf("%s: unexpected errors (-want +got):\n%s", version, diff)
	}
}

type tweak = func(*samplecrd.Network)

// validNetwork has an IPv4 subnet and an IPv6 subnet, as defaulting leaves them.
func validNetwork(tweaks ...tweak) *samplecrd.Network {
	network := &samplecrd.Network{
		ObjectMeta: metav1.ObjectMeta{
			Name: "net", Namespace: "default", UID: "u", ResourceVersion: "1", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Unix(1700000000, 0)),
		},
		Spec: samplecrd.NetworkSpec{
			Subnets: []samplecrd.Subnet{
				{CIDR: "192.168.0.0/16", Gateway: "192.168.1.1", DHCP: samplecrd.Enabled},
				{CIDR: "fd00::/64", DHCP: samplecrd.Enabled},
			},
			AdminState:       samplecrd.AdminStateUp,
			ManagementPolicy: samplecrd.ManagementPolicyManaged,
			DeletionPolicy:   samplecrd.DeletionPolicyDelete,
		},
	}
	for _, tweak := range tweaks {
		tweak(network)
	}
	return network
}

func tweakSpec(change func(*samplecrd.NetworkSpec)) tweak {
	return func(network *samplecrd.Network) { change(&network.Spec) }
}

func tweakIPv4(change func(*samplecrd.Subnet)) tweak {
	return func(network *samplecrd.Network) { change(&network.Spec.Subnets[0]) }
}

func tweakIPv6(change func(*samplecrd.Subnet)) tweak {
	return func(network *samplecrd.Network) { change(&network.Spec.Subnets[1]) }
}

func tweakOpenStack(change func(*samplecrd.OpenStack)) tweak {
	return func(network *samplecrd.Network) {
		if network.Spec.OpenStack == nil {
			network.Spec.OpenStack = &samplecrd.OpenStack{}
		}
		change(network.Spec.OpenStack)
	}
}

// cidr4 leaves the gateway of the IPv4 subnet to Neutron.
func cidr4(cidr string) tweak {
	return tweakIPv4(func(s *samplecrd.Subnet) { s.CIDR, s.Gateway = cidr, "" })
}

func cidr6(cidr string) tweak {
	return tweakIPv6(func(s *samplecrd.Subnet) { s.CIDR = cidr })
}

func gateway4(gateway string) tweak {
	return tweakIPv4(func(s *samplecrd.Subnet) { s.Gateway = gateway })
}

func gateway6(gateway string) tweak {
	return tweakIPv6(func(s *samplecrd.Subnet) { s.Gateway = gateway })
}

func dhcp4(toggle samplecrd.Toggle) tweak {
	return tweakIPv4(func(s *samplecrd.Subnet) { s.DHCP = toggle })
}

func dhcp6(toggle samplecrd.Toggle) tweak {
	return tweakIPv6(func(s *samplecrd.Subnet) { s.DHCP = toggle })
}

// pools4 takes starts and ends by turns.
func pools4(ends ...string) tweak {
	return tweakIPv4(func(s *samplecrd.Subnet) { s.AllocationPools = pools(ends) })
}

func pools6(ends ...string) tweak {
	return tweakIPv6(func(s *samplecrd.Subnet) { s.AllocationPools = pools(ends) })
}

func pools(ends []string) []samplecrd.AllocationPool {
	var pools []samplecrd.AllocationPool
	for i := 0; i < len(ends); i += 2 {
		pools = append(pools, samplecrd.AllocationPool{Start: ends[i], End: ends[i+1]})
	}
	return pools
}

func nameservers4(nameservers ...string) tweak {
	return tweakIPv4(func(s *samplecrd.Subnet) { s.DNSNameservers = nameservers })
}

// routes4 takes destinations and next hops by turns.
func routes4(routes ...string) tweak {
	return tweakIPv4(func(s *samplecrd.Subnet) {
		for i := 0; i < len(routes); i += 2 {
			s.HostRoutes = append(s.HostRoutes, samplecrd.HostRoute{Destination: routes[i], NextHop: routes[i+1]})
		}
	})
}

func modes4(address, ra samplecrd.IPv6Mode) tweak {
	return tweakIPv4(func(s *samplecrd.Subnet) { s.IPv6 = &samplecrd.IPv6{AddressMode: address, RAMode: ra} })
}

func modes6(address, ra samplecrd.IPv6Mode) tweak {
	return tweakIPv6(func(s *samplecrd.Subnet) { s.IPv6 = &samplecrd.IPv6{AddressMode: address, RAMode: ra} })
}

func onlyIPv4() tweak {
	return tweakSpec(func(s *samplecrd.NetworkSpec) { s.Subnets = s.Subnets[:1] })
}

func noSubnets() tweak {
	return tweakSpec(func(s *samplecrd.NetworkSpec) { s.Subnets = nil })
}

func mtu(mtu int32) tweak {
	return tweakSpec(func(s *samplecrd.NetworkSpec) { s.MTU = new(mtu) })
}

func deletionPolicy(policy samplecrd.DeletionPolicy) tweak {
	return tweakSpec(func(s *samplecrd.NetworkSpec) { s.DeletionPolicy = policy })
}

// takeOver also leaves out what defaulting leaves out with a networkID.
func takeOver(id string) tweak {
	return func(network *samplecrd.Network) {
		network.Spec.DeletionPolicy, network.Spec.AdminState = samplecrd.DeletionPolicyRetain, ""
		for i := range network.Spec.Subnets {
			network.Spec.Subnets[i].DHCP = ""
		}
		tweakOpenStack(func(o *samplecrd.OpenStack) { o.NetworkID = id })(network)
	}
}

func observe() tweak {
	return tweakSpec(func(s *samplecrd.NetworkSpec) { s.ManagementPolicy = samplecrd.ManagementPolicyObserve })
}

func credentials(secret, cloud string) tweak {
	return tweakOpenStack(func(o *samplecrd.OpenStack) {
		o.CredentialsRef = &samplecrd.CredentialsRef{SecretName: secret, CloudName: cloud}
	})
}

// physical sets the provider, with a segmentation id or without.
func physical(networkType, physicalNetwork string, segmentationID ...int32) tweak {
	return tweakOpenStack(func(o *samplecrd.OpenStack) {
		o.Provider = &samplecrd.Provider{NetworkType: networkType, PhysicalNetwork: physicalNetwork}
		for _, id := range segmentationID {
			o.Provider.SegmentationID = new(id)
		}
	})
}

func deleting() tweak {
	return func(network *samplecrd.Network) {
		network.DeletionTimestamp = new(metav1.NewTime(time.Unix(1700000001, 0)))
	}
}
