package network

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

const otherMarker = "samplecrd.k8s.io/cluster-2/9d3b5a34-5a34-4d5d-9f0c-000000000002"

func TestTakingOverWhatCannotBe(t *testing.T) {
	room := maxDescription - len([]rune(suffix(testMarker)))
	tests := map[string]struct {
		network, subnet string // descriptions
		want            state
	}{
		"the network is another's": {
			network: otherMarker,
			want:    state{no, no, samplecrdv1.ReasonNotOwned, fmt.Sprintf("network NETWORK belongs to another owner, with the marker %q in its description; to take it over from there, annotate this Network with samplecrd.k8s.io/take-over-from=%[1]s", otherMarker)},
		},
		"the network was taken over by another": {
			network: "of old [" + otherMarker + "]",
			want:    state{no, no, samplecrdv1.ReasonNotOwned, fmt.Sprintf("network NETWORK belongs to another owner, with the marker %q in its description; to take it over from there, annotate this Network with samplecrd.k8s.io/take-over-from=%[1]s", otherMarker)},
		},
		"the subnet is another's": {
			subnet: otherMarker,
			want:   state{no, no, samplecrdv1.ReasonNotOwned, fmt.Sprintf("subnet SUBNET belongs to another owner, with the marker %q in its description; to take it over from there, annotate this Network with samplecrd.k8s.io/take-over-from=%[1]s", otherMarker)},
		},
		"the description of the network is too long": {
			network: strings.Repeat("ü", room+1),
			want: state{no, no, samplecrdv1.ReasonInvalidConfiguration, fmt.Sprintf(
				"the description of network NETWORK has no room for the marker %q: with it, it would have more than 255 characters", testMarker)},
		},
		"the description of the subnet is too long": {
			subnet: strings.Repeat("ü", room+1),
			want: state{no, no, samplecrdv1.ReasonInvalidConfiguration, fmt.Sprintf(
				"the description of subnet SUBNET has no room for the marker %q: with it, it would have more than 255 characters", testMarker)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			network := w.foreignNetwork(tc.network)
			subnet := w.foreignSubnet(network.ID, "10.0.0.0/24", tc.subnet)
			network = w.network()
			w.create(newNetwork(takingOver(network.ID), withCIDR("10.0.0.0/24")))
			requests, _ := w.traffic(func() {
				if err := w.pass(); err == nil {
					t.Error("the pass ends well")
				}
			})
			if got := writesIn(requests); len(got) > 0 {
				t.Errorf("what is not ours was written to: %v", got)
			}
			tc.want.Message = strings.NewReplacer("NETWORK", network.ID, "SUBNET", subnet.ID).Replace(tc.want.Message)
			if diff := cmp.Diff(tc.want, stateOf(t, w.get())); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if _, writes := w.traffic(func() { _ = w.pass() }); len(writes) > 0 {
				t.Errorf("the second pass writes %v", writes)
			}

			w.delete()
			w.settle()
			if n := w.get(); n != nil {
				t.Errorf("what was never taken over holds the Network:\n%s", conditions(n))
			}
			if diff := cmp.Diff(network, w.network()); diff != "" {
				t.Errorf("the network changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADescriptionThatJustFitsIsTakenOver(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("ü", maxDescription-len([]rune(suffix(testMarker))))
	w.create(newNetwork(takingOver(w.foreignNetwork(text).ID)))
	w.settle()
	if got, want := w.network().Description, text+suffix(testMarker); got != want {
		t.Errorf("description is %q, want %q", got, want)
	}
	w.delete()
	w.settle()
	if got := w.network().Description; got != text {
		t.Errorf("description after the release is %q, want %q", got, text)
	}
}

func TestIntentBeforeTakingOver(t *testing.T) {
	w := newWorld(t)
	n := w.foreignNetwork("of old")
	w.create(newNetwork(takingOver(n.ID)))
	stale := w.get()
	w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.MTU = new(int32(1300)) }))
	requests, _ := w.traffic(func() {
		if err := newPass(w.controller, stale).run(w.context()); err == nil {
			t.Error("the pass over a stale object ends well")
		}
	})
	if got := writesIn(requests); len(got) > 0 {
		t.Errorf("a stale object changed something: %v", got)
	}
	w.arm(1, fault{neutron: droppedBefore, crash: true})
	_ = w.pass() // crashes at the first read
	w.arm(3, faults["a crash before"])
	_ = w.pass() // crashes at the intent: read, read, status
	w.disarm()
	if got := w.get().Status; len(got.Conditions) > 0 {
		t.Errorf("status is %+v, want none before the intent", got)
	}
	w.arm(4, faults["a crash before"])
	_ = w.pass()
	w.disarm()
	want := state{no, yes, samplecrdv1.ReasonUpdating, "the network is about to be taken over"}
	if diff := cmp.Diff(want, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions before the first change (-want +got):\n%s", diff)
	}
	w.settle()
}

func TestSpecEditsOfWhatIsTakenOver(t *testing.T) {
	w := newWorld(t)
	takenOver()(w)
	w.settle()
	network := w.network().ID
	old := w.subnets(network)[0]

	w.edit(additional(samplecrdv1.Subnet{CIDR: "10.1.0.0/24"}))
	w.settle()
	if got := w.subnets(network); len(got) != 2 || got[1].Description != testMarker {
		t.Fatalf("subnets are %+v, want a second with the bare marker", got)
	}

	w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.Subnet, s.AdditionalSubnets = samplecrdv1.Subnet{}, nil }))
	w.settle()
	want := old
	want.Description = "also of old"
	want.Revision++
	if diff := cmp.Diff([]neutron.Subnet{want}, w.subnets(network)); diff != "" {
		t.Errorf("subnets when none is declared (-want +got):\n%s", diff)
	}
}

func TestVanishedAfterTakingOverIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	takenOver()(w)
	w.settle()
	id := w.network().ID
	if err := w.admin.DeleteNetwork(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	requests, _ := w.traffic(func() {
		if err := w.pass(); err == nil {
			t.Error("the pass ends well")
		}
	})
	if diff := cmp.Diff([]string{"GET networks"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	want := state{no, no, samplecrdv1.ReasonNotFound, fmt.Sprintf("get network %s: Network %s could not be found.", id, id)}
	if diff := cmp.Diff(want, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	w.delete()
	w.settle()
	if n := w.get(); n != nil {
		t.Errorf("what is gone holds the Network:\n%s", conditions(n))
	}
}

func TestAnotherTookOverWhatWeHad(t *testing.T) {
	w := newWorld(t)
	takenOver(func(s *samplecrdv1.NetworkSpec) { s.DeletionPolicy = samplecrdv1.DeletionPolicyDelete })(w)
	w.settle()
	w.describe(w.network(), "of old ["+otherMarker+"]")
	want := w.network()
	w.delete()
	w.settle()
	if diff := cmp.Diff(want, w.network()); diff != "" || w.get() != nil {
		t.Errorf("Network is %v, and the network of another changed (-want +got):\n%s", w.get(), diff)
	}
}

func TestObserveOnlyReads(t *testing.T) {
	w := newWorld(t)
	n := w.foreignNetwork("of old")
	s := w.foreignSubnet(n.ID, "10.0.0.0/24", "also of old")
	w.create(newNetwork(takingOver(n.ID), withSpec(func(s *samplecrdv1.NetworkSpec) {
		s.ManagementPolicy = samplecrdv1.ManagementPolicyObserve
	})))
	requests, writes := w.traffic(func() { w.settle(); w.settle() })
	if diff := cmp.Diff([]string{"GET networks", "GET subnets", "GET networks", "GET subnets"}, requests); diff != "" {
		t.Errorf("requests of two passes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"status"}, writes); diff != "" {
		t.Errorf("writes of two passes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	got := w.get().Status
	if got.NetworkID != n.ID || len(got.Subnets) != 1 || got.Subnets[0].ID != s.ID || got.Provider == nil || got.Provider.SegmentationID == nil || *got.MTU != int32(n.MTU) {
		t.Errorf("status is %+v, want network %s with subnet %s", got, n.ID, s.ID)
	}
	requests, _ = w.traffic(func() { w.delete(); w.settle() })
	if len(requests) > 0 || w.get() != nil {
		t.Errorf("the Network is %v after requests %v, want it gone without any", w.get(), requests)
	}
}

// TestSwitchesOfManagement goes from Managed to Observe and back: the marker
// goes and comes with it, and nothing else changes.
func TestSwitchesOfManagement(t *testing.T) {
	observing := withSpec(func(s *samplecrdv1.NetworkSpec) {
		s.Subnet, s.ManagementPolicy = samplecrdv1.Subnet{}, samplecrdv1.ManagementPolicyObserve
	})
	managing := withSpec(func(s *samplecrdv1.NetworkSpec) {
		s.CIDR, s.ManagementPolicy = "10.0.0.0/24", samplecrdv1.ManagementPolicyManaged
	})
	w := newWorld(t)
	takenOver()(w)
	descriptionsAre := func(when, network, subnet string) {
		t.Helper()
		n := w.network()
		if s := w.subnets(n.ID)[0]; n.Description != network || s.Description != subnet {
			t.Errorf("%s: descriptions are %q and %q, want %q and %q", when, n.Description, s.Description, network, subnet)
		}
		if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
			t.Errorf("%s: conditions (-want +got):\n%s", when, diff)
		}
	}
	w.settle()
	descriptionsAre("managed", "of old"+suffix(testMarker), "also of old"+suffix(testMarker))
	w.edit(observing)
	w.settle()
	descriptionsAre("observed", "of old", "also of old")
	if requests, writes := w.traffic(w.settle); len(writesIn(requests)) > 0 || len(writes) > 0 {
		t.Errorf("a second look makes %v and writes %v", requests, writes)
	}
	w.edit(managing)
	w.settle()
	descriptionsAre("managed again", "of old"+suffix(testMarker), "also of old"+suffix(testMarker))
}

// An edit to Observe and a deletion may come before a pass sees the first.
func TestADeletionRightAfterTheSwitchToObserve(t *testing.T) {
	observe := withSpec(func(s *samplecrdv1.NetworkSpec) {
		s.Subnet, s.ManagementPolicy = samplecrdv1.Subnet{}, samplecrdv1.ManagementPolicyObserve
	})
	tests := map[string]struct {
		hinder func(*world)
		want   string
	}{
		"the marker is let go":               {func(*world) {}, "of old"},
		"a Neutron that is away delays none": {breakdown(http.MethodGet, "networks", answer(http.StatusServiceUnavailable, "")), "of old" + suffix(testMarker)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			takenOver()(w)
			w.settle()
			w.edit(observe)
			w.delete()
			tc.hinder(w)
			w.settle()
			repair(w)
			if got := w.network().Description; got != tc.want || w.get() != nil {
				t.Errorf("description is %q and the Network %v, want %q and none", got, w.get(), tc.want)
			}
		})
	}
}

// In what is taken over only pools that nobody chose follow the gateway.
func TestPoolsOfWhatIsTakenOver(t *testing.T) {
	chosen := []neutron.AllocationPool{{Start: "10.0.0.50", End: "10.0.0.60"}}
	tests := map[string]struct {
		choose func(*world, neutron.Subnet)
		want   []neutron.AllocationPool
	}{
		"the whole range": {want: []neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.253"}}},
		"pools that somebody chose": {want: chosen, choose: func(w *world, s neutron.Subnet) {
			if _, err := w.admin.UpdateSubnet(w.t.Context(), s.ID, s.Revision, neutron.SubnetAttributes{AllocationPools: &chosen}); err != nil {
				w.t.Fatal(err)
			}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			takenOver()(w)
			if tc.choose != nil {
				tc.choose(w, w.subnets(w.network().ID)[0])
			}
			w.settle()
			w.edit(withGateway("10.0.0.254"))
			w.settle()
			got := w.subnets(w.network().ID)[0]
			if diff := cmp.Diff(tc.want, got.AllocationPools); diff != "" || got.Gateway != "10.0.0.254" {
				t.Errorf("gateway is %s and pools (-want +got):\n%s", got.Gateway, diff)
			}
		})
	}
}
