package network

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// scenario leads a Network from one quiet state to another.
type scenario struct {
	start func(w *world)
	act   func(w *world)
	// wantCIDRs are the subnets at the end, in order; nil: no network of ours.
	wantCIDRs []string
	check     func(t *testing.T, w *world)
}

func made(tweaks ...func(*samplecrdv1.Network)) func(*world) {
	return func(w *world) {
		w.create(newNetwork(tweaks...))
		w.settle()
	}
}

func edited(tweak func(*samplecrdv1.NetworkSpec)) func(*world) {
	return func(w *world) { w.edit(withSpec(tweak)) }
}

func retained(s *samplecrdv1.NetworkSpec) { s.DeletionPolicy = samplecrdv1.DeletionPolicyRetain }

// takenOver makes a foreign network with one subnet, and a Network that has
// taken over both.
func takenOver(tweaks ...func(*samplecrdv1.NetworkSpec)) func(*world) {
	return func(w *world) {
		n := w.foreignNetwork("of old")
		w.foreignSubnet(n.ID, "10.0.0.0/24", "also of old")
		network := newNetwork(takingOver(n.ID), withSpec(func(s *samplecrdv1.NetworkSpec) { s.CIDR = "10.0.0.0/24" }))
		for _, tweak := range tweaks {
			tweak(&network.Spec)
		}
		w.create(network)
	}
}

func descriptions(want ...string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		n := w.network()
		got := []string{n.Description}
		for _, s := range w.subnets(n.ID) {
			got = append(got, s.Description)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("descriptions of network and subnets (-want +got):\n%s", diff)
		}
	}
}

var scenarios = map[string]scenario{
	"create": {
		act:       func(w *world) { w.create(newNetwork()) },
		wantCIDRs: []string{"10.0.0.0/24"},
	},
	"create with two subnets": {
		act: func(w *world) {
			w.create(newNetwork(withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: "fd00::/64"}}
			})))
		},
		wantCIDRs: []string{"10.0.0.0/24", "fd00::/64"},
	},
	"move the gateway": {
		start:     made(),
		act:       edited(func(s *samplecrdv1.NetworkSpec) { s.Gateway = "10.0.0.254" }),
		wantCIDRs: []string{"10.0.0.0/24"},
		check: func(t *testing.T, w *world) {
			s := w.subnets(w.network().ID)[0]
			if want := []neutron.AllocationPool{{Start: "10.0.0.1", End: "10.0.0.253"}}; s.Gateway != "10.0.0.254" || !samePools(want, s.AllocationPools) {
				t.Errorf("gateway is %s with pools %v, want 10.0.0.254 with %v", s.Gateway, s.AllocationPools, want)
			}
		},
	},
	"replace the range by another": {
		start:     made(),
		act:       edited(func(s *samplecrdv1.NetworkSpec) { s.CIDR = "10.9.0.0/24" }),
		wantCIDRs: []string{"10.9.0.0/24"},
	},
	"replace the range by one that overlaps": {
		start:     made(),
		act:       edited(func(s *samplecrdv1.NetworkSpec) { s.CIDR = "10.0.0.0/16" }),
		wantCIDRs: []string{"10.0.0.0/16"},
	},
	"make again what someone deleted": {
		start: made(),
		act: func(w *world) {
			if err := w.admin.DeleteNetwork(w.t.Context(), w.network().ID); err != nil {
				w.t.Fatal(err)
			}
		},
		wantCIDRs: []string{"10.0.0.0/24"},
	},
	"take over": {
		act:       takenOver(),
		wantCIDRs: []string{"10.0.0.0/24"},
		check:     descriptions("of old ["+testMarker+"]", "also of old ["+testMarker+"]"),
	},
	"delete": {
		start: made(),
		act:   (*world).delete,
	},
	"delete what is retained": {
		start: made(withSpec(retained)),
		act:   (*world).delete,
		check: descriptions("", ""),
	},
	"release what was taken over": {
		start: func(w *world) { takenOver()(w); w.settle() },
		act:   (*world).delete,
		check: descriptions("of old", "also of old"),
	},
	"delete what was taken over": {
		start: func(w *world) {
			takenOver(func(s *samplecrdv1.NetworkSpec) { s.DeletionPolicy = samplecrdv1.DeletionPolicyDelete })(w)
			w.settle()
		},
		act: (*world).delete,
		check: func(t *testing.T, w *world) {
			if left := w.networks(); len(left) > 0 {
				t.Errorf("left in Neutron: %+v", left)
			}
		},
	},
}

