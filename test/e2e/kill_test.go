package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

const (
	killRounds  = 20
	killWriters = 4
	// killWithin bounds the moment of the kill, from the start of the writers.
	killWithin = 500 * time.Millisecond
	// convergeDeadline bounds the work that the kills left to the controller.
	convergeDeadline = 3 * time.Minute
)

// state is what a write asked for.
type state struct {
	Exists  bool
	Gateway string
}

// history is what is known of one Network: its last acknowledged state, and
// the one asked for by a write that got no answer.
type history struct {
	acknowledged state
	unanswered   *state
}

// TestKill kills the server in the middle of writes, again and again: no
// acknowledged write may be lost, and the controller must come to exactly one
// network in Neutron for each Network.
func TestKill(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := dataDir(t)
	writers := make([]*writer, killWriters)
	for i := range writers {
		writers[i] = &writer{id: i, random: rand.New(rand.NewPCG(seed, uint64(i)+1)), histories: map[string]*history{}}
	}
	for round := range killRounds {
		s := start(t, dir, "--cluster-id", "e2e")
		networks := newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
		check(t, networks, writers)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		var running sync.WaitGroup
		var killed atomic.Bool
		for _, w := range writers {
			running.Go(func() {
				if err := w.write(t.Context(), networks); !killed.Load() {
					t.Errorf("round %d: a write to a server that runs: %v", round, err)
				}
			})
		}
		<-time.After(time.Duration(random.Int64N(int64(killWithin))))
		killed.Store(true)
		s.kill(t)
		running.Wait()
	}

	s := start(t, dir, "--cluster-id", "e2e")
	networks := newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
	check(t, networks, writers)
	compareNeutron(t, s, converge(t, networks))
	check(t, networks, writers)
}

// writer writes to Networks that nobody else writes to.
type writer struct {
	id        int
	random    *rand.Rand
	names     []string // in the order they were made
	histories map[string]*history
}

// write goes on until the first error, which it returns.
func (w *writer) write(ctx context.Context, networks typedv1.NetworkInterface) error {
	for {
		name, change := w.next()
		h := w.histories[name]
		h.unanswered = &change
		if err := send(ctx, networks, name, h.acknowledged, change); err != nil {
			return err
		}
		h.acknowledged, h.unanswered = change, nil
	}
}

// next chooses a Network and what to make of it: a new one, one with another
// gateway, or none.
func (w *writer) next() (string, state) {
	change := state{Exists: true, Gateway: fmt.Sprintf("10.0.0.%d", 1+w.random.IntN(254))}
	live := slices.DeleteFunc(slices.Clone(w.names), func(name string) bool { return !w.histories[name].acknowledged.Exists })
	dice := w.random.IntN(10)
	if len(live) == 0 || dice < 4 {
		name := fmt.Sprintf("net-%d-%d", w.id, len(w.names))
		w.names = append(w.names, name)
		w.histories[name] = &history{}
		return name, change
	}
	if dice < 6 {
		change = state{}
	}
	return live[w.random.IntN(len(live))], change
}

func send(ctx context.Context, networks typedv1.NetworkInterface, name string, from, to state) error {
	var err error
	switch {
	case !from.Exists:
		_, err = networks.Create(ctx, &samplecrdv1.Network{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/24", Gateway: to.Gateway}},
		}, metav1.CreateOptions{})
	case to.Exists:
		patch := fmt.Appendf(nil, `{"spec": {"gateway": %q}}`, to.Gateway)
		_, err = networks.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	default:
		err = networks.Delete(ctx, name, metav1.DeleteOptions{})
	}
	return err
}

// check compares what is stored with what the writers know, and settles what
// they don't: a write without an answer was done, or was not.
func check(t *testing.T, networks typedv1.NetworkInterface, writers []*writer) {
	t.Helper()
	list, err := networks.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]state{}
	for _, n := range list.Items {
		if n.DeletionTimestamp == nil {
			stored[n.Name] = state{Exists: true, Gateway: n.Spec.Gateway}
		}
	}
	written := 0
	for _, w := range writers {
		for name, h := range w.histories {
			got := stored[name]
			delete(stored, name)
			if got != h.acknowledged && (h.unanswered == nil || got != *h.unanswered) {
				t.Errorf("%s is %+v, was acknowledged as %+v, and without an answer as %+v", name, got, h.acknowledged, h.unanswered)
			}
			h.acknowledged, h.unanswered = got, nil
		}
		written += len(w.histories)
	}
	for name := range stored {
		t.Errorf("%s is there, and nobody made it", name)
	}
	t.Logf("%d networks were made so far, %d are there", written, len(list.Items))
}

// converge waits until all that was deleted is gone and all else is ready, and
// returns what is left.
func converge(t *testing.T, networks typedv1.NetworkInterface) []samplecrdv1.Network {
	t.Helper()
	var list *samplecrdv1.NetworkList
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, convergeDeadline, true, func(ctx context.Context) (_ bool, err error) {
		if list, err = networks.List(ctx, metav1.ListOptions{}); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, unsettled), nil
	})
	if err != nil {
		for _, n := range slices.DeleteFunc(list.Items, func(n samplecrdv1.Network) bool { return !unsettled(n) }) {
			t.Logf("%s, deleted %v, generation %d: %+v", n.Name, n.DeletionTimestamp, n.Generation, n.Status)
		}
		t.Fatalf("not all Networks are ready or gone: %v", err)
	}
	return list.Items
}

func unsettled(n samplecrdv1.Network) bool {
	return n.DeletionTimestamp != nil || n.Status.ObservedGeneration != n.Generation ||
		!meta.IsStatusConditionTrue(n.Status.Conditions, samplecrdv1.ConditionReady) ||
		!meta.IsStatusConditionFalse(n.Status.Conditions, samplecrdv1.ConditionProgressing)
}

// neutronObject is what a network or subnet of Neutron tells of itself.
type neutronObject struct {
	Name        string
	Description string
	Gateway     string `json:"gateway_ip,omitempty"`
}

// compareNeutron demands one network and one subnet for each Network, by the
// owner marker, and nothing else.
func compareNeutron(t *testing.T, s *server, networks []samplecrdv1.Network) {
	t.Helper()
	want := map[string][]neutronObject{}
	for _, n := range networks {
		marker := "samplecrd.k8s.io/e2e/" + string(n.UID)
		want["networks"] = append(want["networks"], neutronObject{n.Name, marker, ""})
		want["subnets"] = append(want["subnets"], neutronObject{n.Name, marker, n.Spec.Gateway})
	}
	anyOrder := cmpopts.SortSlices(func(a, b neutronObject) bool { return a.Description < b.Description })
	for kind, objects := range want {
		answer, err := callNeutron(t.Context(), "", http.MethodGet, s.neutronURL+"/v2.0/"+kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string][]neutronObject
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(objects, got[kind], anyOrder); diff != "" {
			t.Errorf("%s in Neutron (-want +got):\n%s", kind, diff)
		}
	}
}
