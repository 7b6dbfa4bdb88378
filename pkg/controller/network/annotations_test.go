package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func annotated(annotation, value string) func(*samplecrdv1.Network) {
	return func(n *samplecrdv1.Network) {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[annotation] = value
	}
}

func TestPauseOnlyReads(t *testing.T) {
	const message = "nothing is written to Neutron while the annotation samplecrd.k8s.io/pause is true"
	w := newWorld(t)
	pause := annotated(samplecrdv1.AnnotationPause, "true")

	w.create(newNetwork(pause))
	if requests, _ := w.traffic(w.settle); len(requests) > 0 {
		t.Errorf("a paused Network that was never tried makes the calls %v", requests)
	}
	if diff := cmp.Diff(state{no, no, samplecrdv1.ReasonPaused, message}, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions of a Network made paused (-want +got):\n%s", diff)
	}

	w.edit(annotated(samplecrdv1.AnnotationPause, "false"))
	w.settle()
	w.edit(pause)
	w.settle()
	if diff := cmp.Diff(state{yes, no, samplecrdv1.ReasonPaused, message}, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions of a Network that is as declared (-want +got):\n%s", diff)
	}

	w.edit(withGateway("10.0.0.254"))
	before := w.network()
	requests, _ := w.traffic(w.settle)
	if got := writesIn(requests); len(got) > 0 {
		t.Errorf("a paused Network was changed: %v", got)
	}
	if diff := cmp.Diff(state{no, no, samplecrdv1.ReasonPaused, message}, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions of a Network that is not as declared (-want +got):\n%s", diff)
	}
	if _, writes := w.traffic(w.settle); len(writes) > 0 {
		t.Errorf("a second look writes %v", writes)
	}

	w.delete()
	w.settle()
	if diff := cmp.Diff(before, w.network()); diff != "" || w.get() == nil {
		t.Errorf("a paused deletion went on (-want +got):\n%s", diff)
	}
	w.edit(annotated(samplecrdv1.AnnotationPause, ""))
	w.settle()
	if got := w.networks(); len(got) > 0 || w.get() != nil {
		t.Errorf("the deletion did not go on: %v, %v", got, w.get())
	}
}

func TestAbandonSaysNothingToNeutron(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	w.settle()
	w.edit(annotated(samplecrdv1.AnnotationAbandon, "true"))
	w.settle()
	if w.get() == nil {
		t.Fatal("a Network that is not being deleted is gone")
	}
	want := w.network()
	w.delete()
	if requests, _ := w.traffic(w.settle); len(requests) > 0 || w.get() != nil {
		t.Errorf("calls %v and Network %v, want neither", requests, w.get())
	}
	if diff := cmp.Diff(want, w.network()); diff != "" {
		t.Errorf("the network changed (-want +got):\n%s", diff)
	}
}

// After Networks are made anew from a backup they have other UIDs, and so
// other markers than their networks in Neutron.
func TestTakeOverFromAnotherOwner(t *testing.T) {
	tests := map[string]struct {
		network, subnet         string
		wantNetwork, wantSubnet string
	}{
		"what the other made": {
			network: otherMarker, wantNetwork: testMarker,
			subnet: otherMarker, wantSubnet: testMarker,
		},
		"what the other took over": {
			network: "of old [" + otherMarker + "]", wantNetwork: "of old" + suffix(testMarker),
			subnet: "also [" + otherMarker + "]", wantSubnet: "also" + suffix(testMarker),
		},
		"what nobody owns": {
			network: "of old", wantNetwork: "of old" + suffix(testMarker),
			subnet: "", wantSubnet: suffix(testMarker),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			network := w.foreignNetwork(tc.network)
			w.foreignSubnet(network.ID, "10.0.0.0/24", tc.subnet)
			w.create(newNetwork(takingOver(network.ID), withCIDR("10.0.0.0/24"),
				annotated(samplecrdv1.AnnotationTakeOverFrom, otherMarker)))
			w.settle()
			if got := w.network(); got.ID != network.ID || got.Description != tc.wantNetwork {
				t.Errorf("network is %+v, want %s with the description %q", got, network.ID, tc.wantNetwork)
			}
			if got := w.subnets(network.ID); len(got) != 1 || got[0].Description != tc.wantSubnet {
				t.Errorf("subnets are %+v, want one with the description %q", got, tc.wantSubnet)
			}
			if got := stateOf(t, w.get()); got.Reason != samplecrdv1.ReasonSuccess {
				t.Errorf("conditions are %+v, want success", got)
			}
		})
	}
}

// What is restored from a backup goes on as before: the gateway moves with the
// pools, and another range replaces what the owner of old had made.
func TestWhatIsRestoredCanBeChanged(t *testing.T) {
	w := newWorld(t)
	network := w.foreignNetwork(otherMarker)
	w.foreignSubnet(network.ID, "10.0.0.0/24", otherMarker)
	w.create(newNetwork(takingOver(network.ID), withCIDR("10.0.0.0/24"), annotated(samplecrdv1.AnnotationTakeOverFrom, otherMarker)))
	w.settle()

	w.edit(withGateway("10.0.0.9"))
	w.settle()
	moved := w.subnets(network.ID)
	if len(moved) != 1 || moved[0].Gateway != "10.0.0.9" || len(moved[0].AllocationPools) != 2 {
		t.Errorf("subnets are %+v, want one with another gateway and the pools beside it", moved)
	}
	w.edit(withGateway(""), withCIDR("10.0.0.0/16"))
	w.settle()
	replaced := w.subnets(network.ID)
	if len(replaced) != 1 || replaced[0].CIDR != "10.0.0.0/16" || replaced[0].ID == moved[0].ID {
		t.Errorf("subnets are %+v, want one of the other range", replaced)
	}
	if got := stateOf(t, w.get()); got != succeeds {
		t.Errorf("conditions are %+v, want %+v", got, succeeds)
	}
}
