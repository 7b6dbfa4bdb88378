package integration

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// counted are the attributes that Neutron itself moves with each change.
var counted = cmpopts.IgnoreMapEntries(func(name string, _ any) bool { return name == "revision_number" || name == "updated_at" })

// withID is a Network of what is there already.
func withID(id string, tweaks ...func(*samplecrdv1.Network)) func(*samplecrdv1.Network) {
	return func(n *samplecrdv1.Network) {
		n.Spec = samplecrdv1.NetworkSpec{OpenStack: &samplecrdv1.OpenStack{NetworkID: id}}
		for _, tweak := range tweaks {
			tweak(n)
		}
	}
}

func observe(n *samplecrdv1.Network) { n.Spec.ManagementPolicy = samplecrdv1.ManagementPolicyObserve }

// byHand makes a network with one subnet, as someone else would.
func byHand(t *testing.T, description string) (network, subnet object) {
	t.Helper()
	made := shared.make(t, "network", object{"name": "by hand", "description": description, "mtu": 1300})
	subnet = shared.make(t, "subnet", object{
		"name": "a subnet", "network_id": made.id(), "ip_version": 4, "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.254",
		"enable_dhcp": false, "description": description, "dns_nameservers": []string{"192.0.2.1"},
	})
	return shared.look(t, "network", made.id()), subnet
}

// marker is what proves that something in Neutron is of that Network.
func (s *server) marker(t *testing.T, network *samplecrdv1.Network) string {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(s.dir, "cluster-id"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("samplecrd.k8s.io/%s/%s", strings.TrimSpace(string(id)), network.UID)
}

func TestWhatIsMadeBearsTheMarker(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("one"))
	got := n.awaitReady("one")
	want := shared.marker(t, got)
	if description := shared.look(t, "network", got.Status.NetworkID).text("description"); description != want {
		t.Errorf("got description %q of the network, want %q", description, want)
	}
	if description := shared.look(t, "subnet", got.Status.Subnets[0].ID).text("description"); description != want {
		t.Errorf("got description %q of the subnet, want %q", description, want)
	}
}

