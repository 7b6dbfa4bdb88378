package integration

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestTheIntentIsWrittenFirstAndThenEachStep(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	w := n.watch(metav1.ListOptions{})
	n.create(newNetwork("one", func(n *samplecrdv1.Network) {
		n.Spec.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: "fd00::/64"}}
	}))
	type step struct {
		Project, Reason, Message string
		Ready                    metav1.ConditionStatus
		HasID                    bool
		Subnets                  int
	}
	var got []step
	for len(got) < 5 {
		event := w.next()
		network, ok := event.Object.(*samplecrdv1.Network)
		if !ok || event.Type != watch.Added && event.Type != watch.Modified {
			t.Fatalf("got event %v", event)
		}
		ready := condition(network, samplecrdv1.ConditionReady)
		got = append(got, step{network.Status.ProjectID, ready.Reason, ready.Message, ready.Status, network.Status.NetworkID != "", len(network.Status.Subnets)})
	}
	want := []step{
		{},
		{project, samplecrdv1.ReasonCreating, "the network is about to be made", metav1.ConditionFalse, false, 0},
		{project, samplecrdv1.ReasonCreating, "next: create subnet 192.168.0.0/16", metav1.ConditionFalse, true, 0},
		{project, samplecrdv1.ReasonCreating, "next: create subnet fd00::/64", metav1.ConditionFalse, true, 1},
		{project, samplecrdv1.ReasonSuccess, "the network is as declared", metav1.ConditionTrue, true, 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestAStaleWriteIsRefused(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	stale := n.create(newNetwork("one"))
	n.awaitReady("one")
	if _, err := n.UpdateStatus(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got error %v from a stale status, want a conflict", err)
	}
	stale.Spec.MTU = new(int32(1400))
	if _, err := n.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got error %v from a stale spec, want a conflict", err)
	}
}

// credentials names a Secret, which a server without a cluster can't have.
func credentials(n *samplecrdv1.Network) {
	n.Spec.OpenStack = &samplecrdv1.OpenStack{CredentialsRef: &samplecrdv1.CredentialsRef{SecretName: "cloud", CloudName: "openstack"}}
}

func TestCredentialsThatCannotBeHad(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("homeless", credentials))
	got := n.awaitReason("homeless", samplecrdv1.ReasonCredentialsUnavailable)
	if c := condition(got, samplecrdv1.ConditionProgressing); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, `"cloud"`) {
		t.Errorf("got condition %+v, want True with the name of the Secret", c)
	}
	if found := shared.list(t, "network", url.Values{"name": {"homeless"}}); len(found) > 0 {
		t.Errorf("got networks %v, want none", found)
	}
	n.delete("homeless")
	n.awaitGone("homeless")
}

