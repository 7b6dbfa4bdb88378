package network

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

// succeeds is the state of a Network that needs nothing.
var succeeds = state{yes, no, samplecrdv1.ReasonSuccess, "the network is as declared"}

// breakdown makes every request of the method for the collection fail.
func breakdown(method, collection string, f func(http.ResponseWriter, *http.Request, http.Handler)) func(*world) {
	return func(w *world) {
		w.cloud.answerWith(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != method || !strings.HasPrefix(r.URL.Path, "/v2.0/"+collection) {
				return false
			}
			f(rw, r, w.cloud.Handler)
			return true
		})
	}
}

func repair(w *world) { w.cloud.answerWith(nil) }

// refusal is the answer of a Neutron that refuses.
func refusal(status int, kind, message string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return answer(status, neutronError(kind, message))
}

// withNetworkStatus shows the network with another status than it has.
func withNetworkStatus(status string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		var body map[string]map[string]any
		if json.Unmarshal(recorder.Body.Bytes(), &body) == nil && body["network"] != nil {
			body["network"]["status"] = status
		}
		w.WriteHeader(recorder.Code)
		_ = json.NewEncoder(w).Encode(body)
	}
}

func moveGateway(w *world) { w.edit(withGateway("10.0.0.254")) }

// TestStatesAndTheWayOut brings a Network into each state, sees that it stays
// there without another write, and that it leaves it without an edit.
func TestStatesAndTheWayOut(t *testing.T) {
	tests := map[string]struct {
		start  func(*world) // before a pass
		hinder func(*world) // after it
		want   state        // PLACE stands for the ID of the network
		relent func(*world)
	}{
		"Neutron is away while a network is made": {
			hinder: breakdown("POST", "networks", answer(http.StatusServiceUnavailable, "")),
			want:   state{no, yes, samplecrdv1.ReasonTransientError, `create network "example": HTTP 503 Service Unavailable`},
		},
		"Neutron is away while the network serves": {
			start: made(),
			hinder: func(w *world) {
				moveGateway(w)
				breakdown("GET", "networks", answer(http.StatusServiceUnavailable, ""))(w)
			},
			want: state{yes, yes, samplecrdv1.ReasonTransientError, `get network PLACE: HTTP 503 Service Unavailable`},
		},
		"the list of subnets fails": {
			start:  made(),
			hinder: breakdown("GET", "subnets", answer(http.StatusBadGateway, "")),
			want:   state{yes, yes, samplecrdv1.ReasonTransientError, `list subnets of network PLACE: HTTP 502 Bad Gateway`},
		},
		"too many requests": {
			hinder: breakdown("POST", "networks", answer(http.StatusTooManyRequests, "")),
			want:   state{no, yes, samplecrdv1.ReasonTransientError, `create network "example": HTTP 429 Too Many Requests`},
		},
		"the quota is full": {
			hinder: breakdown("POST", "networks", refusal(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['network'].")),
			want:   state{no, yes, samplecrdv1.ReasonQuotaExceeded, `create network "example": Quota exceeded for resources: ['network'].`},
		},
		"the quota of subnets is full": {
			hinder: breakdown("POST", "subnets", refusal(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['subnet'].")),
			want:   state{no, yes, samplecrdv1.ReasonQuotaExceeded, `create subnet "10.0.0.0/24" in network PLACE: Quota exceeded for resources: ['subnet'].`},
		},
		"someone else changes the subnet all the time": {
			start: made(),
			hinder: func(w *world) {
				moveGateway(w)
				breakdown("PUT", "subnets", refusal(http.StatusPreconditionFailed, "RevisionNumberConstraintFailed", "Constrained to 1, but current revision is 2"))(w)
			},
			want: state{yes, yes, samplecrdv1.ReasonConflict, `update subnet SUBNET: changed since it was read`},
		},
		"the gateway is that of a router": {
			start: made(),
			hinder: func(w *world) {
				moveGateway(w)
				breakdown("PUT", "subnets", refusal(http.StatusConflict, "GatewayIpInUse", "Current gateway ip 10.0.0.1 already in use by port p. Unable to update."))(w)
			},
			want: state{yes, yes, samplecrdv1.ReasonInUse, `update subnet SUBNET: Current gateway ip 10.0.0.1 already in use by port p. Unable to update.`},
		},
		"the token has expired": {
			start:  made(),
			hinder: breakdown("GET", "networks", answer(http.StatusUnauthorized, "")),
			want:   state{yes, yes, samplecrdv1.ReasonCredentialsUnavailable, `get network PLACE: HTTP 401 Unauthorized`},
		},
		"the policy of the cloud forbids it": {
			hinder: breakdown("POST", "networks", refusal(http.StatusForbidden, "PolicyNotAuthorized", "rule:create_network is disallowed by policy")),
			want:   state{no, no, samplecrdv1.ReasonForbidden, `create network "example": rule:create_network is disallowed by policy`},
		},
		"Neutron does not take the attributes": {
			start: made(),
			hinder: func(w *world) {
				moveGateway(w)
				breakdown("PUT", "subnets", refusal(http.StatusBadRequest, "InvalidInput", "Gateway is not valid on subnet"))(w)
			},
			want: state{no, no, samplecrdv1.ReasonInvalidConfiguration, `update subnet SUBNET: Gateway is not valid on subnet`},
		},
		"a new range overlaps what someone else made": {
			start: made(),
			hinder: func(w *world) {
				w.obstacle = w.foreignSubnet(w.network().ID, "10.1.0.0/24", "").ID
				w.edit(additional(samplecrdv1.Subnet{CIDR: "10.1.0.0/16"}))
			},
			want: state{no, no, samplecrdv1.ReasonInvalidConfiguration, `create subnet "10.1.0.0/16" in network PLACE: Invalid input for operation: ` +
				`Requested subnet with cidr: 10.1.0.0/16 for network: PLACE overlaps with another subnet.`},
			relent: removeObstacle,
		},
		"the subnet of a wanted range is someone else's": {
			start: made(),
			hinder: func(w *world) {
				w.obstacle = w.foreignSubnet(w.network().ID, "10.1.0.0/24", "hands off").ID
				w.edit(additional(samplecrdv1.Subnet{CIDR: "10.1.0.0/24"}))
			},
			want: state{no, no, samplecrdv1.ReasonNotOwned, `subnet OBSTACLE does not bear the marker of this Network: its description is "hands off"; ` +
				`if it is ours, set it to "` + testMarker + `"`},
			relent: removeObstacle,
		},
		"someone edited the description": {
			start:  made(),
			hinder: func(w *world) { w.describe(w.network(), "the network of the lab") },
			want: state{no, no, samplecrdv1.ReasonNotOwned, `network PLACE does not bear the marker of this Network: its description is "the network of the lab"; ` +
				`if it is ours, set it to "` + testMarker + `"`},
			relent: func(w *world) { w.describe(w.network(), testMarker) },
		},
		"someone wrote a text before the marker": {
			start:  made(),
			hinder: func(w *world) { w.describe(w.network(), "lab ["+testMarker+"]") },
			want: state{no, no, samplecrdv1.ReasonNotOwned, `network PLACE does not bear the marker of this Network: its description is "lab [` + testMarker + `]"; ` +
				`if it is ours, set it to "` + testMarker + `"`},
			relent: func(w *world) { w.describe(w.network(), testMarker) },
		},
		"the network does not serve yet": {
			hinder: breakdown("GET", "networks/", withNetworkStatus("BUILD")),
			start: func(w *world) {
				w.create(newNetwork())
				breakdown("POST", "networks", withNetworkStatus("BUILD"))(w)
				if err := w.pass(); err == nil {
					w.t.Error("a network that does not serve is no error")
				}
			},
			want: state{no, yes, samplecrdv1.ReasonCreating, "the network is there and Neutron says it is BUILD"},
		},
		"Neutron does not keep what it accepts": {
			start: made(),
			hinder: func(w *world) {
				w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.MTU = new(int32(1300)) }))
				breakdown("PUT", "networks", func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
					r.Method, r.Body = http.MethodGet, http.NoBody
					next.ServeHTTP(rw, r)
				})(w)
			},
			want: state{yes, yes, samplecrdv1.ReasonTransientError, "Neutron accepted a change and did not keep it: update network"},
		},
		"the network to take over is not there": {
			start: func(w *world) {
				w.create(newNetwork(takingOver("5ec7b3c4-94f1-46f8-8d2a-b0b0a3c4b001")))
			},
			hinder: func(*world) {},
			want:   state{no, no, samplecrdv1.ReasonNotFound, "get network 5ec7b3c4-94f1-46f8-8d2a-b0b0a3c4b001: Network 5ec7b3c4-94f1-46f8-8d2a-b0b0a3c4b001 could not be found."},
			relent: nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.start == nil {
				tc.start = func(w *world) { w.create(newNetwork()) }
			}
			tc.start(w)
			tc.hinder(w)
			if err := w.pass(); err == nil {
				t.Error("the pass ends well")
			}
			got := stateOf(t, w.get())
			if diff := cmp.Diff(w.fill(tc.want), got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			requests, writes := w.traffic(func() { _ = w.pass() })
			if len(writes) > 0 {
				t.Errorf("the second pass writes %v: %+v, requests %v", writes, stateOf(t, w.get()), requests)
			}
			if tc.want.Reason == samplecrdv1.ReasonNotFound {
				return
			}
			if tc.relent == nil {
				tc.relent = repair
			}
			tc.relent(w)
			w.settle()
			if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
				t.Errorf("conditions once it may go on (-want +got):\n%s", diff)
			}
		})
	}
}

