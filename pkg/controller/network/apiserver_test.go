package network

import (
	"errors"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

var (
	networksResource = samplecrdv1.SchemeGroupVersion.WithResource("networks")
	testName         = cache.ObjectName{Namespace: "default", Name: "example"}
)

// newNetwork returns a valid Network as the API server stores it.
func newNetwork(tweaks ...func(*samplecrdv1.Network)) *samplecrdv1.Network {
	n := &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testName.Namespace, Name: testName.Name, UID: testUID,
			Generation: 1, Finalizers: []string{samplecrdv1.NeutronFinalizer},
		},
		Spec: samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/24"}},
	}
	for _, tweak := range tweaks {
		tweak(n)
	}
	samplecrdv1.SetObjectDefaults_Network(n)
	return n
}

func withSpec(tweak func(*samplecrdv1.NetworkSpec)) func(*samplecrdv1.Network) {
	return func(n *samplecrdv1.Network) { tweak(&n.Spec) }
}

// takingOver makes a Network one of an existing network, with no subnet.
func takingOver(id string) func(*samplecrdv1.Network) {
	return withSpec(func(s *samplecrdv1.NetworkSpec) {
		s.Subnet, s.OpenStack = samplecrdv1.Subnet{}, &samplecrdv1.OpenStack{NetworkID: id}
	})
}

// update is the PUT of an API server: it refuses a version that is not the
// newest, keeps spec and status apart, writes nothing where nothing changes, and
// lets go what has no finalizer.
func (w *world) update(action clienttesting.Action) (bool, runtime.Object, error) {
	put := action.(clienttesting.UpdateAction)
	sent := put.GetObject().(*samplecrdv1.Network).DeepCopy()
	kind := "object"
	if put.GetSubresource() == "status" {
		kind = "status"
	}
	if f, hit := w.strike(w.fault.api != nil); hit {
		return true, nil, f.api(func() { _, _ = w.store(kind, sent) })
	}
	n, err := w.store(kind, sent)
	return true, n, err
}

func (w *world) store(kind string, sent *samplecrdv1.Network) (*samplecrdv1.Network, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	current, err := w.storedAs(sent.Name)
	if err != nil {
		return nil, err
	}
	if sent.ResourceVersion != current.ResourceVersion || sent.UID != current.UID {
		return nil, apierrors.NewConflict(networksResource.GroupResource(), sent.Name, errors.New("the object has been modified"))
	}
	if kind == "status" {
		sent.ObjectMeta, sent.Spec = current.ObjectMeta, current.Spec
	} else {
		sent.Status = current.Status
	}
	if sent.DeletionTimestamp != nil && len(sent.Finalizers) == 0 {
		w.writes = append(w.writes, kind)
		w.note("the object goes")
		return sent, w.clients.Tracker().Delete(networksResource, sent.Namespace, sent.Name)
	}
	if equality.Semantic.DeepEqual(sent, current) {
		return current, nil
	}
	w.writes = append(w.writes, kind)
	w.version++
	sent.ResourceVersion = strconv.Itoa(w.version)
	return sent.DeepCopy(), w.clients.Tracker().Update(networksResource, sent, sent.Namespace)
}

func (w *world) stored() (*samplecrdv1.Network, error) { return w.storedAs(testName.Name) }

func (w *world) storedAs(name string) (*samplecrdv1.Network, error) {
	object, err := w.clients.Tracker().Get(networksResource, testName.Namespace, name)
	if err != nil {
		return nil, err
	}
	return object.(*samplecrdv1.Network).DeepCopy(), nil
}

// create is what a user does, and so are edit and delete.
func (w *world) create(n *samplecrdv1.Network) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	n.ResourceVersion = strconv.Itoa(w.version)
	if err := w.clients.Tracker().Create(networksResource, n, n.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) edit(tweaks ...func(*samplecrdv1.Network)) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.stored()
	if err != nil {
		w.t.Fatal(err)
	}
	before := n.DeepCopy()
	for _, tweak := range tweaks {
		tweak(n)
	}
	w.version++
	if !equality.Semantic.DeepEqual(before.Spec, n.Spec) || before.DeletionTimestamp == nil && n.DeletionTimestamp != nil {
		n.Generation++
	}
	n.ResourceVersion = strconv.Itoa(w.version)
	samplecrdv1.SetObjectDefaults_Network(n)
	if err := w.clients.Tracker().Update(networksResource, n, n.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete() {
	w.t.Helper()
	w.edit(func(n *samplecrdv1.Network) { n.DeletionTimestamp = new(metav1.NewTime(time.Unix(1700000000, 0))) })
}

// get returns the stored Network, nil if it is gone.
func (w *world) get() *samplecrdv1.Network {
	w.t.Helper()
	n, err := w.stored()
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return n
}
