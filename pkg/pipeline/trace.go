package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxTrace bounds what the objects of one trace may take, in bytes; those of
	// a larger one are left out.
	maxTrace = 1 << 20
	// maxPasses and maxDeliveries bound what one trace holds of each.
	maxPasses     = 8
	maxDeliveries = 32
	// overhead is about what a trace takes beside objects and bytes.
	overhead = 8 << 10
)

// Request is what was asked.
type Request struct {
	Verb, Method, Path                    string
	Parameters                            []string // NAME=VALUE
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	ContentType, Accept, UserAgent        string
	BodyBytes                             int64
}

// User is who asked.
type User struct {
	Name           string
	Groups         []string
	ImpersonatedBy string
}

// Response is what was answered.
type Response struct {
	Code            int
	Reason, Message string
	ContentType     string
	Bytes           int64
	Duration        time.Duration
	StoppedAt       string
	Warnings        []string
}

// Object names one state of an object.
type Object struct {
	Namespace, Name string
	UID             types.UID
	Generation      int64
	Version         string
}

// Trace is one request on its way.
type Trace struct {
	timeline
	recorder *Recorder

	// The recorder's lock guards these.
	name, auditID  string
	added, version uint64
	size           int64
	cause          string
	deliveries     []Stage
	passes         []*Pass
	passesDropped  int
	omitted        string
	versions       []string // that it wrote
	wroteTo        []types.UID

	// The timeline's lock guards these.
	request  Request
	user     *User
	response Response
	answer   []byte // of a refusal
	body     []byte
	object   Object
	last     runtime.Object // the object as it was last seen
	existing runtime.Object // what is stored, until the new state is seen
	merge    *step          // goes on until the new state is seen
	filter   *step          // the filter that has not handed on yet
	stored   runtime.Object // as it was encoded
	removed  bool           // the object was deleted for good
	key      string         // in etcd
	cacheKey string         // that the watch cache asks etcd for
}

type traceKey struct{}

