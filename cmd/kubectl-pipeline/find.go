package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	pipelineclient "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/pipeline/v1alpha1"
)

const (
	// maxAsks is how many requests are sent at once to find a replica.
	maxAsks = 8
	// watchPause bounds how often replicas that end each watch are asked.
	watchPause = 200 * time.Millisecond
)

// finder finds traces where each of several replicas knows only its own, and a
// request may be answered by any of them.
type finder struct {
	traces pipelineclient.RequestTraceInterface
	// backoff is between rounds of requests.
	backoff wait.Backoff
	// patience is how long to look for a trace.
	patience time.Duration
}

// find returns the trace of that name or, where there is none, of that audit ID.
func (f *finder) find(ctx context.Context, id string) (*v1alpha1.RequestTrace, error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	var last error
	backoff := f.backoff
	for asks := 1; ; asks = min(2*asks, maxAsks) {
		trace, err := f.ask(ctx, id, asks)
		if err == nil {
			return trace, nil
		}
		// What the end of ctx cut off tells less than the round before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if final(err) || !sleep(ctx, backoff.Step()) {
			break
		}
	}
	if apierrors.IsNotFound(last) {
		missing := notFound(id)
		missing.ErrStatus.Message = fmt.Sprintf("no server that was reached has a trace of request %s: each keeps its own, and only the last", id)
		return nil, missing
	}
	return nil, fmt.Errorf("looking for the trace of request %s: %w", id, last)
}

// ask sends requests at once, so that they need a connection each, and returns
// the first trace. A replica that does not answer does not use up all patience.
func (f *finder) ask(ctx context.Context, id string, asks int) (*v1alpha1.RequestTrace, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	type answer struct {
		trace *v1alpha1.RequestTrace
		err   error
	}
	answers := make(chan answer, asks)
	for i := range asks {
		go func() {
			trace, err := f.get(ctx, id)
			// A list is long: one a round.
			if apierrors.IsNotFound(err) && i == 0 {
				trace, err = f.search(ctx, id)
			}
			answers <- answer{trace, err}
		}()
	}
	var err error
	for range asks {
		a := <-answers
		if a.err == nil {
			return a.trace, nil
		}
		// That a replica has none is less to know than that one does not answer.
		if err == nil || apierrors.IsNotFound(err) {
			err = a.err
		}
	}
	return nil, err
}

func (f *finder) get(ctx context.Context, id string) (*v1alpha1.RequestTrace, error) {
	if len(content.IsPathSegmentName(id)) > 0 {
		return nil, notFound(id)
	}
	return f.traces.Get(ctx, id, metav1.GetOptions{})
}

// search looks for an audit ID that is no name, and returns the newest trace.
func (f *finder) search(ctx context.Context, auditID string) (*v1alpha1.RequestTrace, error) {
	list, err := f.traces.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := len(list.Items) - 1; i >= 0; i-- {
		if list.Items[i].AuditID == auditID {
			return &list.Items[i], nil
		}
	}
	return nil, notFound(auditID)
}

func notFound(id string) *apierrors.StatusError {
	return apierrors.NewNotFound(v1alpha1.Resource("requesttraces"), id)
}

// follow hands out each state of a trace that it gets to see, until done says
// that this was the last, or ctx ends.
func (f *finder) follow(ctx context.Context, trace *v1alpha1.RequestTrace, done func(*v1alpha1.RequestTrace) bool) error {
	name := trace.Name
	for {
		if trace != nil && (done(trace) || f.watch(ctx, trace, done)) {
			return nil
		}
		if !sleep(ctx, watchPause) {
			return nil
		}
		var err error
		if trace, err = f.find(ctx, name); final(err) {
			return err
		}
		if err == nil {
			trace = f.withPasses(ctx, trace)
		}
	}
}

// withPasses adds those that stand in another replica, where the controller runs:
// each with its own first write, of the object in the state of this trace.
func (f *finder) withPasses(ctx context.Context, trace *v1alpha1.RequestTrace) *v1alpha1.RequestTrace {
	object := trace.Object
	if len(trace.Passes) > 0 || object == nil || !writesSpec(trace) {
		return trace
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lists := make(chan *v1alpha1.RequestTraceList, maxAsks)
	var asking sync.WaitGroup
	for range maxAsks {
		asking.Go(func() {
			list, err := f.traces.List(ctx, metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector(v1alpha1.FieldObjectUID, string(object.UID)).String(),
			})
			if err == nil {
				lists <- list
			}
		})
	}
	asking.Wait()
	close(lists)
	borrowed := trace.DeepCopy()
	seen := map[string]bool{}
	for list := range lists {
		for _, other := range list.Items {
			if other.Object == nil || other.Object.UID != object.UID || other.Object.Generation != object.Generation || seen[other.Name] {
				continue
			}
			seen[other.Name] = true
			later := other.StartTime.Sub(trace.StartTime.Time).Microseconds()
			for _, pass := range other.Passes {
				// One that began with an older state follows from the write before.
				if order, err := resourceversion.CompareResourceVersion(pass.ResourceVersion, object.ResourceVersion); err == nil && order < 0 {
					continue
				}
				pass.StartMicroseconds += later
				for i, stage := range pass.Stages {
					if stage.StartMicroseconds != nil {
						pass.Stages[i].StartMicroseconds = new(*stage.StartMicroseconds + later)
					}
				}
				borrowed.Passes = append(borrowed.Passes, pass)
			}
		}
	}
	slices.SortFunc(borrowed.Passes, func(a, b v1alpha1.Pass) int { return cmp.Compare(a.StartMicroseconds, b.StartMicroseconds) })
	return borrowed
}

// writesSpec tells the requests that the controller has something to do after.
func writesSpec(trace *v1alpha1.RequestTrace) bool {
	r := trace.Request
	return r.Method != http.MethodGet && r.Subresource == "" && !slices.Contains(r.Parameters, "dryRun=All") && !refused(trace)
}

// watch returns whether done said so. It is short, as one that a replica
// without the trace took would be silent for ever; where it fails, find follows
// and tells why.
func (f *finder) watch(ctx context.Context, trace *v1alpha1.RequestTrace, done func(*v1alpha1.RequestTrace) bool) bool {
	events, err := f.traces.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(v1alpha1.FieldName, trace.Name).String(),
		ResourceVersion: trace.ResourceVersion,
		TimeoutSeconds:  new(int64(2)),
	})
	if err != nil {
		return false
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if seen, ok := event.Object.(*v1alpha1.RequestTrace); ok && seen.Name == trace.Name && done(seen) {
			return true
		}
	}
	return false
}

// final tells errors that no other replica will answer better.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// sleep returns whether ctx lasted longer.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