// TestOneFailureAnywhereLeavesNoTrace fails each effect of each scenario in
// each way, and lets the controller go on.
func TestOneFailureAnywhereLeavesNoTrace(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, f := range faults {
				t.Run(kind, func(t *testing.T) { failEach(t, s, f) })
			}
		})
	}
}

// simple are the scenarios that stand for the others where the kind of fault
// makes the difference.
var simple = []string{"create", "move the gateway", "delete"}

func TestOneRefusalAnywhereLeavesNoTrace(t *testing.T) {
	for _, name := range simple {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, f := range refusals {
				t.Run(kind, func(t *testing.T) { failEach(t, scenarios[name], f) })
			}
		})
	}
}

// TestSilenceAnywhereLeavesNoTrace gives a create much time: were it cut off by
// a busy machine and done later, there would be two networks.
func TestSilenceAnywhereLeavesNoTrace(t *testing.T) {
	for name, timeout := range map[string]time.Duration{
		"create": 3 * time.Second, "move the gateway": time.Second / 2, "delete": time.Second / 2,
	} {
		for kind, f := range hangs {
			t.Run(name+" with "+kind, func(t *testing.T) {
				t.Parallel()
				failEach(t, scenarios[name], f, func(o *neutron.Options) { o.Timeout = timeout })
			})
		}
	}
}

func failEach(t *testing.T, s scenario, f fault, options ...func(*neutron.Options)) {
	for nth := 1; ; nth++ {
		w := newWorld(t)
		if s.start != nil {
			s.start(w)
		}
		s.act(w)
		w.controller.cloud = neutron.NewStaticCloud(w.client(options...))
		w.arm(nth, f)
		w.settle()
		fired := w.disarm()
		checkEnd(t, w, s)
		if t.Failed() {
			t.Fatalf("with effect %d failed", nth)
		}
		if !fired {
			if nth == 1 {
				t.Fatal("there was no effect to fail")
			}
			return
		}
	}
}

func checkEnd(t *testing.T, w *world, s scenario) {
	t.Helper()
	if s.check != nil {
		s.check(t, w)
	}
	n := w.get()
	if s.wantCIDRs == nil {
		if n != nil {
			t.Errorf("the Network is still there:\n%s", conditions(n))
		}
		if s.check == nil && len(w.networks()) > 0 {
			t.Errorf("left in Neutron: %+v", w.networks())
		}
		return
	}
	want := state{metav1.ConditionTrue, metav1.ConditionFalse, samplecrdv1.ReasonSuccess, "the network is as declared"}
	if diff := cmp.Diff(want, stateOf(t, n)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	network := w.network()
	wantStatus := samplecrdv1.NetworkStatus{NetworkID: network.ID, ProjectID: testProject, Region: testRegion}
	var gotCIDRs []string
	for _, s := range w.subnets(network.ID) {
		gotCIDRs = append(gotCIDRs, s.CIDR)
		wantStatus.Subnets = append(wantStatus.Subnets, samplecrdv1.SubnetStatus{CIDR: s.CIDR, ID: s.ID, Gateway: s.Gateway, AllocationPools: poolStatus(s.AllocationPools)})
	}
	if diff := cmp.Diff(s.wantCIDRs, gotCIDRs); diff != "" {
		t.Errorf("subnets (-want +got):\n%s", diff)
	}
	gotStatus := samplecrdv1.NetworkStatus{NetworkID: n.Status.NetworkID, ProjectID: n.Status.ProjectID, Region: n.Status.Region, Subnets: n.Status.Subnets}
	if diff := cmp.Diff(wantStatus, gotStatus); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	requests, writes := w.traffic(w.settle)
	if diff := cmp.Diff([]string{"GET networks", "GET subnets"}, requests); diff != "" || len(writes) > 0 {
		t.Errorf("a quiet pass writes %v, and asks of Neutron (-want +got):\n%s", writes, diff)
	}
}
