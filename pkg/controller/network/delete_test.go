package network

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// port makes a port on the network and returns its ID.
func (w *world) port(networkID, deviceOwner string) string {
	w.t.Helper()
	body := fmt.Sprintf(`{"port": {"network_id": %q, "device_owner": %q}}`, networkID, deviceOwner)
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.endpoint+"/v2.0/ports", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", "it:u:"+testProject+":admin")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusCreated {
		w.t.Fatalf("making a port: %s, %v", response.Status, err)
	}
	ports, err := w.admin.ListPorts(w.t.Context(), networkID)
	if err != nil {
		w.t.Fatal(err)
	}
	return ports[len(ports)-1].ID
}

func (w *world) removePort(id string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodDelete, w.endpoint+"/v2.0/ports/"+id, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusNoContent {
		w.t.Fatalf("removing a port: %s, %v", response.Status, err)
	}
}

func TestDeletionInSteps(t *testing.T) {
	w := newWorld(t)
	made()(w)
	w.delete()
	var said []state
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			n := w.get()
			said = append(said, stateOf(t, n))
			if !slices.Contains(n.Finalizers, samplecrdv1.NeutronFinalizer) {
				t.Error("the finalizer goes before the network")
			}
		}
		return false
	})
	requests, writes := w.traffic(w.settle)
	if diff := cmp.Diff([]string{"GET networks", "GET subnets", "DELETE networks"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"status", "object"}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]state{{no, yes, samplecrdv1.ReasonDeleting, "the network is about to be deleted"}}, said); diff != "" {
		t.Errorf("conditions when the network goes (-want +got):\n%s", diff)
	}
}

func TestDeletionThatWaits(t *testing.T) {
	tests := map[string]struct {
		hinder func(*world)
		want   state
		relent func(*world)
	}{
		"someone else made a subnet in it": {
			hinder: func(w *world) {
				w.obstacle = w.foreignSubnet(w.network().ID, "10.1.0.0/24", "hands off").ID
			},
			want: state{no, no, samplecrdv1.ReasonNotOwned, `subnet OBSTACLE does not bear the marker of this Network: its description is "hands off"; ` +
				`if it is ours, set it to "` + testMarker + `"`},
			relent: removeObstacle,
		},
		"someone edited the description": {
			hinder: func(w *world) { w.describe(w.network(), "") },
			want: state{no, no, samplecrdv1.ReasonNotOwned, `network PLACE does not bear the marker of this Network: its description is ""; ` +
				`if it is ours, set it to "` + testMarker + `"`},
			relent: func(w *world) { w.describe(w.network(), testMarker) },
		},
		"Neutron is away": {
			hinder: breakdown("GET", "networks", answer(http.StatusServiceUnavailable, "")),
			want:   state{yes, yes, samplecrdv1.ReasonTransientError, "get network PLACE: HTTP 503 Service Unavailable"},
			relent: repair,
		},
		"Neutron forbids it": {
			hinder: breakdown("DELETE", "networks", refusal(http.StatusForbidden, "PolicyNotAuthorized", "rule:delete_network is disallowed by policy")),
			want:   state{no, no, samplecrdv1.ReasonForbidden, "delete network PLACE: rule:delete_network is disallowed by policy"},
			relent: repair,
		},
		"a port is on it": {
			hinder: func(w *world) { w.obstacle = w.port(w.network().ID, "compute:nova") },
			want: state{no, yes, samplecrdv1.ReasonInUse,
				"delete network PLACE: one or more ports are still in use on the network; ports on the network: OBSTACLE (compute:nova)"},
			relent: func(w *world) { w.removePort(w.obstacle) },
		},
		"a port is on it and the list of ports fails": {
			hinder: func(w *world) {
				w.obstacle = w.port(w.network().ID, "compute:nova")
				breakdown("GET", "ports", answer(http.StatusServiceUnavailable, ""))(w)
			},
			want:   state{no, yes, samplecrdv1.ReasonInUse, "delete network PLACE: one or more ports are still in use on the network"},
			relent: func(w *world) { w.removePort(w.obstacle) },
		},
		"another release knows what to do with it": {
			hinder: func(w *world) {
				w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.DeletionPolicy = "Archive" }))
			},
			want:   state{no, no, samplecrdv1.ReasonInvalidConfiguration, `spec.deletionPolicy: "Archive" has no meaning here`},
			relent: func(w *world) { w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.DeletionPolicy = "Delete" })) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			made()(w)
			tc.hinder(w)
			w.delete()
			if err := w.pass(); err == nil {
				t.Error("the pass ends well")
			}
			if diff := cmp.Diff(w.fill(tc.want), stateOf(t, w.get())); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if _, writes := w.traffic(func() { _ = w.pass() }); len(writes) > 0 {
				t.Errorf("the second pass writes %v:\n%s", writes, conditions(w.get()))
			}
			tc.relent(w)
			if len(w.networks()) != 1 {
				t.Errorf("networks are %+v, want the one", w.networks())
			}
			w.settle()
			if n := w.get(); n != nil || len(w.networks()) > 0 {
				t.Errorf("left: networks %+v, and\n%s", w.networks(), conditions(n))
			}
		})
	}
}

