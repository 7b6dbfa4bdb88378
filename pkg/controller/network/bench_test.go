package network

import (
	"testing"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// BenchmarkResync looks at Networks that are as declared: all of a resync, and
// of that the part that is not the lists.
func BenchmarkResync(b *testing.B) {
	const many = 1000
	w := newWorld(b)
	w.create(newNetwork())
	w.settle()
	w.multiply(many)
	perNetwork := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*many), "ns/Network")
	}
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := w.controller.resync(w.context()); err != nil || w.controller.queue.Len() > 0 {
				b.Fatalf("%d Networks differ (%v), want none", w.controller.queue.Len(), err)
			}
		}
		perNetwork(b)
	})
	b.Run("comparison", func(b *testing.B) {
		there, err := takeInventory(b.Context(), w.admin)
		if err != nil {
			b.Fatal(err)
		}
		networks := w.indexer.List()
		b.ReportAllocs()
		for b.Loop() {
			for _, n := range networks {
				if w.controller.differs(w.admin, n.(*samplecrdv1.Network), there) {
					b.Fatal("a Network differs, want none")
				}
			}
		}
		perNetwork(b)
	})
}

// multiply has the cache of the controller hold many Networks that are as the one
// that is there, in Neutron too.
func (w *world) multiply(many int) {
	w.t.Helper()
	one := w.get()
	if err := w.indexer.Update(one); err != nil {
		w.t.Fatal(err)
	}
	for range many - 1 {
		n := one.DeepCopy()
		n.Name, n.UID = uuid.NewString(), types.UID(uuid.NewString())
		want, err := newDesired(n, ownerMarker(testCluster, n.UID))
		if err != nil {
			w.t.Fatal(err)
		}
		network, err := w.admin.CreateNetwork(w.t.Context(), want.network)
		if err != nil {
			w.t.Fatal(err)
		}
		subnet, err := w.admin.CreateSubnet(w.t.Context(), network.ID, want.subnets[0].attributes)
		if err != nil {
			w.t.Fatal(err)
		}
		p := &pass{Controller: w.controller, network: n, client: w.admin, want: want, have: actual{network, []neutron.Subnet{*subnet}}}
		n.Status = *p.observed()
		if err := w.indexer.Add(n); err != nil {
			w.t.Fatal(err)
		}
	}
}
