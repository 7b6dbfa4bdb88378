package network

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

func TestAStaleObjectMakesNothing(t *testing.T) {
	intent := func(w *world) *samplecrdv1.Network {
		breakdown("POST", "networks", answer(http.StatusServiceUnavailable, ""))(w)
		if err := w.pass(); err == nil {
			w.t.Error("the pass ends well")
		}
		repair(w)
		return w.get()
	}
	tests := map[string]func(w *world) *samplecrdv1.Network{
		"never tried, and edited since": func(w *world) *samplecrdv1.Network {
			stale := w.get()
			w.edit(withGateway("10.0.0.9"))
			return stale
		},
		"never tried, and gone since": func(w *world) *samplecrdv1.Network {
			stale := w.get()
			w.delete()
			w.settle()
			return stale
		},
		"tried, and edited since": func(w *world) *samplecrdv1.Network {
			stale := intent(w)
			w.edit(withGateway("10.0.0.9"))
			return stale
		},
		"tried, and gone since": func(w *world) *samplecrdv1.Network {
			stale := intent(w)
			w.delete()
			w.settle()
			return stale
		},
		"made, and gone since": func(w *world) *samplecrdv1.Network {
			w.settle()
			stale := w.get()
			w.delete()
			w.settle()
			return stale
		},
	}
	for name, age := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newNetwork())
			stale := age(w)
			requests, _ := w.traffic(func() {
				err := newPass(w.controller, stale).run(w.context())
				if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					t.Errorf("error of the pass is %v, want that the object has changed", err)
				}
			})
			if got := writesIn(requests); len(got) > 0 {
				t.Errorf("a stale object made %v", got)
			}
		})
	}
}

