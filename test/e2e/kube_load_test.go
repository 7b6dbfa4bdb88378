//go:build kube

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

// loadWriters is how many write at once, each to Networks of its own.
const loadWriters = 10

// load is requests of every kind, through the aggregator and at an even rate.
type load struct {
	networks typedv1.NetworkInterface
	journals []journal
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	requests map[string]int // by kind
	failed   []string
	lost     []*lostError
	answers  map[string]int // other than of success, below the retries of client-go
}

// lostError is of a request that kube-apiserver could not hand on.
type lostError struct{ auditID, message string }

func (e *lostError) Error() string { return e.message }

// startLoad makes so many requests a second until it is ended.
func (c *cluster) startLoad(t *testing.T, namespace string, rate int) *load {
	t.Helper()
	l := &load{requests: map[string]int{}, answers: map[string]int{}}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{l, next} })
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	l.networks = clients.SamplecrdV1().Networks(namespace)
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	for i := range loadWriters {
		j := journal{}
		l.journals = append(l.journals, j)
		l.running.Go(func() { l.write(ctx, fmt.Sprintf("load-%d", i), j, loadWriters*time.Second/time.Duration(rate)) })
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) end() {
	l.stop()
	l.running.Wait()
}

// counted tells the load of each answer that is an error.
type counted struct {
	load *load
	next http.RoundTripper
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	message := fmt.Sprintf("%s, Retry-After %q: %s", response.Status, response.Header.Get("Retry-After"), text)
	c.load.mu.Lock()
	c.load.answers[message]++
	c.load.mu.Unlock()
	if strings.HasPrefix(string(text), "error trying to reach service: ") {
		return nil, &lostError{response.Header.Get("Audit-Id"), message}
	}
	return response, nil
}

// write makes one request after the other, each of its kind in turn: Networks
// come, change, and go a few rounds later. What is begun is brought to its end.
func (l *load) write(ctx context.Context, prefix string, j journal, interval time.Duration) {
	const kept = 3
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	try := func(kind string, request func(context.Context) error) {
		if ctx.Err() != nil {
			return
		}
		for !l.count(kind, request(context.WithoutCancel(ctx))) {
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	for round := 0; ctx.Err() == nil; round++ {
		name := fmt.Sprintf("%s-%d", prefix, round)
		try("create", func(ctx context.Context) error {
			return j.write(ctx, l.networks, name, state{CIDR: "10.1.0.0/24", MTU: 1400})
		})
		try("get", func(ctx context.Context) error {
			_, err := l.networks.Get(ctx, name, metav1.GetOptions{})
			return err
		})
		try("list", func(ctx context.Context) error {
			_, err := l.networks.List(ctx, metav1.ListOptions{})
			return err
		})
		try("watch", func(ctx context.Context) error { return l.watchOne(ctx, name) })
		try("update", func(ctx context.Context) error {
			return j.write(ctx, l.networks, name, state{CIDR: "10.1.0.0/24", MTU: 1300})
		})
		if round >= kept {
			try("delete", func(ctx context.Context) error {
				return j.write(ctx, l.networks, fmt.Sprintf("%s-%d", prefix, round-kept), state{})
			})
		}
	}
}

// count returns false for a write that is to be sent again, as it was lost.
func (l *load) count(kind string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[kind]++
	if lost, ok := errors.AsType[*lostError](err); ok && slices.Contains([]string{"create", "update", "delete"}, kind) {
		l.lost = append(l.lost, lost)
		return false
	}
	if err != nil {
		l.failed = append(l.failed, fmt.Sprintf("%s %s: %v", time.Now().Format(time.StampMilli), kind, err))
	}
	return true
}

// watchOne opens a watch and waits for what is there.
func (l *load) watchOne(ctx context.Context, name string) error {
	w, err := l.networks.Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		return err
	}
	defer w.Stop()
	if event := <-w.ResultChan(); event.Type != watch.Added {
		return fmt.Errorf("the first event is %q: %v", event.Type, event.Object)
	}
	return nil
}

// check ends the load, reports it, and fails for each request that failed. The
// one exception is a write that never arrived at a replica, in whose audit logs
// it would stand: where a connection ends while a request is on its way, it is
// for kube-apiserver to send it again, which it can't do with a body
// (kubernetes/kubernetes#135285).
func (l *load) check(t *testing.T, logs ...auditLog) {
	t.Helper()
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	all := 0
	for _, kind := range []string{"create", "get", "list", "watch", "update", "delete"} {
		if l.requests[kind] == 0 {
			t.Errorf("no %s was requested", kind)
		}
		all += l.requests[kind]
	}
	t.Logf("%d requests %v: %d failed, %d never arrived; what client-go was told: %v", all, l.requests, len(l.failed), len(l.lost), l.answers)
	for _, failed := range l.failed {
		t.Error(failed)
	}
	if len(l.lost) == 0 {
		return
	}
	arrived := map[types.UID]bool{}
	for _, log := range logs {
		for _, event := range log.read(t) {
			arrived[event.AuditID] = true
		}
	}
	for _, lost := range l.lost {
		if lost.auditID == "" || arrived[types.UID(lost.auditID)] {
			t.Errorf("request %q arrived, and got no answer: %s", lost.auditID, lost.message)
		}
	}
}

// checkNetworks looks for what is lost and what is double: each Network has its
// one network in Neutron, by marker, and that its subnets. extra are the ids of
// what else is there.
func (c *cluster) checkNetworks(t *testing.T, o *cloud, networks typedv1.NetworkInterface, extra ...string) {
	t.Helper()
	system, err := c.kube.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live := converge(t, networks)
	there := o.resources(t)
	for _, n := range live {
		ids := []string{n.Status.NetworkID}
		for _, s := range n.Status.Subnets {
			ids = append(ids, s.ID)
		}
		for _, id := range ids {
			if got, want := there[id]["description"], ownerMarker(string(system.UID), n); got != want {
				t.Errorf("%s has %q, which is marked %v, want %s", n.Name, id, got, want)
			}
			delete(there, id)
		}
	}
	for _, id := range extra {
		if there[id] == nil {
			t.Errorf("%s is not in Neutron any more", id)
		}
		delete(there, id)
	}
	for id, r := range there {
		if strings.HasPrefix(fmt.Sprint(r["description"]), "samplecrd.k8s.io/") {
			t.Errorf("in Neutron is one too many, %s: %v", id, r)
		}
	}
	t.Logf("%d Networks have their networks, %d more are in Neutron", len(live), len(extra))
}
