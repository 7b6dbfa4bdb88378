package network

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestAsksForWork(t *testing.T) {
	tests := map[string]struct {
		change func(*samplecrdv1.Network)
		want   bool
	}{
		"nothing, as in a relist":  {change: func(*samplecrdv1.Network) {}},
		"our own status":           {change: func(n *samplecrdv1.Network) { n.ResourceVersion, n.Status.NetworkID = "2", "id" }},
		"a label":                  {change: func(n *samplecrdv1.Network) { n.Labels = map[string]string{"a": "b"} }},
		"empty annotations":        {change: func(n *samplecrdv1.Network) { n.Annotations = map[string]string{} }},
		"the spec":                 {change: func(n *samplecrdv1.Network) { n.Generation++ }, want: true},
		"an annotation":            {change: func(n *samplecrdv1.Network) { n.Annotations = map[string]string{"a": "b"} }, want: true},
		"a finalizer that is gone": {change: func(n *samplecrdv1.Network) { n.Finalizers = nil }, want: true},
		"a deletion":               {change: func(n *samplecrdv1.Network) { n.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }, want: true},
		"another of the same name": {change: func(n *samplecrdv1.Network) { n.UID = "another" }, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			oldNetwork, newNetwork := newNetwork(), newNetwork(tc.change)
			if got := asksForWork(oldNetwork, newNetwork); got != tc.want {
				t.Errorf("asks for work: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAFailureIsTriedAgainAndForgottenInTheEnd(t *testing.T) {
	panics := func(w *world) {
		once := true
		w.clients.PrependReactor("update", "networks", func(clienttesting.Action) (bool, kruntime.Object, error) {
			if once {
				once = false
				panic("garbage")
			}
			return false, nil, nil
		})
	}
	tests := map[string]func(*world){
		"Neutron fails":          func(w *world) { w.arm(1, faults["an internal error before"]) },
		"the API server fails":   func(w *world) { w.arm(2, faults["a write refused"]) },
		"the object has changed": func(w *world) { w.arm(1, fault{api: conflicting}) },
		"the pass panics":        panics,
	}
	for name, hinder := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newNetwork())
			if err := w.indexer.Add(w.get()); err != nil {
				t.Fatal(err)
			}
			hinder(w)
			w.controller.enqueue(w.get(), "test")
			if !w.controller.processNext(w.context()) {
				t.Fatal("the queue is shut down")
			}
			if got := w.controller.queue.NumRequeues(testName); got != 1 {
				t.Errorf("the Network is tried again %d times, want once", got)
			}
			if err := w.indexer.Update(w.get()); err != nil {
				t.Fatal(err)
			}
			w.controller.processNext(w.context()) // waits for the time of the retry
			if got := w.controller.queue.NumRequeues(testName); got != 0 {
				t.Errorf("after success the Network has %d failures, want 0", got)
			}
			w.disarm()
			if got := stateOf(t, w.get()); got != succeeds {
				t.Errorf("conditions are %+v, want %+v", got, succeeds)
			}
		})
	}
}

