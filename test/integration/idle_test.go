package integration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// idleness is how long nothing must happen. It is waited for in full: that
// nothing happens has no event.
const idleness = 30 * time.Second

func TestNothingHappensWhereNothingChanges(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n := s.networks(t)
	found := s.make(t, "network", object{"name": "found", "description": "by hand"})
	for name, tweak := range map[string]func(*samplecrdv1.Network){
		"plain":     func(*samplecrdv1.Network) {},
		"host-bits": func(n *samplecrdv1.Network) { n.Spec.CIDR = "10.1.2.3/16"; n.Spec.Gateway = "" },
		"dual": func(n *samplecrdv1.Network) {
			n.Spec.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: "fd00::/64"}, {CIDR: "10.0.0.0/30", Gateway: samplecrdv1.GatewayNone, DHCP: samplecrdv1.Disabled}}
		},
		"rich": func(n *samplecrdv1.Network) {
			n.Spec.DNSNameservers = []string{"192.0.2.2", "192.0.2.1"}
			n.Spec.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.9.0.0/16", NextHop: "192.168.0.9"}, {Destination: "10.8.0.0/16", NextHop: "192.168.0.8"}}
			n.Spec.AllocationPools = []samplecrdv1.AllocationPool{{Start: "192.168.9.0", End: "192.168.9.9"}, {Start: "192.168.8.0", End: "192.168.8.9"}}
			n.Spec.MTU = new(int32(1400))
		},
		"taken-over": func(n *samplecrdv1.Network) {
			n.Spec = samplecrdv1.NetworkSpec{OpenStack: &samplecrdv1.OpenStack{NetworkID: found.id()}}
		},
	} {
		n.create(newNetwork(name, tweak))
		n.awaitReady(name)
	}
	n.create(newNetwork("homeless", credentials))
	n.awaitReason("homeless", samplecrdv1.ReasonCredentialsUnavailable)
	// Of a server that finds all as it should be, the two lists of the first
	// comparison are the only calls.
	s = s.restart(t)
	n = s.networks(t)
	s.awaitNeutronCalls(t, 2)

	writes := s.etcd(t).Watch(clientv3.WithRequireLeader(t.Context()), etcdPrefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if created := <-writes; !created.Created {
		t.Fatalf("watching etcd: %v", created.Err())
	}
	calls, before := s.neutronCalls(t), n.versions()
	select {
	case write := <-writes:
		t.Errorf("got a write to etcd: %v %v", write.Events, write.Err())
	case <-time.After(idleness):
	}
	if after := s.neutronCalls(t); after != calls {
		t.Errorf("got %d calls to Neutron, want none", after-calls)
	}
	if diff := cmp.Diff(before, n.versions()); diff != "" {
		t.Errorf("resource versions (-before +after):\n%s", diff)
	}
}

// versions are the resource versions by name.
func (n networks) versions() map[string]string {
	n.t.Helper()
	list, err := n.List(n.t.Context(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	versions := map[string]string{}
	for _, network := range list.Items {
		versions[network.Name] = network.ResourceVersion
	}
	return versions
}