func TestNumberOfCalls(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	requests, writes := w.traffic(func() {
		if err := w.pass(); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff([]string{"POST networks", "POST subnets"}, requests); diff != "" {
		t.Errorf("requests of the first pass (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"status", "status", "status"}, writes); diff != "" {
		t.Errorf("writes of the first pass (-want +got):\n%s", diff)
	}
	requests, writes = w.traffic(w.settle)
	if diff := cmp.Diff([]string{"GET networks", "GET subnets"}, requests); diff != "" || len(writes) > 0 {
		t.Errorf("writes %v and requests of a quiet pass (-want +got):\n%s", writes, diff)
	}

	// At most four after a crash anywhere on the way.
	for nth := 1; nth <= 6; nth++ {
		w := newWorld(t)
		w.create(newNetwork())
		w.arm(nth, faults["a crash after"])
		if err := w.pass(); nth <= 5 && err == nil {
			t.Errorf("crash %d is not noticed", nth)
		}
		requests, _ := w.traffic(w.settle)
		if len(requests) > 4 {
			t.Errorf("after crash %d it takes %d requests, want at most 4: %v", nth, len(requests), requests)
		}
	}
}

func TestAFailedSearchMakesNothing(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	w.arm(2, faults["a crash after"]) // the POST is done, and nobody heard of it
	if err := w.pass(); err == nil {
		t.Fatal("the crash is not noticed")
	}
	w.disarm()
	want := w.network()
	breakdown("GET", "networks", answer(http.StatusOK, `{"networks": null}`))(w)
	requests, _ := w.traffic(func() {
		if err := w.pass(); neutron.ClassOf(err) != neutron.Transient {
			t.Errorf("error of the pass is %v, want a passing one", err)
		}
	})
	if diff := cmp.Diff([]string{"GET networks"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	repair(w)
	w.settle()
	if got := w.network(); got.ID != want.ID {
		t.Errorf("the network is %s, want the one that was made, %s", got.ID, want.ID)
	}
}

func TestOnlyTheExactMarkerIsAdopted(t *testing.T) {
	w := newWorld(t)
	others := map[string]neutron.Network{}
	for _, description := range []string{
		"", strings.ToUpper(testMarker), testMarker + " ", " " + testMarker, "text [" + testMarker + "]", "samplecrd.k8s.io/cluster-1/another",
	} {
		n := w.foreignNetwork(description)
		others[n.ID] = n
	}
	w.create(newNetwork())
	w.arm(2, faults["a crash before"])
	if err := w.pass(); err == nil {
		t.Fatal("the crash is not noticed")
	}
	w.disarm()
	w.settle()
	got := map[string]neutron.Network{}
	for _, n := range w.networks() {
		got[n.ID] = n
	}
	id := w.get().Status.NetworkID
	if got[id].Description != testMarker {
		t.Errorf("network %q is not one that bears the marker", id)
	}
	delete(got, id)
	if diff := cmp.Diff(others, got); diff != "" {
		t.Errorf("other networks (-want +got):\n%s", diff)
	}
}

func TestOfTwoWithTheMarkerTheSameIsChosen(t *testing.T) {
	w := newWorld(t)
	a, b := w.foreignNetwork(testMarker).ID, w.foreignNetwork(testMarker).ID
	w.create(newNetwork(func(n *samplecrdv1.Network) { n.Status.ProjectID, n.Status.Region = testProject, testRegion }))
	w.settle()
	if got, want := w.get().Status.NetworkID, min(a, b); got != want {
		t.Errorf("network %s was chosen of %s and %s, want %s", got, a, b, want)
	}
}

func TestWhatIsFoundByItsMarkerMayHoldWhatOthersMade(t *testing.T) {
	w := newWorld(t)
	n := w.foreignNetwork(testMarker)
	s := w.foreignSubnet(n.ID, "10.0.0.0/24", "hands off")
	w.create(newNetwork(func(n *samplecrdv1.Network) { n.Status.ProjectID, n.Status.Region = testProject, testRegion }))
	if err := w.pass(); err == nil {
		t.Error("the pass ends well")
	}
	if got := stateOf(t, w.get()); got.Reason != samplecrdv1.ReasonNotOwned || !strings.Contains(got.Message, s.ID) {
		t.Errorf("conditions are %+v, want NotOwned that names subnet %s", got, s.ID)
	}
	if diff := cmp.Diff([]neutron.Subnet{s}, w.subnets(n.ID)); diff != "" {
		t.Errorf("the subnet of someone else changed (-want +got):\n%s", diff)
	}
}

func TestMadeAgainInTheSamePlace(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	w.settle()
	old := w.network().ID
	if err := w.admin.DeleteNetwork(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	var said []state
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			said = append(said, stateOf(t, w.get()))
		}
		return false
	})
	requests, _ := w.traffic(w.settle)
	if diff := cmp.Diff([]string{"GET networks", "GET networks", "POST networks", "POST subnets"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	want := []state{
		{no, yes, samplecrdv1.ReasonExternallyDeleted, "the network was deleted in Neutron and is made again"},
		{no, yes, samplecrdv1.ReasonExternallyDeleted, "next: create subnet 10.0.0.0/24"},
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("conditions at each POST (-want +got):\n%s", diff)
	}
	if got := w.get().Status.NetworkID; got == old || got != w.network().ID {
		t.Errorf("network is %s, want the new one, %s", got, w.network().ID)
	}
}

func TestAnotherPlaceGetsNoCall(t *testing.T) {
	tests := map[string]struct {
		option func(*neutron.Options)
		tweak  func(*samplecrdv1.Network)
		want   string
	}{
		"another project": {
			option: func(o *neutron.Options) { o.ProjectID, o.Token = "project-2", "it:u:project-2:member" },
			want:   `the network is in project "project-1" of region "RegionOne", and the credentials are for project "project-2" of region "RegionOne"`,
		},
		"another region": {
			option: func(o *neutron.Options) { o.Region = "RegionTwo" },
			want:   `the network is in project "project-1" of region "RegionOne", and the credentials are for project "project-1" of region "RegionTwo"`,
		},
		"credentials that nobody can read": {
			tweak: withOpenStack(samplecrdv1.OpenStack{CredentialsRef: &samplecrdv1.CredentialsRef{SecretName: "mine", CloudName: "lab"}}),
			want:  `spec.openStack.credentialsRef names Secret "mine", and a server without a cluster has no Secrets`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newNetwork())
			w.settle()
			home := w.controller.cloud
			if tc.option != nil {
				w.controller.cloud = neutron.NewStaticCloud(w.client(tc.option))
			}
			if tc.tweak != nil {
				w.edit(tc.tweak)
			}
			elsewhere := func(act func(), want state) {
				t.Helper()
				requests, _ := w.traffic(func() {
					act()
					if err := w.pass(); err == nil {
						t.Error("the pass ends well")
					}
				})
				if len(requests) > 0 {
					t.Errorf("requests in the other place: %v", requests)
				}
				if diff := cmp.Diff(want, stateOf(t, w.get())); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			}
			want := state{yes, yes, samplecrdv1.ReasonCredentialsUnavailable, tc.want}
			elsewhere(func() {}, want)
			elsewhere(w.delete, want)
			w.controller.cloud = home
			w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.OpenStack = nil }))
			w.settle()
			if n := w.get(); n != nil || len(w.networks()) > 0 {
				t.Errorf("left: %v and %v", n, w.networks())
			}
		})
	}
}