func TestARetryWaitsLongerEachTime(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	if err := w.indexer.Add(w.get()); err != nil {
		t.Fatal(err)
	}
	w.cloud.answerWith(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	w.controller.enqueue(w.get(), "test")
	for want := 1; want <= 3; want++ {
		w.controller.processNext(w.context())
		if got := w.controller.queue.NumRequeues(testName); got != want {
			t.Errorf("after %d failures the queue counts %d", want, got)
		}
		if err := w.indexer.Update(w.get()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPassThatIsCutOffSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	if err := w.indexer.Add(w.get()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.context())
	w.cloud.answerWith(func(http.ResponseWriter, *http.Request) bool {
		cancel()
		panic(http.ErrAbortHandler)
	})
	w.controller.enqueue(w.get(), "test")
	_, writes := w.traffic(func() { w.controller.processNext(ctx) })
	if !slices.Equal(writes, []string{"status"}) || w.controller.queue.NumRequeues(testName) != 0 {
		t.Errorf("writes are %v with %d retries, want only the intent", writes, w.controller.queue.NumRequeues(testName))
	}
}

func TestWhatIsNoObjectIsNotQueued(t *testing.T) {
	w := newWorld(t)
	w.controller.enqueue("no object", "test")
	if got := w.controller.queue.Len(); got != 0 {
		t.Errorf("the queue holds %d, want 0", got)
	}
}

// TestRun has the controller work as it does in a server, and reads its log.
func TestRun(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
	defer stop()
	w := newWorld(t)
	w.newController(ctx)
	w.create(newNetwork())
	changes, err := w.clients.Tracker().Watch(networksResource, testName.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	await := func(what string, reached func(*samplecrdv1.Network) bool) {
		t.Helper()
		deadline := time.After(time.Minute)
		for {
			select {
			case <-deadline:
				t.Fatalf("%s does not come:\n%s", what, conditions(w.get()))
			case change := <-changes.ResultChan():
				if reached(change.Object.(*samplecrdv1.Network)) {
					return
				}
			}
		}
	}
	ready := func(n *samplecrdv1.Network) bool {
		c := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionReady)
		return c != nil && c.Reason == samplecrdv1.ReasonSuccess && c.ObservedGeneration == n.Generation
	}

	w.factory.Start(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.controller.Run(ctx)
	}()
	await("the first success", ready)
	w.edit(withGateway("10.0.0.254"))
	await("the success after an edit", ready)
	w.delete()
	await("the end", func(n *samplecrdv1.Network) bool { return len(n.Finalizers) == 0 || w.get() == nil })
	stop()
	<-ended
	w.factory.Shutdown()

	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	rest := log
	for _, line := range []string{
		"Setting up event handlers",
		"Starting Network control loop",
		"Waiting for informer caches to sync",
		"Starting workers",
		"Started workers",
		"Shutting down workers",
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Errorf("the log does not say %q, or not in its place:\n%s", line, log)
			continue
		}
		rest = after
	}
	for _, line := range []string{"[Neutron] Try to process network", "[Neutron] create network", "[Neutron] Deleting network", "Successfully synced"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log does not say %q:\n%s", line, log)
		}
	}
	if strings.Contains(log, "it:u:") {
		t.Error("the log holds the token")
	}
	if left := w.networks(); len(left) > 0 {
		t.Errorf("left in Neutron: %+v", left)
	}
}

func TestRunEndsBeforeTheCacheIsThere(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(w.context())
	stop()
	w.controller.Run(ctx) // returns, though the informer was never started
}

// TestWhenAPassIsMadeAgain tells what the queue does after a failure.
func TestWhenAPassIsMadeAgain(t *testing.T) {
	retryAfter := func(status int, value string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(status)
		}
	}
	const never = -1
	tests := map[string]struct {
		answer func(http.ResponseWriter, *http.Request, http.Handler)
		want   time.Duration // at the least
	}{
		"trouble":                   {answer(http.StatusServiceUnavailable, ""), firstRetry},
		"asked to wait":             {retryAfter(http.StatusServiceUnavailable, "7"), 7 * time.Second},
		"asked to wait very short":  {retryAfter(http.StatusTooManyRequests, "0"), firstRetry},
		"the quota is full":         {refusal(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['network']."), quotaRetry},
		"the policy forbids it":     {refusal(http.StatusForbidden, "PolicyNotAuthorized", "no"), never},
		"the attributes are wrong":  {refusal(http.StatusBadRequest, "InvalidInput", "no"), never},
		"the credentials are wrong": {answer(http.StatusUnauthorized, ""), firstRetry},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			queue := &recordingQueue{TypedRateLimitingInterface: w.controller.queue, after: never}
			w.controller.queue = queue
			w.create(newNetwork())
			if err := w.indexer.Add(w.get()); err != nil {
				t.Fatal(err)
			}
			breakdown(http.MethodPost, "networks", tc.answer)(w)
			w.controller.enqueue(w.get(), "test")
			w.controller.processNext(w.context())
			if queue.after != tc.want {
				t.Errorf("the next pass comes after %v, want %v", queue.after, tc.want)
			}
			wantRequeues := 1
			if tc.want == never {
				wantRequeues = 0
			}
			if got := queue.NumRequeues(testName); got != wantRequeues {
				t.Errorf("the queue counts %d failures, want %d", got, wantRequeues)
			}
		})
	}
}