// fill puts IDs into the message.
func (w *world) fill(s state) state {
	n := w.get().Status
	pairs := []string{"PLACE", n.NetworkID, "OBSTACLE", w.obstacle}
	if len(n.Subnets) > 0 {
		pairs = append(pairs, "SUBNET", n.Subnets[0].ID)
	}
	s.Message = strings.NewReplacer(pairs...).Replace(s.Message)
	return s
}

func removeObstacle(w *world) {
	if err := w.admin.DeleteSubnet(w.t.Context(), w.obstacle); err != nil {
		w.t.Fatal(err)
	}
}

func TestWhatIsDoneIsSaidAtOnce(t *testing.T) {
	var said []string
	w := newWorld(t)
	w.create(newNetwork(additional(samplecrdv1.Subnet{CIDR: "10.1.0.0/24"})))
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		s := stateOf(t, w.get())
		said = append(said, fmt.Sprintf("%s %s: Ready=%s Progressing=%s %s %q", r.Method, r.URL.Path, s.Ready, s.Progressing, s.Reason, s.Message))
		return false
	})
	w.settle()
	want := []string{
		`POST /v2.0/networks: Ready=False Progressing=True Creating "the network is about to be made"`,
		`POST /v2.0/subnets: Ready=False Progressing=True Creating "next: create subnet 10.0.0.0/24"`,
		`POST /v2.0/subnets: Ready=False Progressing=True Creating "next: create subnet 10.1.0.0/24"`,
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("what the status says before each request (-want +got):\n%s", diff)
	}

	said = nil
	w.edit(withCIDR("10.9.0.0/24"))
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			s := stateOf(t, w.get())
			said = append(said, fmt.Sprintf("Ready=%s Progressing=%s %s %q", s.Ready, s.Progressing, s.Reason, s.Message))
		}
		return false
	})
	w.settle()
	if diff := cmp.Diff([]string{`Ready=True Progressing=True Updating "next: delete subnet 10.0.0.0/24"`}, said); diff != "" {
		t.Errorf("what the status says before the old subnet goes (-want +got):\n%s", diff)
	}
}
