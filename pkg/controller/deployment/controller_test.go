package deployment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestAsksAnew(t *testing.T) {
	tests := map[string]struct {
		before, change func(*appsv1.Deployment)
		want           bool
	}{
		"nothing, as in a relist":    {change: func(*appsv1.Deployment) {}},
		"its status":                 {change: func(d *appsv1.Deployment) { d.ResourceVersion, d.Status.Replicas = "2", 1 }},
		"another annotation":         {change: func(d *appsv1.Deployment) { d.Annotations["a"] = "b" }},
		"the annotation":             {change: asking("10.0.0.0/8"), want: true},
		"the annotation is empty":    {before: notAsking, change: func(d *appsv1.Deployment) { d.Annotations = map[string]string{samplecrdv1.AnnotationNetwork: ""} }, want: true},
		"the annotation is gone":     {change: notAsking, want: true},
		"a deletion":                 {change: deleting, want: true},
		"a deletion that asks not":   {before: notAsking, change: deleting},
		"another of the same name":   {change: func(d *appsv1.Deployment) { d.UID = "another" }, want: true},
		"another one that asks not":  {before: notAsking, change: func(d *appsv1.Deployment) { d.UID = "another" }},
		"another one, once with one": {change: func(d *appsv1.Deployment) { d.UID = "another"; notAsking(d) }, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			oldDeployment := newDeployment()
			if tc.before != nil {
				tc.before(oldDeployment)
			}
			changed := oldDeployment.DeepCopy()
			tc.change(changed)
			if got := asksAnew(oldDeployment, changed); got != tc.want {
				t.Errorf("asks anew: %t, want %t", got, tc.want)
			}
		})
	}
}

func deleting(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }

func TestMatters(t *testing.T) {
	tests := map[string]struct {
		change func(*samplecrdv1.Network)
		want   bool
	}{
		"nothing, as in a relist":  {change: func(*samplecrdv1.Network) {}},
		"the status":               {change: func(n *samplecrdv1.Network) { n.ResourceVersion, n.Status.NetworkID = "8", "id" }},
		"the spec":                 {change: func(n *samplecrdv1.Network) { n.Generation++ }, want: true},
		"an owner":                 {change: foreign, want: true},
		"a deletion":               {change: beingDeleted, want: true},
		"another of the same name": {change: func(n *samplecrdv1.Network) { n.UID = "another" }, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := matters(newNetwork(), newNetwork(tc.change)); got != tc.want {
				t.Errorf("matters: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatIsNoObjectIsNotQueued(t *testing.T) {
	w := newWorld(t, smallPool)
	w.controller.enqueue("no object")
	if got := w.controller.queue.Len(); got != 0 {
		t.Errorf("the queue holds %d, want 0", got)
	}
}

// change writes a Deployment into the API server, and remove takes an object out.
func (w *world) change(d *appsv1.Deployment) {
	w.t.Helper()
	if err := w.kube.Tracker().Update(deploymentsResource, d, d.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) removeDeployment(name string) {
	w.t.Helper()
	if err := w.kube.Tracker().Delete(deploymentsResource, testName.Namespace, name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) removeNetwork(name string) {
	w.t.Helper()
	if err := w.clients.Tracker().Delete(networksResource, testName.Namespace, name); err != nil {
		w.t.Fatal(err)
	}
}

// TestRun has the controller work as it does in a server, and reads its log. The
// clock stands still where all wait, so what comes does not come by a retry.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		w := newWorld(t, smallPool)
		w.logger = logger
		// What the controller finds at the start, one that no longer asks among it.
		w.store(newDeployment(), newDeployment(named("old"), notAsking),
			newNetwork(calledNetwork("old"), func(n *samplecrdv1.Network) {
				n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "old", UID: "uid of old", Controller: new(true)}}
			}))
		stop := w.run(2)
		for _, step := range []struct {
			what string
			act  func()
			want []string
		}{
			{"the start", func() { <-time.After(time.Second) }, []string{"10.128.0.0/24"}},
			{"another CIDR", func() { w.change(newDeployment(asking("10.20.0.0/16"))) }, []string{"10.20.0.0/16"}},
			{"nonsense", func() { w.change(newDeployment(asking("no"))) }, []string{"10.20.0.0/16"}},
			{"true again", func() { w.change(newDeployment()) }, []string{"10.20.0.0/16"}},
			{"someone deletes it", func() { w.removeNetwork("web") }, []string{"10.128.0.0/24"}},
			{"no annotation", func() { w.change(newDeployment(notAsking)) }, nil},
			{"true once more", func() { w.change(newDeployment()) }, []string{"10.128.0.0/24"}},
			{"a foreground deletion begins", func() { w.change(newDeployment(deleting)) }, []string{"10.128.0.0/24"}},
			{"it takes the Network", func() { w.removeNetwork("web") }, nil},
			{"and goes", func() { w.removeDeployment("web") }, nil},
			{"a user takes the name", func() { w.store(newNetwork(foreign)) }, []string{"10.0.0.0/24"}},
			{"and a Deployment comes", func() { w.store(newDeployment()) }, []string{"10.0.0.0/24"}},
			{"the user makes room", func() { w.removeNetwork("web") }, []string{"10.128.0.0/24"}},
		} {
			step.act()
			synctest.Wait()
			if diff := cmp.Diff(step.want, w.cidrs()); diff != "" {
				t.Errorf("after %s the CIDRs are (-want +got):\n%s", step.what, diff)
			}
		}
		stop()
		var reasons []string
		for _, event := range w.recorder.take() {
			if fields := strings.Fields(event); strings.HasPrefix(fields[3], "web") {
				reasons = append(reasons, fields[1])
			}
		}
		want := []string{
			"NetworkCreated", "NetworkUpdated", "InvalidNetworkAnnotation", "NetworkCreated", "NetworkDeleted",
			"NetworkCreated", "NetworkExists", "NetworkCreated",
		}
		if diff := cmp.Diff(want, reasons); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		rest := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		for _, line := range []string{
			"Starting Deployment control loop", "Waiting for informer caches to sync", "Starting workers", "Started workers", "Successfully synced", "Shutting down workers",
		} {
			_, after, found := strings.Cut(rest, line)
			if !found {
				t.Errorf("the log does not say %q, or not in its place", line)
			}
			rest = after
		}
	})
}

func TestAnExhaustedPoolIsToldAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, netip.MustParsePrefix("10.128.0.0/24"))
		w.store(newNetwork(calledNetwork("in the way"), withCIDR("10.128.0.0/30")), newDeployment())
		stop := w.run(2)
		defer stop()
		<-time.After(time.Hour) // with its retries
		synctest.Wait()
		want := []string{"Warning CIDRPoolExhausted Allocate web: no /24 is free in the CIDR pool 10.128.0.0/24: " +
			"waiting for a Network to go; or name a CIDR in the annotation samplecrd.k8s.io/network"}
		if diff := cmp.Diff(want, w.recorder.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		w.removeNetwork("in the way")
		synctest.Wait() // no time passes: it is woken
		if got := w.network(testName.Namespace, testName.Name); got == nil || got.Spec.CIDR != "10.128.0.0/24" {
			t.Fatalf("when there is room the Network is %v", got)
		}
		w.store(newDeployment(named("next")))
		synctest.Wait()
		moved := w.network(testName.Namespace, testName.Name)
		moved.Spec.CIDR, moved.Generation = "10.0.0.0/24", 2
		if err := w.clients.Tracker().Update(networksResource, moved, moved.Namespace); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := w.network(testName.Namespace, "next"); got == nil || got.Spec.CIDR != "10.128.0.0/24" {
			t.Errorf("when the subnet has moved the Network is %v", got)
		}
	})
}

func TestARefusalIsToldOnceAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, smallPool)
		tries := 0
		w.clients.PrependReactor("create", "networks", func(clienttesting.Action) (bool, runtime.Object, error) {
			tries++
			return tries <= 5, nil, apierrors.NewForbidden(networksResource.GroupResource(), "web", errors.New("exceeded quota"))
		})
		w.store(newDeployment())
		stop := w.run(1)
		defer stop()
		<-time.After(lastRetry)
		synctest.Wait()
		if got := w.cidrs(); !slices.Equal(got, []string{"10.128.0.0/24"}) {
			t.Errorf("after %d tries CIDRs are %v", tries, got)
		}
		if got := w.recorder.take(); len(got) != 2 {
			t.Errorf("events are %v, want the refusal and the creation", got)
		}
	})
}

