package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

const (
	killRounds  = 20
	killWriters = 4
	// killWithin bounds the moment of the kill, from the start of the writers.
	killWithin = 500 * time.Millisecond
)

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
	journals := make([]journal, killWriters)
	for i := range writers {
		journals[i] = journal{}
		writers[i] = &writer{id: i, random: rand.New(rand.NewPCG(seed, uint64(i)+1)), journal: journals[i]}
	}
	for round := range killRounds {
		s := start(t, dir, "--cluster-id", testCluster)
		networks := newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
		check(t, networks, journals)
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

	s := start(t, dir, "--cluster-id", testCluster)
	networks := newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
	check(t, networks, journals)
	for _, d := range compare(converge(t, networks), inventory{}, takeInventory(t, s.neutronURL)) {
		t.Error(d)
	}
	check(t, networks, journals)
}

// writer writes to Networks that nobody else writes to.
type writer struct {
	id      int
	random  *rand.Rand
	names   []string // in the order they were made
	journal journal
}

// write goes on until the first error, which it returns.
func (w *writer) write(ctx context.Context, networks typedv1.NetworkInterface) error {
	for {
		name, change := w.next()
		if err := w.journal.write(ctx, networks, name, change); err != nil {
			return err
		}
	}
}

// next chooses a Network and what to make of it: a new one, one with another
// gateway, or none.
func (w *writer) next() (string, state) {
	change := state{CIDR: "10.0.0.0/24", Gateway: fmt.Sprintf("10.0.0.%d", 1+w.random.IntN(254))}
	live := slices.DeleteFunc(slices.Clone(w.names), func(name string) bool { return w.journal[name].acknowledged == state{} })
	dice := w.random.IntN(10)
	if len(live) == 0 || dice < 4 {
		name := fmt.Sprintf("net-%d-%d", w.id, len(w.names))
		w.names = append(w.names, name)
		return name, change
	}
	if dice < 6 {
		change = state{}
	}
	return live[w.random.IntN(len(live))], change
}