func TestAChangeIsCarriedOut(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("one"))
	first := n.awaitReady("one").Status
	for _, step := range []struct {
		name        string
		tweak       func(*samplecrdv1.Network)
		wantSubnets []samplecrdv1.SubnetStatus // without ids
	}{
		{
			"another gateway",
			func(n *samplecrdv1.Network) { n.Spec.Gateway = "192.168.255.254" },
			[]samplecrdv1.SubnetStatus{{CIDR: "192.168.0.0/16", Gateway: "192.168.255.254", AllocationPools: []samplecrdv1.AllocationPool{{Start: "192.168.0.1", End: "192.168.255.253"}}}},
		},
		{
			"no gateway",
			func(n *samplecrdv1.Network) { n.Spec.Gateway = samplecrdv1.GatewayNone },
			[]samplecrdv1.SubnetStatus{{CIDR: "192.168.0.0/16", AllocationPools: []samplecrdv1.AllocationPool{{Start: "192.168.0.1", End: "192.168.255.254"}}}},
		},
		{
			"the gateway that Neutron chooses",
			func(n *samplecrdv1.Network) { n.Spec.Gateway = "" },
			[]samplecrdv1.SubnetStatus{{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1", AllocationPools: []samplecrdv1.AllocationPool{{Start: "192.168.0.2", End: "192.168.255.254"}}}},
		},
		{
			"an IPv6 subnet beside it, before it",
			func(n *samplecrdv1.Network) {
				n.Spec.AdditionalSubnets = []samplecrdv1.Subnet{n.Spec.Subnet}
				n.Spec.Subnet = samplecrdv1.Subnet{CIDR: "fd00::/64", IPv6: &samplecrdv1.IPv6{AddressMode: samplecrdv1.IPv6SLAAC, RAMode: samplecrdv1.IPv6SLAAC}}
			},
			[]samplecrdv1.SubnetStatus{
				{CIDR: "fd00::/64", Gateway: "fd00::", AllocationPools: []samplecrdv1.AllocationPool{{Start: "fd00::1", End: "fd00::ffff:ffff:ffff:ffff"}}},
				{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1", AllocationPools: []samplecrdv1.AllocationPool{{Start: "192.168.0.2", End: "192.168.255.254"}}},
			},
		},
		{
			"another, overlapping CIDR alone",
			func(n *samplecrdv1.Network) {
				n.Spec.Subnet, n.Spec.AdditionalSubnets = samplecrdv1.Subnet{CIDR: "192.168.1.0/24"}, nil
			},
			[]samplecrdv1.SubnetStatus{{CIDR: "192.168.1.0/24", Gateway: "192.168.1.1", AllocationPools: []samplecrdv1.AllocationPool{{Start: "192.168.1.2", End: "192.168.1.254"}}}},
		},
	} {
		n.edit("one", step.tweak)
		got := n.awaitReady("one").Status
		if got.NetworkID != first.NetworkID {
			t.Fatalf("%s: got network %s, want the first one %s", step.name, got.NetworkID, first.NetworkID)
		}
		inNeutron := shared.list(t, "subnet", url.Values{"network_id": {got.NetworkID}})
		if len(inNeutron) != len(step.wantSubnets) {
			t.Errorf("%s: got %d subnets in Neutron, want %d", step.name, len(inNeutron), len(step.wantSubnets))
		}
		for i := range got.Subnets {
			if shared.look(t, "subnet", got.Subnets[i].ID) == nil {
				t.Errorf("%s: got the id %s, which Neutron does not know", step.name, got.Subnets[i].ID)
			}
			got.Subnets[i].ID = ""
		}
		if diff := cmp.Diff(step.wantSubnets, got.Subnets); diff != "" {
			t.Errorf("%s: subnets (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestTheDefaultGatewayOfIPv6IsNoDifference(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("six", func(n *samplecrdv1.Network) { n.Spec.Subnet = samplecrdv1.Subnet{CIDR: "fd00::/64"} }))
	id := n.awaitReady("six").Status.Subnets[0].ID
	before := shared.look(t, "subnet", id)
	n.edit("six", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)) })
	n.awaitReady("six")
	if diff := cmp.Diff(before, shared.look(t, "subnet", id)); diff != "" {
		t.Errorf("the subnet was changed (-before +after):\n%s", diff)
	}
}

func TestALongNameIsKept(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	name := strings.Repeat("a23456789.", 25) + "253"
	n.create(newNetwork(name))
	id := n.awaitReady(name).Status.NetworkID
	if got := shared.look(t, "network", id).text("name"); got != name {
		t.Errorf("got the name %s in Neutron, want %s", got, name)
	}
	n.delete(name)
	n.awaitGone(name)
	if network := shared.look(t, "network", id); network != nil {
		t.Errorf("got %v, want the network gone", network)
	}
}

func TestAHundredNetworksAtOnce(t *testing.T) {
	t.Parallel()
	const count = 100
	s := newServer(t)
	n := s.networks(t)
	var creating sync.WaitGroup
	for i := range count {
		creating.Go(func() {
			network := newNetwork(fmt.Sprintf("network-%02d", i))
			if _, err := n.Create(t.Context(), network, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	creating.Wait()
	ids := map[string]bool{}
	for i := range count {
		ids[n.awaitReady(fmt.Sprintf("network-%02d", i)).Status.NetworkID] = true
	}
	if made := s.list(t, "network", nil); len(ids) != count || len(made) != count {
		t.Errorf("got %d ids and %d networks in Neutron, want %d", len(ids), len(made), count)
	}
	if err := n.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		n.awaitGone(fmt.Sprintf("network-%02d", i))
	}
	if left := s.list(t, "network", nil); len(left) > 0 {
		t.Errorf("got %d networks left in Neutron, want none", len(left))
	}
}

func TestARestartChangesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n := s.networks(t)
	n.create(newNetwork("one"))
	id := n.awaitReady("one").Status.NetworkID
	before, inNeutron := n.versions(), s.look(t, "network", id)

	s = s.restart(t)
	n = s.networks(t)
	// One that is new is Ready after the pass over the old one has begun.
	n.create(newNetwork("two"))
	n.awaitReady("two")
	n.delete("two")
	n.awaitGone("two")
	if diff := cmp.Diff(before, n.versions()); diff != "" {
		t.Errorf("resource versions (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(inNeutron, s.look(t, "network", id)); diff != "" {
		t.Errorf("the network in Neutron (-before +after):\n%s", diff)
	}
}