// recordingQueue keeps what is put off, and does not wait for it.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
	after time.Duration
}

func (q *recordingQueue) AddAfter(_ cache.ObjectName, after time.Duration) { q.after = after }

// A Network whose status can't be written does not wait for a person: nobody
// was told to come.
func TestAStatusThatIsNotWrittenIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	if err := w.indexer.Add(w.get()); err != nil {
		t.Fatal(err)
	}
	breakdown(http.MethodPost, "networks", refusal(http.StatusForbidden, "PolicyNotAuthorized", "no"))(w)
	puts := 0
	w.clients.PrependReactor("update", "networks", func(clienttesting.Action) (bool, kruntime.Object, error) {
		puts++
		if puts == 2 { // the first is the intent
			return true, nil, errors.New("no connection")
		}
		return false, nil, nil
	})
	w.controller.enqueue(w.get(), "test")
	w.controller.processNext(w.context())
	if got := w.controller.queue.NumRequeues(testName); got != 1 {
		t.Errorf("the queue counts %d failures, want 1", got)
	}
}

// TestTurns has many passes over Networks that are only observed: as many speak
// to Neutron at once as there are workers, and no more.
func TestTurns(t *testing.T) {
	w := newWorld(t)
	foreign := w.foreignNetwork("of old")
	var now, most atomic.Int32
	w.cloud.answerWith(func(http.ResponseWriter, *http.Request) bool {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		runtime.Gosched()
		now.Add(-1)
		return false
	})
	var passes sync.WaitGroup
	for range 50 {
		passes.Go(func() {
			n := newNetwork(takingOver(foreign.ID), withSpec(func(s *samplecrdv1.NetworkSpec) {
				s.ManagementPolicy = samplecrdv1.ManagementPolicyObserve
			}))
			_ = newPass(w.controller, n).run(w.context()) // nobody has stored it
		})
	}
	passes.Wait()
	if got, want := int(most.Load()), cap(w.controller.turns); got > want {
		t.Errorf("%d requests at once, want at most %d", got, want)
	}
}

// A pass that waits for the API server lets the next one speak to Neutron.
func TestATurnIsGivenAwayWhileAStatusIsWritten(t *testing.T) {
	w := newWorld(t)
	w.controller.turns = make(chan struct{}, 1)
	foreign := w.foreignNetwork("of old")
	n := newNetwork(takingOver(foreign.ID), withSpec(func(s *samplecrdv1.NetworkSpec) {
		s.ManagementPolicy = samplecrdv1.ManagementPolicyObserve
	}))
	asked, release := make(chan struct{}, 4), make(chan struct{})
	w.cloud.answerWith(func(http.ResponseWriter, *http.Request) bool { asked <- struct{}{}; return false })
	w.clients.PrependReactor("update", "networks", func(clienttesting.Action) (bool, kruntime.Object, error) {
		<-release
		return true, n, nil
	})
	var passes sync.WaitGroup
	for range 2 {
		passes.Go(func() { _ = newPass(w.controller, n).run(w.context()) })
	}
	deadline := time.After(time.Minute)
	for range cap(asked) { // a network and its subnets, each twice
		select {
		case <-asked:
		case <-deadline:
			close(release)
			t.Fatal("the second pass waits for the status of the first")
		}
	}
	close(release)
	passes.Wait()
}
