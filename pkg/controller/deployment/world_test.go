package deployment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
)

const testUID = types.UID("5f4d2a57-64e1-4f5e-8c0e-1f6d1a7e0c11")

var (
	networksResource    = samplecrdv1.SchemeGroupVersion.WithResource("networks")
	deploymentsResource = appsv1.SchemeGroupVersion.WithResource("deployments")
	testName            = cache.ObjectName{Namespace: "default", Name: "web"}
	smallPool           = netip.MustParsePrefix("10.128.0.0/22") // of four blocks
)

// newDeployment returns a Deployment that asks for a Network.
func newDeployment(tweaks ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: testName.Namespace, Name: testName.Name, UID: testUID,
		Annotations: map[string]string{samplecrdv1.AnnotationNetwork: "true"},
	}}
	for _, tweak := range tweaks {
		tweak(d)
	}
	return d
}

func asking(text string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations[samplecrdv1.AnnotationNetwork] = text }
}

func notAsking(d *appsv1.Deployment) { d.Annotations = nil }

func named(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Name, d.UID = name, types.UID("uid of "+name) }
}

// newNetwork returns the Network of that Deployment.
func newNetwork(tweaks ...func(*samplecrdv1.Network)) *samplecrdv1.Network {
	n := &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testName.Namespace, Name: testName.Name, UID: "uid of the network", ResourceVersion: "7", Generation: 1,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: testName.Name, UID: testUID, Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/24"}},
	}
	for _, tweak := range tweaks {
		tweak(n)
	}
	return n
}

func foreign(n *samplecrdv1.Network) { n.OwnerReferences = nil }

func ofAnEarlierDeployment(n *samplecrdv1.Network) { n.OwnerReferences[0].UID = "earlier" }

func beingDeleted(n *samplecrdv1.Network) {
	n.DeletionTimestamp, n.Finalizers = new(metav1.NewTime(time.Unix(1, 0))), []string{samplecrdv1.NeutronFinalizer}
}

func withCIDR(cidr string) func(*samplecrdv1.Network) {
	return func(n *samplecrdv1.Network) { n.Spec.CIDR = cidr }
}

func calledNetwork(name string) func(*samplecrdv1.Network) {
	return func(n *samplecrdv1.Network) { n.Name, n.UID, n.OwnerReferences = name, types.UID("uid of "+name), nil }
}

// recorder keeps Events as one line each.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := regarding.(*appsv1.Deployment)
	r.events = append(r.events, fmt.Sprintf("%s %s %s %s: %s", eventType, reason, action, d.Name, fmt.Sprintf(note, args...)))
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.events
	r.events = nil
	return taken
}

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Fatal(...any)
}

// world is an API server with what a controller reads of it. Until start the
// caches hold what a test puts there.
type world struct {
	t           tb
	controller  *Controller
	clients     *fake.Clientset
	kube        *kubefake.Clientset
	recorder    *recorder
	networks    cache.Indexer
	deployments cache.Indexer
	factories   []interface{ Start(<-chan struct{}) }
	shutdown    func()
	logger      klog.Logger

	mu      sync.Mutex
	version int
}