func TestObserveOnlyReads(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	network, subnet := byHand(t, "mine")
	n.create(newNetwork("seen", withID(network.id(), observe)))
	got := n.awaitReady("seen").Status
	want := samplecrdv1.NetworkStatus{
		ObservedGeneration: 1, NetworkID: network.id(), ProjectID: project, Region: "RegionOne", MTU: new(int32(1300)),
		Subnets: []samplecrdv1.SubnetStatus{{
			CIDR: "10.0.0.0/24", ID: subnet.id(), Gateway: "10.0.0.254",
			AllocationPools: []samplecrdv1.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.253"}},
		}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(want, "Conditions", "Provider")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	n.delete("seen")
	n.awaitGone("seen")
	if diff := cmp.Diff(network, shared.look(t, "network", network.id())); diff != "" {
		t.Errorf("the network was changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(subnet, shared.look(t, "subnet", subnet.id())); diff != "" {
		t.Errorf("the subnet was changed (-before +after):\n%s", diff)
	}
}

func TestObserveOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("seen", withID("00000000-0000-4000-8000-000000000000", observe)))
	if c := condition(n.awaitReason("seen", samplecrdv1.ReasonNotFound), samplecrdv1.ConditionProgressing); c.Status != metav1.ConditionFalse {
		t.Errorf("got condition %+v, want False: a person is needed", c)
	}
	n.delete("seen")
	n.awaitGone("seen")
}

func TestTakingOverLosesNothing(t *testing.T) {
	t.Parallel()
	subnetToo := func(n *samplecrdv1.Network) { n.Spec.CIDR = "10.0.0.0/24" }
	for name, tc := range map[string]struct {
		description string
		tweak       func(*samplecrdv1.Network)
		wantSubnet  bool // marked too
	}{
		"the network alone":                {description: "made by hand", tweak: func(*samplecrdv1.Network) {}},
		"its subnet too":                   {description: "made by hand", tweak: subnetToo, wantSubnet: true},
		"without a description":            {tweak: subnetToo, wantSubnet: true},
		"with spaces at the end":           {description: "spaces  ", tweak: subnetToo, wantSubnet: true},
		"with characters of many bytes":    {description: strings.Repeat("сеть ", 25), tweak: subnetToo, wantSubnet: true},
		"with brackets that are no marker": {description: "a [b] [samplecrd.k8s.io]", tweak: subnetToo, wantSubnet: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := shared.networks(t)
			network, subnet := byHand(t, tc.description)
			n.create(newNetwork("taken", withID(network.id(), tc.tweak)))
			got := n.awaitReady("taken")

			marked := func(o object, is bool) object {
				want := maps.Clone(o)
				if is {
					want["description"] = tc.description + " [" + shared.marker(t, got) + "]"
				}
				return want
			}
			if diff := cmp.Diff(marked(network, true), shared.look(t, "network", network.id()), counted); diff != "" {
				t.Errorf("the network when taken over (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(marked(subnet, tc.wantSubnet), shared.look(t, "subnet", subnet.id()), counted); diff != "" {
				t.Errorf("the subnet when taken over (-want +got):\n%s", diff)
			}
			n.delete("taken")
			n.awaitGone("taken")
			if diff := cmp.Diff(network, shared.look(t, "network", network.id()), counted); diff != "" {
				t.Errorf("the network when let go (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(subnet, shared.look(t, "subnet", subnet.id()), counted); diff != "" {
				t.Errorf("the subnet when let go (-before +after):\n%s", diff)
			}
		})
	}
}

func TestTakingOverIsRefused(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("owner"))
	owner := n.awaitReady("owner")
	full, _ := byHand(t, strings.Repeat("x", 255))
	for name, tc := range map[string]struct {
		id, wantReason, wantText string
	}{
		"of what another Network made": {owner.Status.NetworkID, samplecrdv1.ReasonNotOwned, shared.marker(t, owner)},
		"where the marker has no room": {full.id(), samplecrdv1.ReasonInvalidConfiguration, "255"},
		"of what is not there":         {"00000000-0000-4000-8000-000000000000", samplecrdv1.ReasonNotFound, "get network"},
	} {
		t.Run(name, func(t *testing.T) {
			n := shared.networks(t)
			before := shared.look(t, "network", tc.id)
			n.create(newNetwork("taker", withID(tc.id)))
			if c := condition(n.awaitReason("taker", tc.wantReason), samplecrdv1.ConditionReady); !strings.Contains(c.Message, tc.wantText) {
				t.Errorf("got message %q, want one with %q", c.Message, tc.wantText)
			}
			n.delete("taker")
			n.awaitGone("taker")
			if diff := cmp.Diff(before, shared.look(t, "network", tc.id)); diff != "" {
				t.Errorf("the network was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestRetainLeavesTheNetworkWithoutItsMarker(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("kept", func(n *samplecrdv1.Network) { n.Spec.DeletionPolicy = samplecrdv1.DeletionPolicyRetain }))
	status := n.awaitReady("kept").Status
	n.delete("kept")
	n.awaitGone("kept")
	network, subnet := shared.look(t, "network", status.NetworkID), shared.look(t, "subnet", status.Subnets[0].ID)
	if network == nil || subnet == nil {
		t.Fatalf("got network %v and subnet %v, want both kept", network, subnet)
	}
	if network.text("description")+subnet.text("description") != "" {
		t.Errorf("got descriptions %q and %q, want them empty", network.text("description"), subnet.text("description"))
	}
}

// lookNow asks for what would else wait for the next resync.
func lookNow(n *samplecrdv1.Network) {
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, samplecrdv1.AnnotationReconcileNow, "please")
}

func TestWhatHoldsUpADeletion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind       string
		attributes object
		wantReason string
	}{
		"a subnet of somebody else": {"subnet", object{"ip_version": 4, "cidr": "10.9.0.0/24", "description": "mine"}, samplecrdv1.ReasonNotOwned},
		"a port":                    {"port", object{"device_owner": "compute:nova"}, samplecrdv1.ReasonInUse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := shared.networks(t)
			n.create(newNetwork("held"))
			status := n.awaitReady("held").Status
			tc.attributes["network_id"] = status.NetworkID
			holder := shared.make(t, tc.kind, tc.attributes)
			n.delete("held")
			got := n.awaitReason("held", tc.wantReason)
			if c := condition(got, samplecrdv1.ConditionReady); !strings.Contains(c.Message, holder.id()) {
				t.Errorf("got message %q, want one that names %s", c.Message, holder.id())
			}
			if shared.look(t, "subnet", status.Subnets[0].ID) == nil || shared.look(t, tc.kind, holder.id()) == nil {
				t.Error("the network is half gone")
			}
			shared.remove(t, tc.kind, holder.id())
			n.edit("held", lookNow)
			n.awaitGone("held")
			if network := shared.look(t, "network", status.NetworkID); network != nil {
				t.Errorf("got %v, want the network gone", network)
			}
		})
	}
}

func TestALostMarkerStopsEverything(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("one"))
	got := n.awaitReady("one")
	marker, id := shared.marker(t, got), got.Status.NetworkID
	shared.change(t, "network", id, object{"description": "mine now"})
	n.edit("one", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)) })
	got = n.awaitReason("one", samplecrdv1.ReasonNotOwned)
	if c := condition(got, samplecrdv1.ConditionReady); !strings.Contains(c.Message, marker) {
		t.Errorf("got message %q, want one with the text to put back, %q", c.Message, marker)
	}
	if same := shared.list(t, "network", url.Values{"name": {"one"}, "description": {marker}}); len(same) > 0 {
		t.Errorf("got a second network %v", same)
	}
	shared.change(t, "network", id, object{"description": marker})
	n.edit("one", lookNow)
	if got := n.awaitReady("one").Status; got.NetworkID != id || *got.MTU != 1400 {
		t.Errorf("got network %s with MTU %d, want %s with 1400", got.NetworkID, *got.MTU, id)
	}
}

func TestWhatWasDeletedByHandIsMadeAgain(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("one"))
	old := n.awaitReady("one").Status.NetworkID
	shared.remove(t, "network", old)
	w := n.watch(metav1.ListOptions{})
	n.edit("one", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)) })
	var reasons []string
	for {
		event := w.next()
		network, ok := event.Object.(*samplecrdv1.Network)
		if !ok || event.Type == watch.Error {
			t.Fatalf("got event %v", event)
		}
		reason := condition(network, samplecrdv1.ConditionProgressing).Reason
		if len(reasons) == 0 || reasons[len(reasons)-1] != reason {
			reasons = append(reasons, reason)
		}
		if reason == samplecrdv1.ReasonSuccess && network.Status.NetworkID != old {
			break
		}
	}
	if diff := cmp.Diff([]string{samplecrdv1.ReasonSuccess, samplecrdv1.ReasonExternallyDeleted, samplecrdv1.ReasonSuccess}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
