package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

// front stands before a simulator, in the place of a cloud: it writes down what
// is asked of Neutron, and lets the answers be late.
type front struct {
	url     string
	latency time.Duration // of each answer

	simulator *simulator.Simulator
	mu        sync.Mutex
	calls     []call
	called    chan struct{} // holds one if there was a call since someone looked
}

// call is a request to Neutron.
type call struct {
	method, path string // below /v2.0/
	query        url.Values
	at           time.Time
}

func (c call) String() string {
	return strings.TrimSuffix(c.method+" "+c.path+"?"+c.query.Encode(), "?")
}

func newFront(t testing.TB) *front {
	t.Helper()
	sim, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &front{simulator: sim, called: make(chan struct{}, 1)}
	listener := httptest.NewServer(f)
	t.Cleanup(func() {
		listener.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	f.url = listener.URL
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/v2.0/"); ok {
		f.note(call{r.Method, path, r.URL.Query(), time.Now()})
		select {
		case <-time.After(f.latency):
		case <-r.Context().Done():
			return
		}
	}
	f.simulator.ServeHTTP(w, r)
}

func (f *front) note(c call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	select {
	case f.called <- struct{}{}:
	default:
	}
}

// take returns the calls since it was last asked.
func (f *front) take() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.calls
	f.calls = nil
	return taken
}

// await waits until there were so many calls of that kind, which take returns.
func (f *front) await(t testing.TB, times int, is func(call) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for seen, count := 0, 0; count < times; {
		select {
		case <-f.called:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %d calls, of which %d came", times, count)
		}
		f.mu.Lock()
		for ; seen < len(f.calls); seen++ {
			if is(f.calls[seen]) {
				count++
			}
		}
		f.mu.Unlock()
	}
}

// flags make it the cloud of the servers that the test starts with them.
func (f *front) flags(t testing.TB) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clouds.yaml")
	err := os.WriteFile(path, fmt.Appendf(nil, `clouds:
  front:
    auth:
      auth_url: %s/identity/v3
      username: admin
      password: admin
      user_domain_name: Default
      project_name: %s
      project_domain_name: Default
    region_name: RegionOne
`, f.url, project), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", path)
	return []string{"--os-cloud", "front"}
}
