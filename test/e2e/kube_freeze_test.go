//go:build kube

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// testFrozenLeader stops the process that leads in the middle of making
// networks, until another leads and has made them all. What the first one had
// sent arrives only then, and it is continued: it must know at once that it
// leads no more. The networks that its late requests make are the only surplus,
// and are reported; FREEZE_FULL has it wait until they are removed.
func (c *cluster) testFrozenLeader(t *testing.T) {
	const before, during = 6, 6 // fewer than are worked on at once
	o := newCloud(t)
	networks := c.networks.SamplecrdV1().Networks(c.newNamespace(t, "frozen", nil))
	late := newLateCloud(t, o)
	audit := newAuditLog(t)
	flags := []string{"--etcd-prefix=/frozen", "--resync-period=1s"}
	// It serves nobody: who has a connection to a process that is frozen waits.
	first := c.launchReplica(t, late.cloud, append(audit.flags(), flags...)...)
	c.balancer.remove(first.port)
	first.waitReady(t)
	first.waitLogged(t, "Successfully acquired lease", 1)
	second := c.startReplica(t, o, flags...)
	c.waitServed(t)
	createNetwork(t, networks, "settled")
	converge(t, networks)

	late.hold()
	for i := range before {
		createNetwork(t, networks, fmt.Sprintf("before-%d", i))
	}
	late.waitHeld(t, before)
	first.send(t, syscall.SIGSTOP)
	t.Cleanup(func() { _ = first.process.Signal(syscall.SIGCONT) }) // to be ended
	for i := range during {
		createNetwork(t, networks, fmt.Sprintf("during-%d", i))
	}
	want := converge(t, networks)
	second.waitLogged(t, "Successfully acquired lease", 1)
	lease := c.leader(t)
	surplus := late.deliver()
	late.watch()
	frozenUntil := metav1.NowMicro()
	first.send(t, syscall.SIGCONT)
	first.waitLogged(t, "Not leading any more", 1)
	first.waitLogged(t, "Attempting to acquire leader lease", 2)

	for _, id := range surplus {
		second.waitLogged(t, fmt.Sprintf("id=%q first=", id), 1)
	}
	refused := map[int32]int{}
	for _, event := range audit.read(t) {
		if event.StageTimestamp.Before(&frozenUntil) {
			continue
		}
		// 504: it gave up the request itself.
		code := event.ResponseStatus.Code
		if code != http.StatusConflict && code != http.StatusGatewayTimeout {
			t.Errorf("after it was continued the first leader wrote: %s %s, answered %d", event.Verb, event.RequestURI, code)
		}
		refused[code]++
	}
	for _, call := range late.writes() {
		t.Errorf("after it was continued the first leader called Neutron: %s", call)
	}
	// As a whole, with their resource versions: nobody wrote.
	if diff := cmp.Diff(want, converge(t, networks)); diff != "" {
		t.Errorf("after the first leader was continued the Networks are (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(lease, c.leader(t)); diff != "" {
		t.Errorf("after the first leader was continued the Lease is held by another (-before +after):\n%s", diff)
	}
	c.checkNetworks(t, o, networks, surplus...)
	t.Logf("%d networks of late requests are surplus, and reported; what the first leader wrote was answered with %v", len(surplus), refused)

	if os.Getenv("FREEZE_FULL") != "" {
		began := time.Now()
		o.waitGone(t, surplus)
		t.Logf("%v later the surplus is gone", time.Since(began).Round(time.Second))
		surplus = nil
		if diff := cmp.Diff(want, converge(t, networks)); diff != "" {
			t.Errorf("after the surplus was removed the Networks are (-before +after):\n%s", diff)
		}
		c.checkNetworks(t, o, networks)
	}

	// The first one leads again when the second is gone.
	c.balancer.add(first.port)
	second.stop(t)
	c.balancer.remove(second.port)
	first.waitLogged(t, "Successfully acquired lease", 2)
	c.waitServed(t)
	createNetwork(t, networks, "after")
	c.checkNetworks(t, o, networks, surplus...)
}

// surplusDeadline is how long it takes at most until surplus is gone: it is left
// alone for ten minutes.
const surplusDeadline = 15 * time.Minute

// waitGone waits until nothing in Neutron has one of these ids.
func (c *cloud) waitGone(t *testing.T, ids []string) {
	t.Helper()
	var left []string
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, surplusDeadline, true, func(context.Context) (bool, error) {
		there := c.resources(t)
		left = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return there[id] == nil })
		return len(left) == 0, nil
	})
	if err != nil {
		t.Fatalf("after %v these are still in Neutron: %v", surplusDeadline, left)
	}
}

