//go:build chaos

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

const (
	cloudName       = "chaos"
	cloudProject    = "chaos-project"
	foreignProject  = "another-project"
	foreignNetworks = 50
	// cloudTokenLifetime makes tokens end by themselves too.
	cloudTokenLifetime = 3 * time.Second
)

// chaosCloud is an OpenStack that outlives the servers.
type chaosCloud struct {
	handler http.Handler
	admin   string // the URL for the test itself, at which no call is counted
	user    string // of the servers, and the password
	blind   bool   // the search for a marker finds nothing
}

func newChaosCloud(t *testing.T, random *rand.Rand) *chaosCloud {
	t.Helper()
	sim, err := simulator.New(simulator.Options{
		Path: filepath.Join(t.TempDir(), "neutron.db"), Faults: true, TokenLifetime: cloudTokenLifetime,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	admin := httptest.NewServer(sim)
	t.Cleanup(admin.Close)
	c := &chaosCloud{handler: sim, admin: admin.URL, user: fmt.Sprintf("canary-%016x", random.Uint64())}
	c.call(t, "", http.MethodPut, "/v2.0/quotas/"+cloudProject, map[string]any{"quota": map[string]int{"network": -1, "subnet": -1}})
	return c
}

// call makes a call that is no part of the run.
func (c *chaosCloud) call(t *testing.T, token, method, path string, body any) string {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := callNeutron(t.Context(), token, method, c.admin+path, text)
	if err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return answer
}

// addForeign makes networks that have the names of ours: in our project and in
// another, without a description and with the marker of another cluster.
func (c *chaosCloud) addForeign(t *testing.T, names []string) {
	t.Helper()
	for i := range foreignNetworks {
		token := "it:somebody:" + []string{cloudProject, foreignProject}[i%2] + ":member"
		common := map[string]any{"name": names[i%len(names)], "description": ""}
		if i%4 < 2 {
			common["description"] = fmt.Sprintf("samplecrd.k8s.io/another/%d", i)
		}
		var made struct{ Network struct{ ID string } }
		answer := c.call(t, token, http.MethodPost, "/v2.0/networks", map[string]any{"network": common})
		if err := json.Unmarshal([]byte(answer), &made); err != nil {
			t.Fatal(err)
		}
		common["network_id"], common["ip_version"], common["cidr"] = made.Network.ID, 4, "10.0.0.0/24"
		c.call(t, token, http.MethodPost, "/v2.0/subnets", map[string]any{"subnet": common})
	}
}

// front is the way from one server to the cloud, with an address of its own:
// once it is closed, nothing that the server sent is still being done. A server
// that was killed would else be followed by one that searches for what its
// last request is about to make.
type front struct {
	*httptest.Server
	calls   atomic.Int64
	resyncs atomic.Int64 // that got both lists
	alarm   atomic.Pointer[alarm]
}

func (c *chaosCloud) open(t *testing.T) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		if a := f.alarm.Load(); a != nil {
			a.count()
		}
		query := r.URL.Query()
		if c.blind && r.Method == http.MethodGet && r.URL.Path == "/v2.0/networks" && query.Has("description") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"networks": []}`)
			return
		}
		c.handler.ServeHTTP(w, r)
		if r.Method == http.MethodGet && r.URL.Path == "/v2.0/subnets" && !query.Has("network_id") {
			f.resyncs.Add(1)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// await waits for that many more calls.
func (f *front) await(calls int) {
	a := newAlarm(calls)
	f.alarm.Store(a)
	a.await()
}

// writeConfig writes the clouds.yaml of the server and returns its path.
func (f *front) writeConfig(t *testing.T, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clouds.yaml")
	text := fmt.Sprintf(`clouds:
  %s:
    region_name: RegionOne
    auth:
      auth_url: %s/identity/v3
      username: %s
      password: %s
      project_name: %s
      user_domain_name: Default
      project_domain_name: Default
`, cloudName, f.URL, user, user, cloudProject)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// awaitResync waits for one that begins after the call.
func (f *front) awaitResync(t *testing.T) {
	t.Helper()
	// The next to end may have begun already.
	want := f.resyncs.Load() + 2
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, eventuallyDeadline, true, func(context.Context) (bool, error) {
		return f.resyncs.Load() >= want, nil
	})
	if err != nil {
		t.Fatalf("no resync followed: %v", err)
	}
}

// fault is a rule of the simulator.
type fault struct {
	ID         int    `json:"id,omitempty"`
	Hits       int    `json:"hits,omitempty"`
	Method     string `json:"method,omitempty"`
	Path       string `json:"path,omitempty"`
	Kind       string `json:"kind"`
	Status     int    `json:"status,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
	Delay      string `json:"delay,omitempty"`
	Every      int    `json:"every,omitempty"`
	Times      int    `json:"times,omitempty"`
}

// everyFault returns one of each kind, and for those that leave open what was done
// one for each way to change something. About one call in three goes wrong.
func everyFault(random *rand.Rand) []fault {
	between := func(least, most int) int { return least + random.IntN(most-least+1) }
	const neutron, token = "^/v2.0/", "^/identity/v3/auth/tokens$"
	all := []fault{
		{Kind: "delay", Path: neutron, Every: between(3, 6), Delay: strconv.Itoa(between(5, 40)) + "ms"},
		{Kind: "status", Path: neutron, Status: http.StatusServiceUnavailable, Every: between(15, 25), Times: between(10, 20)},
		{Kind: "status", Path: neutron, Status: http.StatusTooManyRequests, RetryAfter: 1, Every: between(30, 50)},
		{Kind: "status", Path: token, Status: http.StatusServiceUnavailable, Every: between(4, 8)},
		{Kind: "expire", Path: neutron, Every: between(15, 25)},
		{Kind: "drop", Path: neutron, Every: between(20, 30)},
	}
	for _, group := range []struct {
		method      string
		kinds       []string
		least, most int
	}{
		{http.MethodGet, []string{"lost", "commit-500", "truncate", "garble"}, 25, 40}, // most calls only read
		{http.MethodPost, []string{"lost", "commit-500", "truncate", "garble"}, 6, 12},
		{http.MethodPut, []string{"lost", "commit-500", "truncate", "garble"}, 4, 8},
		{http.MethodDelete, []string{"lost", "commit-500"}, 4, 8}, // the answer has no body to cut
	} {
		for _, kind := range group.kinds {
			all = append(all, fault{Kind: kind, Path: neutron, Method: group.method, Every: between(group.least, group.most)})
		}
	}
	return all
}

func (c *chaosCloud) inject(t *testing.T, f fault) {
	t.Helper()
	c.call(t, "", http.MethodPost, "/faults", f)
}

// faults returns those in force, with the number of their hits.
func (c *chaosCloud) faults(t *testing.T) []fault {
	t.Helper()
	var answer struct{ Faults []fault }
	if err := json.Unmarshal([]byte(c.call(t, "", http.MethodGet, "/faults", nil)), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Faults
}

func (c *chaosCloud) clear(t *testing.T) {
	t.Helper()
	c.call(t, "", http.MethodDelete, "/faults", nil)
}
