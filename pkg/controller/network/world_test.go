package network

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

const (
	testCluster = "cluster-1"
	testProject = "project-1"
	testRegion  = "RegionOne"
	testUID     = types.UID("0c6fbd1a-5a34-4d5d-9f0c-2a7d8e1b4c33")
	testMarker  = "samplecrd.k8s.io/cluster-1/0c6fbd1a-5a34-4d5d-9f0c-2a7d8e1b4c33"
)

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// world is all that a pass acts upon: an API server that holds one Network,
// and a Neutron; and the controller between them.
type world struct {
	t          tb
	controller *Controller
	clients    *fake.Clientset
	factory    informers.SharedInformerFactory
	indexer    cache.Indexer
	clock      *clocktesting.FakePassiveClock
	cloud      *cloud
	admin      *neutron.Client // what a test looks and meddles with
	endpoint   string
	obstacle   string // the ID of what a test put in the way
	kube       *kube  // nil: there are no Secrets
	log        klog.Logger

	mu      sync.Mutex
	version int
	writes  []string // what was written to the API server
	diary   []string // what was let go, in the order it was
	fault   fault
	effects int  // since the fault was armed, of the kind that it can hit
	faultAt int  // the effect that it hits, counted from 1
	fired   bool // the fault did
	dead    bool // the process crashed: no effect of this pass reaches anyone any more
}

func newWorld(t tb, options ...func(*neutron.Options)) *world {
	t.Helper()
	sim, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clients: fake.NewSimpleClientset()}
	w.cloud = &cloud{Handler: sim, world: w}
	server := httptest.NewServer(w.cloud)
	t.Cleanup(func() {
		server.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	w.endpoint = server.URL
	w.admin = w.client()
	w.clients.PrependReactor("update", "networks", w.update)
	w.newController(w.context(), options...)
	return w
}

// newController replaces the controller. Its informer is not started.
func (w *world) newController(ctx context.Context, options ...func(*neutron.Options)) {
	w.t.Helper()
	w.factory = informers.NewSharedInformerFactory(w.clients, 0)
	informer := w.factory.Samplecrd().V1().Networks()
	controller, err := NewController(ctx, w.clients, informer, neutron.NewStaticCloud(w.client(options...)), Options{
		ClusterID: testCluster, Workers: 2, ResyncPeriod: time.Hour, Drift: DriftCorrect,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.clock = clocktesting.NewFakePassiveClock(time.Now())
	controller.clock = w.clock
	w.t.Cleanup(controller.queue.ShutDown)
	w.controller, w.indexer = controller, informer.Informer().GetIndexer()
}

// client returns a client of the Neutron, in the project of the controller.
func (w *world) client(options ...func(*neutron.Options)) *neutron.Client {
	w.t.Helper()
	o := neutron.Options{Endpoint: w.endpoint, Token: "it:u:" + testProject + ":admin", ProjectID: testProject, Region: testRegion}
	for _, option := range options {
		option(&o)
	}
	client, err := neutron.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// context has a logger that says nothing, unless the test reads what it says.
func (w *world) context() context.Context { return klog.NewContext(w.t.Context(), w.log) }

// strike counts an effect that the fault may hit, and returns the fault if it
// does. What is dead reaches nobody.
func (w *world) strike(aimed bool) (fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return fault{neutron: droppedBefore, api: refusedBefore}, true
	}
	if !aimed || w.fired {
		return fault{}, false
	}
	w.effects++
	if w.effects != w.faultAt {
		return fault{}, false
	}
	w.fired, w.dead = true, w.fault.crash
	return w.fault, true
}

// arm makes the nth effect from now on fail that way, counted from 1.
func (w *world) arm(n int, f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault, w.faultAt, w.effects, w.fired = f, n, 0, false
}

// disarm tells whether there was an effect to fail.
func (w *world) disarm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faultAt, w.dead = 0, false
	return w.fired
}

// pass makes one pass over what is stored now, in a process of its own.
func (w *world) pass() error {
	w.t.Helper()
	if n := w.get(); n == nil {
		_ = w.indexer.Delete(newNetwork())
	} else if err := w.indexer.Update(n); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.dead = false
	w.mu.Unlock()
	return w.controller.sync(w.context(), testName)
}

// settle makes passes until one ends well.
func (w *world) settle() {
	w.t.Helper()
	var err error
	for range 10 {
		if err = w.pass(); err == nil {
			return
		}
	}
	w.t.Fatalf("still not settled: %v\n%s", err, conditions(w.get()))
}

// traffic returns the requests to Neutron and the writes to the API server
// that act causes.
func (w *world) traffic(act func()) (requests, writes []string) {
	w.cloud.take()
	w.writes = nil
	act()
	return w.cloud.take(), w.writes
}

func isWrite(request string) bool { return request[:3] != "GET" }

func writesIn(requests []string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return !isWrite(r) })
}