// leader returns who holds the Lease, and since when.
func (c *cluster) leader(t *testing.T) coordinationv1.LeaseSpec {
	t.Helper()
	lease, err := c.kube.CoordinationV1().Leases(serverNamespace).Get(t.Context(), "network-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Spec.RenewTime = nil
	return lease.Spec
}

// waitLogged waits until the server has logged a text so often.
func (s *server) waitLogged(t *testing.T, text string, times int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, convergeDeadline, true, func(context.Context) (bool, error) {
		return strings.Count(s.log.String(), text) >= times, nil
	})
	if err != nil {
		t.Fatalf("process %d has not logged %q %d times:\n%s", s.process.Pid, text, times, s.log)
	}
}

// send does not wait for what the signal does.
func (s *server) send(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := s.process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// lateCloud is the way of one server to a cloud. What it asks for can be late.
type lateCloud struct {
	*cloud
	delivered chan struct{}  // closed when what is held goes on
	held      sync.WaitGroup // the requests

	mu      sync.Mutex
	holding bool
	waiting int
	made    []string // ids of networks, by requests that were held
	watched bool
	written []string // since it is watched
}

func newLateCloud(t *testing.T, o *cloud) *lateCloud {
	t.Helper()
	target, err := url.Parse(o.neutron)
	if err != nil {
		t.Fatal(err)
	}
	l := &lateCloud{delivered: make(chan struct{})}
	// With the host of the request: the catalog then leads here too.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.holds(r) {
			proxy.ServeHTTP(w, r)
			return
		}
		defer l.held.Done()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		<-l.delivered
		// It was sent: whether somebody waits for the answer makes no difference,
		// nor that its token has ended since.
		r = r.WithContext(context.WithoutCancel(r.Context()))
		token, err := o.token(r.Context(), osCloud)
		if err != nil {
			t.Error(err)
		}
		r.Header.Set("X-Auth-Token", token)
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		var made struct{ Network struct{ ID string } }
		if err := json.Unmarshal(answer.Body.Bytes(), &made); err != nil || answer.Code != http.StatusCreated {
			t.Errorf("a late request for a network was answered %d: %s", answer.Code, answer.Body)
		}
		l.mu.Lock()
		l.made = append(l.made, made.Network.ID)
		l.mu.Unlock()
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(front.Close)
	t.Cleanup(func() { l.deliver() })
	content, err := os.ReadFile(o.configFile)
	if err != nil {
		t.Fatal(err)
	}
	l.cloud = &cloud{configFile: filepath.Join(t.TempDir(), "clouds.yaml")}
	if err := os.WriteFile(l.configFile, bytes.ReplaceAll(content, []byte(o.neutron), []byte(front.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// holds says whether a request is held, and keeps in mind what was written.
func (l *lateCloud) holds(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Method == http.MethodGet || !strings.HasPrefix(r.URL.Path, "/v2.0/") {
		return false
	}
	if l.watched {
		l.written = append(l.written, r.Method+" "+r.URL.Path)
	}
	if !l.holding || r.URL.Path != "/v2.0/networks" {
		return false
	}
	l.waiting++
	l.held.Add(1)
	return true
}

// hold has requests for networks be late from now on.
func (l *lateCloud) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding = true
}

func (l *lateCloud) waitHeld(t *testing.T, count int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, convergeDeadline, true, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.waiting == count, nil
	})
	if err != nil {
		t.Fatalf("%d requests are held, want %d", l.waiting, count)
	}
}

// deliver has what is held arrive, and returns the networks that it made.
func (l *lateCloud) deliver() []string {
	l.mu.Lock()
	if l.holding {
		l.holding = false
		close(l.delivered)
	}
	l.mu.Unlock()
	l.held.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made
}

// watch keeps in mind from now on what is asked for, but reads.
func (l *lateCloud) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = true
}

func (l *lateCloud) writes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
}
