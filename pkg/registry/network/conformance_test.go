package network

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/registry/rest/resttest"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// conformance asks of networks what Kubernetes asks of each of its resources.
type conformance struct {
	*resttest.Tester
	store *genericregistry.Store
}

// newConformance bypasses the watch cache: the tester watches from versions
// that a cache never had.
func newConformance(t *testing.T) *conformance {
	store := newStorage(t, generic.UndecoratedStorage).Network.Store
	return &conformance{resttest.New(t, store), store}
}

// valid is in the namespace that the tester asks in.
func (c *conformance) valid(tweaks ...tweak) *samplecrd.Network {
	network := validNetwork(tweaks...)
	network.Namespace = c.TestNamespace()
	return network
}

// put goes past the strategy, so that no finalizer keeps the object.
func (c *conformance) put(ctx context.Context, obj runtime.Object) error {
	key, err := c.store.KeyFunc(ctx, obj.(*samplecrd.Network).Name)
	if err != nil {
		return err
	}
	return c.store.Storage.Create(ctx, key, obj, nil, 0, false)
}

func (c *conformance) get(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	return c.store.Get(ctx, obj.(*samplecrd.Network).Name, &metav1.GetOptions{})
}

// replaceAll returns what it stored, as a list shows it.
func (c *conformance) replaceAll(objs []runtime.Object) []runtime.Object {
	ctx := c.TestContext()
	if _, err := c.store.DeleteCollection(ctx, rest.ValidateAllObjectFunc, nil, nil); err != nil {
		c.Fatal(err)
	}
	for _, obj := range objs {
		if err := c.put(ctx, obj); err != nil {
			c.Fatal(err)
		}
		stored, err := c.get(ctx, obj)
		if err != nil {
			c.Fatal(err)
		}
		*obj.(*samplecrd.Network) = *stored.(*samplecrd.Network)
	}
	return objs
}

func (c *conformance) emit(obj runtime.Object, action string) error {
	if action == "create" {
		return c.put(c.TestContext(), obj)
	}
	_, _, err := c.store.Delete(c.TestContext(), obj.(*samplecrd.Network).Name, rest.ValidateAllObjectFunc, nil)
	return err
}

func updating(tweak tweak) resttest.UpdateFunc {
	return func(obj runtime.Object) runtime.Object {
		network := obj.DeepCopyObject().(*samplecrd.Network)
		tweak(network)
		return network
	}
}

func TestCreate(t *testing.T) {
	c := newConformance(t)
	// The finalizer outlives the deletes of the tester: each object needs a name of its own.
	names := 0
	c.Namer(func(int) string { names++; return fmt.Sprintf("net-%d", names) })
	c.TestCreate(c.valid(), c.put, c.get,
		c.valid(noSubnets),
		c.valid(cidr("garbage")),
		c.valid(func(n *samplecrd.Network) { n.Name = "Net_1" }))
}

func TestUpdate(t *testing.T) {
	c := newConformance(t)
	c.TestUpdate(c.valid(), c.put, c.get, updating(gateway("192.168.0.254")),
		updating(gateway("192.168.255.255")),
		updating(noSubnets),
		updating(func(n *samplecrd.Network) { n.Labels = map[string]string{"": ""} }))
}

func TestDelete(t *testing.T) {
	c := newConformance(t)
	c.TestDelete(c.valid(), c.put, c.get, apierrors.IsNotFound)
}

func TestGet(t *testing.T) {
	c := newConformance(t)
	c.TestGet(c.valid())
}

func TestList(t *testing.T) {
	c := newConformance(t)
	c.TestList(c.valid(), c.replaceAll)
}

func TestWatch(t *testing.T) {
	c := newConformance(t)
	c.TestWatch(c.valid(label("a", "b"), networkID("1c7d")), c.emit,
		[]labels.Set{{}, {"a": "b"}},
		[]labels.Set{{"a": "c"}},
		[]fields.Set{{}, {"metadata.name": "net"}, {"spec.cidr": "192.168.0.0/16"}, {"status.networkID": "1c7d"}},
		[]fields.Set{{"spec.cidr": "10.0.0.0/24"}},
		[]string{"create", "delete"})
}
