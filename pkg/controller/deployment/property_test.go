package deployment

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// TestWhatHappensInAnyOrder has users, passes, faults and late caches take turns
// over four Deployments and a pool of three blocks. Of the pool nothing may be
// had twice at any time; in the end, when the caches have followed, all must be
// as it is asked for, with nothing left to write, and nothing to remember when
// the Deployments have gone.
func TestWhatHappensInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, netip.MustParsePrefix("10.128.0.0/22"))
		w.see(newNetwork(calledNetwork("in the way"), withCIDR("10.128.1.0/28"))) // leaves three blocks
		lost, done := false, false
		w.clients.PrependReactor("create", "networks", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if !lost {
				return false, nil, nil
			}
			if done {
				_, _, _ = w.create(a)
				_ = w.clients.Tracker().Add(a.(clienttesting.CreateAction).GetObject()) // unless there is one
			}
			return true, nil, errors.New("connection lost")
		})
		names := []string{"d0", "d1", "d2", "d3"}
		declared := map[string]*appsv1.Deployment{}
		for _, name := range names {
			declared[name] = newDeployment(named(name))
		}
		follow := func(name string) {
			if n := w.network(testName.Namespace, name); n != nil {
				w.see(n.DeepCopy())
			} else if err := w.networks.Delete(newNetwork(calledNetwork(name))); err != nil {
				t.Fatal(err)
			}
		}
		pass := func(name string) {
			_ = w.controller.sync(w.context(), cache.ObjectName{Namespace: testName.Namespace, Name: name})
		}
		of := func(t *rapid.T) string { return rapid.SampledFrom(names).Draw(t, "name") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { sharesNothing(t, w) },
			"a Deployment goes, and its Network with it": func(t *rapid.T) {
				name := of(t)
				if err := w.deployments.Delete(declared[name]); err != nil {
					t.Fatal(err)
				}
				pass(name)
				if n := w.network(testName.Namespace, name); n != nil && metav1.IsControlledBy(n, declared[name]) {
					_ = w.clients.Tracker().Delete(networksResource, testName.Namespace, name)
				}
			},
			"a user changes the annotation": func(t *rapid.T) {
				name := of(t)
				text := rapid.SampledFrom([]string{"true", "10.1.0.0/16", "10.2.0.7/24", "fd00::/64", "no"}).Draw(t, "annotation")
				declared[name] = newDeployment(named(name), asking(text))
			},
			"a user removes the annotation": func(t *rapid.T) {
				name := of(t)
				declared[name] = newDeployment(named(name), notAsking)
			},
			"a user deletes the Network": func(t *rapid.T) {
				_ = w.clients.Tracker().Delete(networksResource, testName.Namespace, of(t))
			},
			"a user makes the Network": func(t *rapid.T) {
				n := newNetwork(calledNetwork(of(t)), withCIDR("192.168.0.0/24"))
				_, _ = w.clients.SamplecrdV1().Networks(n.Namespace).Create(t.Context(), n, metav1.CreateOptions{})
			},
			"the cache of Deployments follows": func(t *rapid.T) { w.see(declared[of(t)]) },
			"the cache of Networks follows":    func(t *rapid.T) { follow(of(t)) },
			"a pass":                           func(t *rapid.T) { pass(of(t)) },
			"a pass with an answer lost": func(t *rapid.T) {
				lost, done = true, rapid.Bool().Draw(t, "done")
				pass(of(t))
				lost = false
			},
		})

		w.controller.pool.clock = clocktesting.NewFakePassiveClock(time.Now().Add(patience))
		for range 5 {
			for _, name := range names {
				w.see(declared[name])
				follow(name)
				pass(name)
				follow(name)
			}
		}
		w.writes()
		waiting := 0
		for _, name := range names {
			pass(name)
			if !isAsAsked(declared[name], w.network(testName.Namespace, name)) {
				waiting++
			}
		}
		sharesNothing(t, w)
		if writes := w.writes(); len(writes) > 0 {
			t.Fatalf("in the end there are writes: %v", writes)
		}
		if got := len(w.controller.pool.waiting); got < waiting || waiting > 0 && len(pooled(w)) != 3 {
			t.Fatalf("%d wait and %d have no Network, with %v in the pool", got, waiting, pooled(w))
		}
		for _, name := range names {
			if err := w.deployments.Delete(declared[name]); err != nil {
				t.Fatal(err)
			}
			follow(name)
			pass(name)
		}
		if p, last := w.controller.pool, w.controller.events.last; len(p.promised)+len(p.waiting)+len(last) > 0 {
			t.Fatalf("promises are left: %v, or who waits: %v, or events: %v", p.promised, p.waiting, last)
		}
	})
}

// isAsAsked tells whether the Network is what the Deployment may have.
func isAsAsked(d *appsv1.Deployment, n *samplecrdv1.Network) bool {
	text, asked := d.Annotations[samplecrdv1.AnnotationNetwork]
	cidr, err := parseAnnotation(text)
	switch {
	case !asked:
		return n == nil || !metav1.IsControlledBy(n, d)
	case err != nil, n != nil && !metav1.IsControlledBy(n, d):
		return true
	case n == nil:
		return false
	}
	return text == "true" || isRange(n.Spec.CIDR, cidr)
}

// pooled are the ranges that Networks have of the pool.
func pooled(w *world) []string {
	return slices.DeleteFunc(w.cidrs(), func(text string) bool {
		return !netip.MustParsePrefix(text).Overlaps(w.controller.pool.cidr)
	})
}

func sharesNothing(t *rapid.T, w *world) {
	got := pooled(w)
	if diff := cmp.Diff(slices.Compact(slices.Clone(got)), got); diff != "" {
		t.Fatalf("ranges are had twice (-once +got):\n%s", diff)
	}
}
