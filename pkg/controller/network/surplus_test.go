package network

import (
	"testing"
	"time"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// TestSurplus has a second network with the marker of the Network, as a second
// leader could make it.
func TestSurplus(t *testing.T) {
	const old = surplusAge + time.Minute
	tests := map[string]struct {
		age    time.Duration
		tweak  func(*world, neutron.Network)
		paused bool
		drift  Drift
		want   int // networks that are left
	}{
		"old enough":              {age: old, want: 1},
		"too young":               {age: surplusAge - time.Second, want: 2},
		"with a subnet of ours":   {age: old, want: 1, tweak: func(w *world, n neutron.Network) { w.foreignSubnet(n.ID, "10.0.0.0/24", testMarker) }},
		"with a foreign subnet":   {age: old, want: 2, tweak: func(w *world, n neutron.Network) { w.foreignSubnet(n.ID, "10.0.0.0/24", "mine") }},
		"with a port":             {age: old, want: 2, tweak: func(w *world, n neutron.Network) { w.port(n.ID, "compute:nova") }},
		"of another owner by now": {age: old, want: 2, tweak: func(w *world, n neutron.Network) { w.describe(n, otherMarker) }},
		"of a Network on pause":   {age: old, want: 2, paused: true},
		"where drift is reported": {age: old, want: 2, drift: DriftReport},
		"where the Network is gone by now": {age: old, want: 2, tweak: func(w *world, _ neutron.Network) {
			if err := w.clients.Tracker().Delete(networksResource, testName.Namespace, testName.Name); err != nil {
				w.t.Fatal(err)
			}
		}},
		"where the Network is another by now": {age: old, want: 2, tweak: func(w *world, _ neutron.Network) {
			w.edit(func(n *samplecrdv1.Network) { n.UID = "another" })
		}},
		"where the copy is the first by now": {age: old, want: 2, tweak: func(w *world, n neutron.Network) {
			w.edit(func(stored *samplecrdv1.Network) { stored.Status.NetworkID = n.ID })
		}},
		"where the first is a third by now": {age: old, want: 2, tweak: func(w *world, _ neutron.Network) {
			w.edit(func(stored *samplecrdv1.Network) { stored.Status.NetworkID = "a-third" })
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.controller.drift = tc.drift
			w.create(newNetwork())
			w.settle()
			first := w.network()
			copied := w.foreignNetwork(testMarker)
			if tc.paused {
				w.edit(annotated(samplecrdv1.AnnotationPause, "true"))
			}
			if _, err := w.look(); err != nil {
				t.Fatal(err)
			}
			w.clock.SetTime(w.clock.Now().Add(tc.age))
			if _, err := w.look(); err != nil {
				t.Fatal(err)
			}
			if tc.tweak != nil {
				tc.tweak(w, copied)
			}
			for w.controller.queue.Len() > 0 {
				name, _ := w.controller.queue.Get()
				_ = w.controller.sync(w.context(), name)
				w.controller.queue.Done(name)
			}
			left := w.networks()
			if len(left) != tc.want {
				t.Errorf("left are %+v, want %d", left, tc.want)
			}
			if _, err := w.admin.GetNetwork(t.Context(), first.ID); err != nil {
				t.Errorf("the first one: %v", err)
			}
		})
	}
}

func TestWhatIsNoSurplus(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	w.settle()
	w.foreignNetwork(otherMarker)
	w.foreignNetwork("of old [" + testMarker + "]")
	w.foreignNetwork(ownerMarker(testCluster, "11111111-2222-3333-4444-555555555555"))
	for range 3 {
		if queued, err := w.look(); err != nil || queued > 0 {
			t.Fatalf("%d queued (%v), want none", queued, err)
		}
		w.clock.SetTime(w.clock.Now().Add(surplusAge))
	}
	if got := w.controller.surplus.of(testUID, w.clock.Now()); len(got) > 0 {
		t.Errorf("surplus is %v, want none", got)
	}
}