// A Network that the cache never shows is not waited for without end.
func TestAPromiseEnds(t *testing.T) {
	tests := map[string]func(*world){
		"the annotation is gone":     func(w *world) { w.see(newDeployment(notAsking)) },
		"the annotation is nonsense": func(w *world) { w.see(newDeployment(asking("no"))) },
		"the Deployment is deleted":  func(w *world) { w.see(newDeployment(deleting)) },
		"the Deployment is gone":     func(w *world) { _ = w.deployments.Delete(newDeployment()) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, smallPool)
				defer w.controller.queue.ShutDown()
				w.see(newDeployment())
				w.fails("create", errors.New("connection lost"), false)
				_ = w.controller.sync(w.context(), testName)
				change(w)
				w.controller.queue.Add(testName)
				for _, want := range []int{1, 0} {
					if w.controller.queue.Len() == 0 {
						t.Fatal("it is not looked at again")
					}
					w.controller.processNext(w.context())
					<-time.After(patience)
					synctest.Wait()
					if got := len(w.controller.pool.promised); got != want {
						t.Errorf("%d promises, want %d", got, want)
					}
				}
			})
		})
	}
}

// Many at one moment, with a cache that shows nothing of what is made.
func TestDeploymentsOfOneMomentShareNoRange(t *testing.T) {
	w := newWorld(t, netip.MustParsePrefix("fd00::/48"))
	const count = 60
	for i := range count {
		d := newDeployment(named(fmt.Sprintf("d%d", i)))
		w.see(d)
		w.controller.queue.Add(cache.MetaObjectToName(d))
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range count / 4 {
				w.controller.processNext(w.context())
			}
		})
	}
	workers.Wait()
	var want []string
	for i := range count {
		want = append(want, netip.MustParsePrefix(fmt.Sprintf("fd00:0:0:%x::/64", i)).String())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, w.cidrs()); diff != "" {
		t.Errorf("CIDRs (-want +got):\n%s", diff)
	}
}

// Until the cache shows which of two CIDRs a Network has, neither is free.
func TestAnAnnotationThatChangesBeforeTheCache(t *testing.T) {
	w := newWorld(t, smallPool)
	pass := func(want func(error) bool) {
		t.Helper()
		if err := w.controller.sync(w.context(), testName); !want(err) {
			t.Errorf("error is %v", err)
		}
	}
	none := func(err error) bool { return err == nil }
	next := func(want string) {
		t.Helper()
		got, err := w.controller.pool.take(nameOf(0))
		if err != nil || got.String() != want {
			t.Errorf("the next free block is %v, %v; want %s", got, err, want)
		}
		w.controller.pool.settle(nameOf(0))
	}
	w.see(newDeployment())
	pass(none)
	w.see(newDeployment(asking("10.128.1.128/25")))
	pass(apierrors.IsAlreadyExists)
	next("10.128.2.0/24")
	w.see(w.network(testName.Namespace, testName.Name))
	pass(none)
	next("10.128.2.0/24")
	pass(apierrors.IsConflict)
	next("10.128.2.0/24")
	w.see(w.network(testName.Namespace, testName.Name))
	pass(none)
	next("10.128.0.0/24")
	w.see(newDeployment(asking("10.128.0.0/25")))
	pass(none)
	next("10.128.2.0/24")
}

func TestNothingIsDoneAfterTheEnd(t *testing.T) {
	w := newWorld(t, smallPool)
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	w.see(newDeployment())
	w.fails("create", context.Canceled, false)
	cancel()
	w.controller.queue.Add(testName)
	w.controller.processNext(ctx)
	if got := w.controller.queue.NumRequeues(testName); got != 0 {
		t.Errorf("%d retries, want none", got)
	}
	w.controller.Run(ctx, 1) // with caches that never come
	if w.controller.processNext(ctx) {
		t.Error("the queue is not shut down")
	}
}
