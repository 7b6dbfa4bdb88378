package network

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// look brings the cache up to date and resyncs once.
func (w *world) look() (queued int, err error) {
	w.t.Helper()
	if n := w.get(); n != nil {
		if err := w.indexer.Update(n); err != nil {
			w.t.Fatal(err)
		}
	}
	err = w.controller.resync(w.context())
	return w.controller.queue.Len(), err
}

func TestResyncQueuesWhatDiffers(t *testing.T) {
	subnet := func(w *world) neutron.Subnet { return w.subnets(w.network().ID)[0] }
	change := func(w *world, a neutron.SubnetAttributes) {
		s := subnet(w)
		if _, err := w.admin.UpdateSubnet(w.t.Context(), s.ID, s.Revision, a); err != nil {
			w.t.Fatal(err)
		}
	}
	tests := map[string]struct {
		start func(*world) // default: a Network of our own
		drift func(*world)
		want  int
	}{
		"nothing happened":       {drift: func(*world) {}},
		"a foreign network came": {drift: func(w *world) { w.foreignNetwork("of old") }},
		"the network is gone": {want: 1, drift: func(w *world) {
			if err := w.admin.DeleteNetwork(w.t.Context(), w.network().ID); err != nil {
				w.t.Fatal(err)
			}
		}},
		"a subnet is gone": {want: 1, drift: func(w *world) {
			if err := w.admin.DeleteSubnet(w.t.Context(), subnet(w).ID); err != nil {
				w.t.Fatal(err)
			}
		}},
		"the gateway moved": {want: 1, drift: func(w *world) {
			change(w, neutron.SubnetAttributes{Gateway: new("10.0.0.9"), AllocationPools: &[]neutron.AllocationPool{}})
		}},
		"the marker is lost":                            {want: 1, drift: func(w *world) { w.describe(w.network(), "mine now") }},
		"a subnet's marker is lost":                     {want: 1, drift: func(w *world) { change(w, neutron.SubnetAttributes{Description: new("mine now")}) }},
		"a foreign subnet came, which the status shows": {want: 1, drift: func(w *world) { w.foreignSubnet(w.network().ID, "10.9.0.0/24", "") }},
		"the spec changed":                              {want: 1, drift: moveGateway},
		"it is being deleted":                           {want: 1, drift: func(w *world) { w.delete() }},
		"a network taken over, where nothing happened":  {start: takenOver(), drift: func(*world) {}},
		"a network taken over is another's": {start: takenOver(), want: 1, drift: func(w *world) {
			w.describe(w.network(), "of old ["+otherMarker+"]")
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.start != nil {
				tc.start(w)
			} else {
				w.create(newNetwork())
			}
			w.settle()
			tc.drift(w)
			var queued int
			var err error
			requests, writes := w.traffic(func() { queued, err = w.look() })
			if err != nil || queued != tc.want {
				t.Errorf("%d queued (%v), want %d", queued, err, tc.want)
			}
			if diff := cmp.Diff([]string{"GET networks", "GET subnets"}, requests); diff != "" || len(writes) > 0 {
				t.Errorf("writes %v and requests (-want +got):\n%s", writes, diff)
			}
		})
	}
}

func TestAFailedListQueuesNothing(t *testing.T) {
	for _, collection := range []string{"networks", "subnets"} {
		w := newWorld(t)
		w.create(newNetwork())
		w.settle()
		if err := w.admin.DeleteNetwork(t.Context(), w.network().ID); err != nil {
			t.Fatal(err)
		}
		breakdown(http.MethodGet, collection, refusal(http.StatusInternalServerError, "HTTPInternalServerError", "no"))(w)
		if queued, err := w.look(); err == nil || queued != 0 {
			t.Errorf("with no list of %s %d are queued (%v), want an error and none", collection, queued, err)
		}
	}
}

func TestOnlyWhatIsNotSettledIsQueuedAtStart(t *testing.T) {
	tests := map[string]struct {
		unsettle func(*samplecrdv1.Network)
		want     int
	}{
		"a Network that is as declared": {unsettle: func(*samplecrdv1.Network) {}},
		"a newer spec":                  {want: 1, unsettle: func(n *samplecrdv1.Network) { n.Generation++ }},
		"no conditions":                 {want: 1, unsettle: func(n *samplecrdv1.Network) { n.Status.Conditions = nil }},
		"another reason":                {want: 1, unsettle: func(n *samplecrdv1.Network) { n.Status.Conditions[1].Reason = samplecrdv1.ReasonPaused }},
		"a deletion under way":          {want: 1, unsettle: func(n *samplecrdv1.Network) { n.DeletionTimestamp = &n.CreationTimestamp }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newNetwork())
			w.settle()
			n := w.get()
			tc.unsettle(n)
			if err := w.clients.Tracker().Update(networksResource, n, n.Namespace); err != nil {
				t.Fatal(err)
			}

			ctx, stop := context.WithCancel(w.context())
			w.newController(ctx)
			w.factory.Start(ctx.Done())
			defer w.factory.Shutdown()
			defer stop()
			if !cache.WaitForCacheSync(ctx.Done(), w.controller.synced) {
				t.Fatal("the informer did not start")
			}
			if got := w.controller.queue.Len(); got != tc.want {
				t.Errorf("%d queued, want %d", got, tc.want)
			}
		})
	}
}