func newWorld(t tb, pool netip.Prefix) *world {
	t.Helper()
	w := &world{t: t, clients: fake.NewSimpleClientset(), kube: kubefake.NewClientset(), recorder: &recorder{}}
	w.clients.PrependReactor("create", "networks", w.create)
	w.clients.PrependReactor("update", "networks", w.update)
	w.clients.PrependReactor("delete", "networks", w.delete)
	factory, kubeFactory := informers.NewSharedInformerFactory(w.clients, 0), kubeinformers.NewSharedInformerFactory(w.kube, 0)
	networks, deployments := factory.Samplecrd().V1().Networks(), kubeFactory.Apps().V1().Deployments()
	controller, err := NewController(w.context(), w.clients, networks, deployments, Options{CIDRPool: pool, Recorder: w.recorder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(controller.queue.ShutDown)
	w.controller, w.networks, w.deployments = controller, networks.Informer().GetIndexer(), deployments.Informer().GetIndexer()
	w.factories = []interface{ Start(<-chan struct{}) }{factory, kubeFactory}
	w.shutdown = func() { factory.Shutdown(); kubeFactory.Shutdown() }
	return w
}

// context has the logger of the world, which says nothing unless a test sets one.
func (w *world) context() context.Context { return klog.NewContext(w.t.Context(), w.logger) }

// create, update and delete give versions and generations as an API server does,
// and refuse an old version.
func (w *world) create(action clienttesting.Action) (bool, runtime.Object, error) {
	n := action.(clienttesting.CreateAction).GetObject().(*samplecrdv1.Network)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	n.ResourceVersion, n.Generation = strconv.Itoa(w.version), 1
	n.UID = types.UID(fmt.Sprintf("network %d", w.version))
	return false, nil, nil
}

func (w *world) update(action clienttesting.Action) (bool, runtime.Object, error) {
	n := action.(clienttesting.UpdateAction).GetObject().(*samplecrdv1.Network)
	w.mu.Lock()
	defer w.mu.Unlock()
	if current := w.network(n.Namespace, n.Name); current == nil || current.ResourceVersion != n.ResourceVersion {
		return true, nil, modified(n.Name)
	}
	w.version++
	n.ResourceVersion = strconv.Itoa(w.version)
	n.Generation++
	return false, nil, nil
}

func (w *world) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	a := action.(clienttesting.DeleteActionImpl)
	current, conditions := w.network(a.Namespace, a.Name), a.DeleteOptions.Preconditions
	if current != nil && (current.UID != *conditions.UID || current.ResourceVersion != *conditions.ResourceVersion) {
		return true, nil, modified(a.Name)
	}
	return false, nil, nil
}

func modified(name string) error {
	return apierrors.NewConflict(networksResource.GroupResource(), name, errors.New("the object has been modified"))
}

// run starts informers and workers, and ends them with the returned function.
func (w *world) run(workers int) (stop func()) {
	ctx, cancel := context.WithCancel(w.context())
	for _, factory := range w.factories {
		factory.Start(ctx.Done())
	}
	var running sync.WaitGroup
	running.Go(func() { w.controller.Run(ctx, workers) })
	return func() {
		cancel()
		running.Wait()
		w.shutdown()
	}
}

// store puts objects into the API server.
func (w *world) store(objects ...runtime.Object) {
	w.t.Helper()
	for _, o := range objects {
		tracker := w.kube.Tracker()
		if _, ok := o.(*samplecrdv1.Network); ok {
			tracker = w.clients.Tracker()
		}
		if err := tracker.Add(o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// see puts objects into the caches.
func (w *world) see(objects ...runtime.Object) {
	w.t.Helper()
	for _, o := range objects {
		indexer := w.deployments
		if _, ok := o.(*samplecrdv1.Network); ok {
			indexer = w.networks
		}
		if err := indexer.Update(o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// network is what the API server has; nil for none.
func (w *world) network(namespace, name string) *samplecrdv1.Network {
	o, err := w.clients.Tracker().Get(networksResource, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o.(*samplecrdv1.Network)
}

// cidrs are the ranges of all Networks of the API server, in order.
func (w *world) cidrs() []string {
	w.t.Helper()
	list, err := w.clients.SamplecrdV1().Networks("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var cidrs []string
	for _, n := range list.Items {
		cidrs = append(cidrs, n.Spec.CIDR)
	}
	slices.Sort(cidrs)
	return cidrs
}

// writes are the requests that change something, since the last call.
func (w *world) writes() []string {
	var writes []string
	for _, a := range w.clients.Actions() {
		if verb := a.GetVerb(); verb != "list" && verb != "watch" {
			writes = append(writes, verb)
		}
	}
	w.clients.ClearActions()
	return writes
}
