package network

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

const drifted = "changed in Neutron, and left so by --drift=Report: "

// TestDriftIsReported has a controller that only reports: whatever happens to
// a network, and whatever goes wrong meanwhile, nothing is written to Neutron
// before the spec changes.
func TestDriftIsReported(t *testing.T) {
	subnetMoves := func(w *world) {
		s := w.subnets(w.network().ID)[0]
		if _, err := w.admin.UpdateSubnet(w.t.Context(), s.ID, s.Revision, neutron.SubnetAttributes{Gateway: new("10.0.0.9"), AllocationPools: &[]neutron.AllocationPool{}}); err != nil {
			w.t.Fatal(err)
		}
	}
	tests := map[string]struct {
		start  func(*world) // default: a Network of our own
		drift  func(*world)
		want   string // after drifted; PLACE is the id of the network
		remedy func(*world)
	}{
		"the gateway moved": {
			drift: subnetMoves,
			want:  "as declared after update subnet 10.0.0.0/24",
			remedy: func(w *world) {
				s := w.subnets(w.network().ID)[0]
				if _, err := w.admin.UpdateSubnet(w.t.Context(), s.ID, s.Revision, neutron.SubnetAttributes{
					Gateway: new("10.0.0.1"), AllocationPools: &[]neutron.AllocationPool{{Start: "10.0.0.2", End: "10.0.0.254"}},
				}); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		"name and subnet": {
			drift: func(w *world) {
				n := w.network()
				if _, err := w.admin.UpdateNetwork(w.t.Context(), n.ID, n.Revision, neutron.NetworkAttributes{Name: new("another")}); err != nil {
					w.t.Fatal(err)
				}
				if err := w.admin.DeleteSubnet(w.t.Context(), w.subnets(n.ID)[0].ID); err != nil {
					w.t.Fatal(err)
				}
			},
			want: "as declared after update network, create subnet 10.0.0.0/24",
		},
		"the network is gone": {
			drift: func(w *world) {
				if err := w.admin.DeleteNetwork(w.t.Context(), w.network().ID); err != nil {
					w.t.Fatal(err)
				}
			},
			want: "network PLACE is gone",
		},
		"the marker is lost": {
			drift:  func(w *world) { w.describe(w.network(), "mine now") },
			want:   `network PLACE does not bear the marker of this Network: its description is "mine now"; if it is ours, set it to "` + testMarker + `"`,
			remedy: func(w *world) { w.describe(w.network(), testMarker) },
		},
		"what was taken over is no longer marked": {
			start:  takenOver(),
			drift:  func(w *world) { w.describe(w.network(), "of old") },
			want:   "as declared after update network",
			remedy: func(w *world) { w.describe(w.network(), "of old"+suffix(testMarker)) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.controller.drift = DriftReport
			if tc.start != nil {
				tc.start(w)
			} else {
				w.create(newNetwork())
			}
			w.settle() // a Network that is new is carried out
			want := w.fill(state{no, no, samplecrdv1.ReasonDriftDetected, drifted + tc.want})
			tc.drift(w)
			look := func(when string) {
				t.Helper()
				requests, _ := w.traffic(func() { _ = w.pass() })
				if got := writesIn(requests); len(got) > 0 {
					t.Errorf("%s: Neutron was written to: %v", when, got)
				}
				if diff := cmp.Diff(want, stateOf(t, w.get())); diff != "" {
					t.Errorf("%s: conditions (-want +got):\n%s", when, diff)
				}
			}
			look("at first")
			if _, writes := w.traffic(func() { _ = w.pass() }); len(writes) > 0 {
				t.Errorf("a second look writes %v", writes)
			}

			// Trouble on the way must not make the next look forget what was.
			breakdown(http.MethodGet, "networks", answer(http.StatusServiceUnavailable, ""))(w)
			if err := w.pass(); err == nil {
				t.Error("a look that failed is not tried again")
			}
			if ready := w.get().Status.Conditions[0]; ready.Reason != samplecrdv1.ReasonDriftDetected {
				t.Errorf("after a failed look Ready is %+v", ready)
			}
			repair(w)
			look("after trouble")

			w.edit(annotated(samplecrdv1.AnnotationPause, "true"))
			_ = w.pass()
			w.edit(annotated(samplecrdv1.AnnotationPause, "false"))
			look("after a pause")

			if tc.remedy != nil {
				tc.remedy(w)
				if requests, _ := w.traffic(w.settle); len(writesIn(requests)) > 0 {
					t.Errorf("after the remedy Neutron was written to: %v", requests)
				}
				if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
					t.Errorf("conditions after the remedy (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAnEditOfTheSpecCorrectsDriftToo(t *testing.T) {
	w := newWorld(t)
	w.controller.drift = DriftReport
	w.create(newNetwork())
	w.settle()
	if err := w.admin.DeleteSubnet(t.Context(), w.subnets(w.network().ID)[0].ID); err != nil {
		t.Fatal(err)
	}
	_ = w.pass()
	moveGateway(w)
	w.settle()
	if got := w.subnets(w.network().ID); len(got) != 1 || got[0].Gateway != "10.0.0.254" {
		t.Errorf("subnets are %+v, want one with the gateway of the new spec", got)
	}
}

func TestADeletionIsNoDrift(t *testing.T) {
	w := newWorld(t)
	w.controller.drift = DriftReport
	w.create(newNetwork())
	w.settle()
	w.delete()
	w.settle()
	if left := w.networks(); len(left) > 0 || w.get() != nil {
		t.Errorf("left are %v and the Network %v", left, w.get())
	}
}

func TestDriftCorrectionsAreCounted(t *testing.T) {
	w := newWorld(t)
	correction := fmt.Sprintf(`network_controller_drift_corrections_total{operation=%q}`, createSubnet.label())
	before := metric(t, correction)
	w.create(newNetwork())
	w.settle()
	if got := metric(t, correction); got != before {
		t.Errorf("what was new counts as %v corrections", got-before)
	}
	if err := w.admin.DeleteSubnet(t.Context(), w.subnets(w.network().ID)[0].ID); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := metric(t, correction); got != before+1 {
		t.Errorf("%v corrections, want 1", got-before)
	}
}