func TestAReplacedRangeWaitsForItsPorts(t *testing.T) {
	w := newWorld(t)
	made()(w)
	port := w.port(w.network().ID, "compute:nova")
	w.edit(withCIDR("10.0.0.0/16"), additional(samplecrdv1.Subnet{CIDR: "10.9.0.0/24"}))
	for range 3 {
		if err := w.pass(); err == nil {
			t.Error("the pass ends well")
		}
	}
	var got []string
	for _, s := range w.subnets(w.network().ID) {
		got = append(got, s.CIDR)
	}
	if diff := cmp.Diff([]string{"10.0.0.0/24", "10.9.0.0/24"}, got); diff != "" {
		t.Errorf("subnets while a port is on the old one (-want +got):\n%s", diff)
	}
	s := stateOf(t, w.get())
	if s.Ready != yes || s.Progressing != yes || s.Reason != samplecrdv1.ReasonInUse || !strings.HasSuffix(s.Message, "; ports on the network: "+port+" (compute:nova)") {
		t.Errorf("conditions are %+v, want InUse that names port %s", s, port)
	}
	if _, writes := w.traffic(func() { _ = w.pass() }); len(writes) > 0 {
		t.Errorf("a pass that waits writes %v", writes)
	}
	w.removePort(port)
	w.settle()
	if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestPortsInUseAreNamed(t *testing.T) {
	tests := map[string]struct {
		ports []neutron.Port
		want  string
	}{
		"none": {},
		"only those that Neutron made": {ports: []neutron.Port{
			{ID: "a", DeviceOwner: "network:dhcp"}, {ID: "b", DeviceOwner: "network:distributed"}, {ID: "c", DeviceOwner: "network:floatingip_agent_gateway"},
		}},
		"sorted, with the device owner where there is one": {
			ports: []neutron.Port{{ID: "c"}, {ID: "b", DeviceOwner: "network:dhcp"}, {ID: "a", DeviceOwner: "compute:nova"}},
			want:  "; ports on the network: a (compute:nova), c",
		},
		"five": {
			ports: []neutron.Port{{ID: "e"}, {ID: "d"}, {ID: "c"}, {ID: "b"}, {ID: "a"}},
			want:  "; ports on the network: a, b, c, d, e",
		},
		"more than five": {
			ports: []neutron.Port{{ID: "f"}, {ID: "e"}, {ID: "d"}, {ID: "c"}, {ID: "b"}, {ID: "a"}},
			want:  "; ports on the network: a, b, c, d, e and more",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := portsInUse(tc.ports); got != tc.want {
				t.Errorf("text is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatWasNeverTriedGoesAtOnce(t *testing.T) {
	w := newWorld(t, func(o *neutron.Options) { o.Endpoint = "http://127.0.0.1:1" })
	w.create(newNetwork(withOpenStack(samplecrdv1.OpenStack{CredentialsRef: &samplecrdv1.CredentialsRef{SecretName: "gone", CloudName: "gone"}})))
	if err := w.pass(); err == nil {
		t.Error("the pass without credentials ends well")
	}
	w.delete()
	requests, _ := w.traffic(w.settle)
	if n := w.get(); n != nil || len(requests) > 0 {
		t.Errorf("left after requests %v:\n%s", requests, conditions(n))
	}
}

func TestAnotherFinalizerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	made(func(n *samplecrdv1.Network) { n.Finalizers = append([]string{"example.com/keep"}, n.Finalizers...) })(w)
	w.delete()
	w.settle()
	if diff := cmp.Diff([]string{"example.com/keep"}, w.get().Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	requests, writes := w.traffic(w.settle)
	if len(requests)+len(writes) > 0 {
		t.Errorf("what is let go is looked at again: %v, %v", requests, writes)
	}
}

func TestNothingThatVariesIsInAMessage(t *testing.T) {
	w := newWorld(t)
	made()(w)
	varying := regexp.MustCompile(`req-|\d{2}:\d{2}:\d{2}|127\.0\.0\.1`)
	w.cloud.answerWith(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	for range 3 {
		_ = w.pass()
		if s := stateOf(t, w.get()); varying.MatchString(s.Message) {
			t.Errorf("message %q varies", s.Message)
		}
	}
	if _, writes := w.traffic(func() { _ = w.pass() }); len(writes) > 0 {
		t.Errorf("the same failure is written again: %v", writes)
	}
}

func TestGoneBetweenTheReadAndTheCall(t *testing.T) {
	goneFirst := func(w *world) {
		w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete {
				w.cloud.Handler.ServeHTTP(httptest.NewRecorder(), r.Clone(r.Context()))
			}
			return false
		})
	}
	tests := map[string]func(*world){
		"the network":   (*world).delete,
		"the old range": func(w *world) { w.edit(withCIDR("10.9.0.0/24")) },
	}
	for name, act := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			made()(w)
			act(w)
			goneFirst(w)
			if err := w.pass(); err != nil {
				t.Errorf("error of the pass is %v, want none: what is gone is gone", err)
			}
		})
	}
}
