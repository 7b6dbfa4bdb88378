package pipeline

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/client-go/tools/cache"
)

// causeHeader names the trace of the write that a request of the controller
// follows from. It is believed as far as it names a trace: all it does is show.
const causeHeader = "Pipeline-Cause"

// maxPassStages bounds what is kept of one pass.
const maxPassStages = 64

// queued is when a controller was told to look at an object, and why.
type queued struct {
	at  time.Time
	why string
}

// Enqueued notes why and when an object is put in the queue of a controller. The
// first reason counts until a pass begins.
func (r *Recorder) Enqueued(name cache.ObjectName, why string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waits := r.queue[name]; !waits {
		r.queue[name] = queued{time.Now(), why}
	}
}

// Gone notes that an object left the queue because it is not there any more.
func (r *Recorder) Gone(name cache.ObjectName) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queue, name)
}

// Pass is one look of a controller at an object, and what it does about it. A
// nil Pass records nothing.
type Pass struct {
	timeline
	recorder *Recorder
	object   Object
	id       string

	// The recorder's lock guards these.
	trace    *Trace
	result   string
	settled  bool
	duration time.Duration // Unknown while it goes on
	took     time.Duration // from the queue
}

type passKey struct{}

func passFrom(ctx context.Context) *Pass {
	p, _ := ctx.Value(passKey{}).(*Pass)
	return p
}

// StartPass begins a pass over an object in the state the controller knows. What
// is done with the context belongs to it.
func (r *Recorder) StartPass(ctx context.Context, obj metav1.Object) (context.Context, *Pass) {
	if r == nil {
		return ctx, nil
	}
	now := time.Now()
	p := &Pass{
		timeline: timeline{start: now},
		recorder: r,
		id:       "pass:" + string(uuid.NewUUID()), // no trace is called so
		duration: Unknown,
		object: Object{
			Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
			Generation: obj.GetGeneration(), Version: obj.GetResourceVersion(),
		},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := cache.NewObjectName(obj.GetNamespace(), obj.GetName())
	if q, waited := r.queue[name]; waited {
		delete(r.queue, name)
		p.start = q.at
		p.took = now.Sub(q.at)
		p.stages = append(p.stages,
			&Stage{Name: Informer, Subject: q.why, Outcome: Passed, Duration: Unknown, Details: []Detail{{"revision", p.object.Version}}},
			&Stage{Name: Queue, Outcome: Passed, Duration: p.took})
	}
	if t := r.joins.cause(p.object); t != nil {
		r.attach(t, p)
	} else if r.joins.passes = append(r.joins.passes, p); len(r.joins.passes) > maxEarly {
		r.joins.passes = slices.Delete(r.joins.passes, 0, 1)
	}
	return context.WithValue(ctx, passKey{}, p), p
}

// Shown tells whether what is done in ctx belongs to a pass.
func Shown(ctx context.Context) bool { return passFrom(ctx) != nil }

// Note adds to the pass in ctx, if there is one, what a controller found or
// means to do: [Observe] or [Plan].
func Note(ctx context.Context, stage, message string, details ...Detail) {
	p := passFrom(ctx)
	if p == nil {
		return
	}
	p.add(Stage{Name: stage, Outcome: Passed, Start: time.Since(p.start), Duration: Unknown, Message: message, Details: details})
}

// End ends the pass. Settled: the controller does nothing more by itself.
func (p *Pass) End(result string, settled bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	p.duration = time.Since(p.start) - p.took
	p.result, p.settled = result, settled
	if p.trace != nil {
		p.recorder.touch(p.trace)
	}
}

func (p *Pass) add(s Stage) {
	if p.full() {
		return
	}
	p.stage(s)
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	if p.trace != nil {
		p.recorder.touch(p.trace)
	}
}

func (p *Pass) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stages) >= maxPassStages
}

// record returns the pass as it is now, in the time of a trace. The caller holds
// the recorder's lock.
func (p *Pass) record(start time.Time) PassRecord {
	offset := p.start.Sub(start)
	stages := p.copyStages()
	for i := range stages {
		stages[i].Start += offset
	}
	return PassRecord{
		Start: offset + p.took, Duration: p.duration, ResourceVersion: p.object.Version,
		Result: p.result, Settled: p.settled, Stages: stages,
	}
}

// PassRecord is one look of a controller at an object, and what it did about it.
type PassRecord struct {
	Start           time.Duration // since the beginning of the trace it belongs to
	Duration        time.Duration // Unknown while it goes on
	ResourceVersion string
	Result          string
	Settled         bool // the controller does nothing more by itself
	Stages          []Stage
}

// CloudTransport shows the calls a pass makes to a cloud: method, path, status
// and time, and nothing of headers and bodies.
func CloudTransport(next http.RoundTripper) http.RoundTripper { return transport{next, Neutron} }

// APITransport shows what a pass asks of the API server, and tells that which
// write it follows from.
func APITransport(next http.RoundTripper) http.RoundTripper { return transport{next, Status} }

type transport struct {
	http.RoundTripper
	stage string
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	p := passFrom(req.Context())
	if p == nil {
		return t.RoundTripper.RoundTrip(req)
	}
	if t.stage == Status {
		req = req.Clone(req.Context())
		req.Header.Set(causeHeader, p.cause())
	}
	s := Stage{Name: t.stage, Subject: req.Method + " " + shortPath(req.URL.Path), Outcome: Passed, Start: time.Since(p.start)}
	if query := req.URL.RawQuery; query != "" && t.stage == Neutron {
		s.Subject += "?" + query
	}
	response, err := t.RoundTripper.RoundTrip(req)
	s.Duration = time.Since(p.start) - s.Start
	if err != nil {
		s.Outcome, s.Message = Failed, fmt.Sprintf("no answer: %v", err)
		p.add(s)
		return response, err
	}
	s.Details = append(s.Details, Detail{"status", response.Status})
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		s.Outcome = Failed
	case response.StatusCode >= http.StatusBadRequest:
		s.Outcome = Refused
	}
	if id := response.Header.Get(auditinternal.HeaderAuditID); id != "" && t.stage == Status {
		s.Details = append(s.Details, Detail{"trace", id})
	}
	p.add(s)
	return response, nil
}

// shortPath leaves out group, version and namespace: they are those of the trace.
func shortPath(path string) string {
	if _, inNamespace, ok := strings.Cut(path, "/namespaces/"); ok {
		if _, rest, ok := strings.Cut(inNamespace, "/"); ok {
			return rest
		}
	}
	return path
}

// cause is the name of the trace this pass belongs to. Where the write went to
// another replica it is a name of the pass itself.
func (p *Pass) cause() string {
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	if p.trace == nil {
		return p.id
	}
	return p.trace.name
}