// from returns the trace of a request, or nil where it is not recorded.
func from(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

// snapshot returns a copy without the managed fields, which would take more room
// than all else.
func snapshot(obj runtime.Object) runtime.Object {
	seen := obj.DeepCopyObject()
	if accessor, err := meta.Accessor(seen); err == nil {
		accessor.SetManagedFields(nil)
	}
	return seen
}

// isDryRun tells that nothing will be written.
func (t *Trace) isDryRun() bool { return slices.Contains(t.request.Parameters, "dryRun=All") }

// see notes the state of the object at the beginning of a stage, and returns
// it: a copy, for what comes changes it.
func (t *Trace) see(obj runtime.Object) runtime.Object {
	t.mu.Lock()
	last, merge, existing := t.last, t.merge, t.existing
	t.merge, t.existing = nil, nil
	t.mu.Unlock()
	seen := snapshot(obj)
	if merge == nil && same(last, seen) {
		return last
	}
	if merge != nil {
		if same(existing, seen) {
			merge.end(Passed, "nothing changes but who owns the fields")
		} else {
			merge.end(Changed, mergeMessages[t.request.Verb])
			merge.show(existing, seen)
		}
	}
	t.setLast(seen)
	return seen
}

func (t *Trace) setLast(obj runtime.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = obj
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	t.object = Object{
		Namespace:  accessor.GetNamespace(),
		Name:       accessor.GetName(),
		UID:        accessor.GetUID(),
		Generation: accessor.GetGeneration(),
		Version:    accessor.GetResourceVersion(),
	}
}

// saw ends a stage that may have changed the object it began with.
func (t *Trace) saw(s *step, before, obj runtime.Object) {
	after := snapshot(obj)
	if same(before, after) {
		s.end(Passed, "")
		return
	}
	t.setLast(after)
	s.end(Changed, "")
	s.show(before, after)
}

// lastSeen returns the object as it was last seen, and whether the next state is
// that of a merge.
func (t *Trace) lastSeen() (last runtime.Object, merging bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.merge != nil
}

// enterFilter begins a filter: the one before has handed on. Without a name it
// was the last.
func (t *Trace) enterFilter(name string) {
	t.mu.Lock()
	previous := t.filter
	t.filter = nil
	t.mu.Unlock()
	previous.end(Passed, "")
	if name == "" {
		return
	}
	s := t.step(name, "")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filter = s
}

// finish ends what goes on, and finds out where the request stopped.
func (t *Trace) finish(status *metav1.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Since(t.start)
	t.response.Duration = now
	refused := t.response.Code >= http.StatusBadRequest || t.response.Code == 0
	if status != nil {
		t.response.Reason, t.response.Message = string(status.Reason), status.Message
	}
	var stop *Stage
	for _, s := range t.stages {
		if s.stopped() {
			stop = s // the last one: a retry may have got past the first
		}
	}
	if refused && stop == nil {
		stop = t.silentStop()
	}
	for _, s := range t.stages {
		if s.Duration == Unknown && s.Start != Unknown {
			s.Duration = now - s.Start
		}
		if s.Outcome == "" {
			s.Outcome = Passed
		}
	}
	if refused && stop != nil {
		t.response.StoppedAt = stop.Name
		if stop.Name == Validation && status != nil && status.Details != nil && len(status.Details.Causes) > 0 {
			// The library judges metadata beside what the strategy says.
			stop.Errors = nil
			for _, cause := range status.Details.Causes {
				stop.Errors = append(stop.Errors, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
			}
		}
	}
	t.over = true
	t.merge, t.existing, t.filter = nil, nil, nil
}

// refuseUnseen are the stages that may refuse where no hook tells, by the stage
// that was passed before: a handler can't read what was sent, or finds in a dry
// run that the stored object is another one.
var refuseUnseen = map[string]string{Mux: Decode, MutatingAdmission: Merge}

// silentStop finds the stage that ended a request without a word. The caller
// holds mu.
func (t *Trace) silentStop() *Stage {
	last := len(t.stages) - 1
	for last > 0 && t.stages[last].Name == Encoding {
		last--
	}
	if last < 0 {
		return nil
	}
	stop := t.stages[last]
	for _, s := range t.stages {
		if s.Outcome == "" {
			stop = s // the innermost that goes on
		}
	}
	if stop.Name == Mux && t.response.Code == http.StatusBadRequest {
		stop.Outcome = Passed // it found a handler
	}
	if next := refuseUnseen[stop.Name]; next != "" && stop.Outcome != "" {
		stop = &Stage{Name: next, Start: Unknown, Duration: Unknown}
		t.stages = slices.Insert(t.stages, last+1, stop)
	}
	stop.Outcome = Refused
	if t.response.Code >= http.StatusInternalServerError || t.response.Code == 0 {
		stop.Outcome = Failed
	}
	stop.Message = cmp.Or(stop.Message, t.response.Message)
	return stop
}

// measure returns about what the trace takes of memory, and leaves the objects
// out if that is too much.
func (t *Trace) measure() (size int64, omitted string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size = overhead + int64(len(t.answer)) + weigh(reflect.ValueOf(t.request)) + weigh(reflect.ValueOf(t.user)) + weigh(reflect.ValueOf(t.response))
	states := int64(1)
	for _, s := range t.stages {
		if s.After != nil {
			states++
		}
		size += int64(len(s.Message)) + weigh(reflect.ValueOf(s.Errors)) + weigh(reflect.ValueOf(s.Details))
	}
	if t.last == nil && t.body == nil {
		return size, ""
	}
	// In memory an object takes some three times what it takes as bytes, which may
	// be more than went by: a patch is small, and so is a refusal.
	objects := int64(len(t.body)) + max(3*states*max(t.request.BodyBytes, t.response.Bytes), t.weighObjects())
	if size+objects <= maxTrace {
		return size + objects, ""
	}
	t.forget()
	return size, fmt.Sprintf("the objects would take some %d KiB, and a trace may have %d", objects>>10, maxTrace>>10)
}

// weighObjects returns about what the objects take of memory, in bytes. The
// caller holds mu.
func (t *Trace) weighObjects() (size int64) {
	weighed := map[runtime.Object]bool{nil: true}
	objects := []runtime.Object{t.last, t.stored}
	for _, s := range t.stages {
		objects = append(objects, s.Before, s.After)
	}
	for _, obj := range objects {
		if !weighed[obj] {
			weighed[obj] = true
			size += weigh(reflect.ValueOf(obj))
		}
	}
	return size
}

// weigh returns about how many bytes a value refers to.
func weigh(v reflect.Value) (size int64) {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return sizeOf(v.Elem().Type()) + weigh(v.Elem())
		}
	case reflect.Slice:
		size = int64(v.Len()) * sizeOf(v.Type().Elem())
		for i := range v.Len() {
			size += weigh(v.Index(i))
		}
	case reflect.Map:
		size = int64(v.Len()) * (sizeOf(v.Type().Key()) + sizeOf(v.Type().Elem()))
		for entries := v.MapRange(); entries.Next(); {
			size += weigh(entries.Key()) + weigh(entries.Value())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0 // the zone is everybody's
		}
		for _, field := range v.Fields() {
			size += weigh(field)
		}
	}
	return size
}

func sizeOf(t reflect.Type) int64 { return int64(t.Size()) } //nolint:gosec // that large there is none

// forget drops the objects. The caller holds mu.
func (t *Trace) forget() {
	t.body, t.answer, t.last, t.stored = nil, nil, nil, nil
	for _, s := range t.stages {
		s.Before, s.After = nil, nil
	}
}

// shrink drops what the trace holds, and returns what its end is told with: nothing
// that a client can make long. The caller holds the recorder's lock.
func (t *Trace) shrink(version uint64) *Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget()
	t.stages, t.deliveries, t.passes = nil, nil, nil
	return &Trace{
		timeline: timeline{start: t.start}, recorder: t.recorder, name: t.name, auditID: t.auditID,
		added: t.added, version: version, object: t.object,
	}
}