// networks are all that Neutron has in the project.
func (w *world) networks() []neutron.Network {
	w.t.Helper()
	found, err := w.admin.ListNetworks(w.t.Context(), neutron.NetworkFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// network is the only one that Neutron has in the project.
func (w *world) network() neutron.Network {
	w.t.Helper()
	found := w.networks()
	if len(found) != 1 {
		w.t.Fatalf("Neutron has %d networks, want 1: %+v", len(found), found)
	}
	return found[0]
}

// subnets are those of the network, in the order of their ranges.
func (w *world) subnets(networkID string) []neutron.Subnet {
	w.t.Helper()
	found, err := w.admin.ListSubnets(w.t.Context(), neutron.SubnetFilter{NetworkID: networkID})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b neutron.Subnet) int {
		if a.CIDR < b.CIDR {
			return -1
		}
		return 1
	})
	return found
}

// foreignNetwork makes a network that nobody marked.
func (w *world) foreignNetwork(description string) neutron.Network {
	w.t.Helper()
	n, err := w.admin.CreateNetwork(w.t.Context(), neutron.NetworkAttributes{Name: new("foreign"), Description: &description})
	if err != nil {
		w.t.Fatal(err)
	}
	return *n
}

func (w *world) foreignSubnet(networkID, cidr, description string) neutron.Subnet {
	w.t.Helper()
	s, err := w.admin.CreateSubnet(w.t.Context(), networkID, neutron.SubnetAttributes{CIDR: cidr, Name: new("foreign"), Description: &description})
	if err != nil {
		w.t.Fatal(err)
	}
	return *s
}

// describe changes the description of the network behind our back.
func (w *world) describe(n neutron.Network, description string) {
	w.t.Helper()
	if _, err := w.admin.UpdateNetwork(w.t.Context(), n.ID, n.Revision, neutron.NetworkAttributes{Description: &description}); err != nil {
		w.t.Fatal(err)
	}
}

// state is what the conditions say, in one line each.
type state struct {
	Ready, Progressing metav1.ConditionStatus
	Reason, Message    string
}

func stateOf(t tb, n *samplecrdv1.Network) state {
	t.Helper()
	ready := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionReady)
	progressing := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionProgressing)
	if ready == nil || progressing == nil {
		t.Fatalf("conditions are missing: %s", conditions(n))
	}
	if ready.Reason != progressing.Reason || ready.Message != progressing.Message ||
		ready.ObservedGeneration != n.Generation || progressing.ObservedGeneration != n.Generation || n.Status.ObservedGeneration != n.Generation {
		t.Errorf("conditions of generation %d differ or are old: %s", n.Generation, conditions(n))
	}
	return state{ready.Status, progressing.Status, ready.Reason, ready.Message}
}

func conditions(n *samplecrdv1.Network) string {
	if n == nil {
		return "the Network is gone"
	}
	text := ""
	for _, c := range n.Status.Conditions {
		text += fmt.Sprintf("%s=%s %s (generation %d): %s\n", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return text
}
