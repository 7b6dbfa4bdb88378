package pipeline

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

func newRecorder(traces int) *Recorder { return NewRecorder(Options{Traces: traces}) }

// begun is a request that goes on.
func begun(r *Recorder, auditID string) *Trace {
	t := &Trace{timeline: timeline{start: time.Now()}, recorder: r, request: Request{Verb: "create"}}
	r.begin(t, auditID)
	return t
}

func (t *Trace) done() *Trace {
	t.finish(nil)
	t.recorder.add(t)
	return t
}

func (t *Trace) withBody(size int) *Trace {
	t.body, t.request.BodyBytes = make([]byte, size), int64(size)
	t.last = &metav1.PartialObjectMetadata{}
	t.stages = append(t.stages, &Stage{Name: Strategy, Outcome: Changed, Before: t.last, After: t.last})
	return t
}

func namesOf(records []*Record) (names []string) {
	for _, r := range records {
		names = append(names, r.Name)
	}
	return names
}

func TestTheOldestTracesGo(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		bodies  []int
		want    []string
	}{
		"by count":                    {Options{Traces: 2}, []int{0, 0, 0, 0}, []string{"c", "d"}},
		"by bytes":                    {Options{Traces: 9, Bytes: 4*overhead - 1}, []int{0, 0, 0, 0}, []string{"b", "c", "d"}},
		"a large one takes more":      {Options{Traces: 9, Bytes: 3 * overhead}, []int{0, 0, 0, 2 << 10}, []string{"d"}},
		"the last one stays anyway":   {Options{Traces: 9, Bytes: 1}, []int{0, 0}, []string{"b"}},
		"by default there is room":    {Options{Traces: 9}, []int{64 << 10, 64 << 10}, []string{"a", "b"}},
		"without objects it is small": {Options{Traces: 9, Bytes: 3 * overhead}, []int{256 << 10, 0}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder(tc.options)
			for i, size := range tc.bodies {
				trace := begun(r, string(rune('a'+i)))
				if size > 0 {
					trace.withBody(size)
				}
				trace.done()
			}
			list, _ := r.List()
			if diff := cmp.Diff(tc.want, namesOf(list)); diff != "" {
				t.Errorf("unexpected traces (-want +got):\n%s", diff)
			}
			if gone := r.Get("a"); (gone != nil) != slices.Contains(tc.want, "a") {
				t.Errorf("got %v for the first one", gone)
			}
		})
	}
}

// Who sends them need not even be recognized.
func TestWordsTakeRoom(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, tweak := range map[string]func(*Trace){
		"user agent": func(t *Trace) { t.request.UserAgent = long },
		"accept":     func(t *Trace) { t.request.Accept = long },
		"parameters": func(t *Trace) { t.request.Parameters = []string{"limit=" + long} },
		"details":    func(t *Trace) { t.step(Authorization, "").detail("by", long) },
		"refusal":    func(t *Trace) { t.answer = []byte(long) },
		"namespace":  func(t *Trace) { t.request.Namespace = long },
		"groups":     func(t *Trace) { t.user = &User{Groups: []string{long}} },
		"warnings":   func(t *Trace) { t.response.Warnings = []string{long} },
		"errors": func(t *Trace) {
			t.step(Validation, "").change(func(s *Stage) { s.Errors = []string{long} })
		},
		"message": func(t *Trace) { t.step(Etcd, "").end(Failed, long) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(9)
			trace := begun(r, "a")
			tweak(trace)
			trace.done()
			if r.bytes < int64(len(long)) {
				t.Errorf("it takes %d bytes", r.bytes)
			}
		})
	}
}

// A client with few bytes to send can have large objects kept.
func TestObjectsTakeRoom(t *testing.T) {
	labels := map[string]string{}
	for i := range 1000 {
		labels[strconv.Itoa(i)] = "a value"
	}
	large := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	const least = 1000 * int64(len("a value"))
	for name, tc := range map[string]struct {
		tweak func(*Trace)
		want  int64
	}{
		"read":    {func(t *Trace) { t.last = large }, least},
		"once":    {func(t *Trace) { t.last = large; t.stored = large }, least},
		"changed": {func(t *Trace) { t.last = large; t.step(Merge, "").show(large.DeepCopy(), large) }, 2 * least},
		"of other kind": {func(t *Trace) {
			t.last = &metav1.Status{Details: &metav1.StatusDetails{Causes: make([]metav1.StatusCause, 1000)}}
		}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(9)
			trace := begun(r, "a")
			tc.tweak(trace)
			trace.done()
			if r.bytes < overhead+tc.want || r.bytes > overhead+100*tc.want {
				t.Errorf("it takes %d bytes, want about %d more than %d", r.bytes, tc.want, overhead)
			}
		})
	}
}

// Nobody need be recognized to send long headers.
func TestTracesThatAreGoneAreSmall(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return int64(memory.HeapAlloc)
	}
	r := NewRecorder(Options{Traces: 64, Bytes: 4 << 20})
	before := heap()
	for i := range 64 {
		long := fmt.Sprintf("%064d", i) + strings.Repeat("x", 1<<20)
		trace := begun(r, long[:64])
		trace.request.UserAgent, trace.request.Namespace = strings.Clone(long), strings.Clone(long)
		trace.user = &User{Name: strings.Clone(long)}
		trace.response.Message = strings.Clone(long)
		trace.done()
	}
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("%d traces, and %d that are gone, take %d MiB", len(r.ring), len(r.removed), grown>>20)
	}
	runtime.KeepAlive(r)
}

func TestALargeTraceLosesItsObjects(t *testing.T) {
	r := newRecorder(2)
	begun(r, "small").withBody(1 << 10).done()
	begun(r, "large").withBody(maxBody).done()
	for name, want := range map[string]bool{"small": true, "large": false} {
		record := r.Get(name)
		if (record.Omitted == "") != want || (record.stages[0].After != nil) != want || (record.replay.body != nil) != want {
			t.Errorf("%s: omitted %q, and the object is %v", name, record.Omitted, record.stages[0].After)
		}
	}
	if omitted := r.Get("large").Omitted; !strings.Contains(omitted, "1024") {
		t.Errorf("got %q, which does not tell the bound", omitted)
	}
}

func TestNames(t *testing.T) {
	r := newRecorder(9)
	for name, tc := range map[string]struct {
		auditID string
		own     bool
	}{
		"the audit ID":            {"cf1b8d4e-1b8e-4a54-8ac5-0d40b8b5a2c1", false},
		"none":                    {"", true},
		"not a name":              {"Not/A Name", true},
		"longer than a name":      {strings.Repeat("a", 254), true},
		"that of another request": {"taken", true},
	} {
		t.Run(name, func(t *testing.T) {
			begun(r, "taken")
			record := r.Get(begun(r, tc.auditID).done().name)
			if record.AuditID != tc.auditID {
				t.Errorf("got the audit ID %q", record.AuditID)
			}
			if (record.Name != tc.auditID) != tc.own || len(utilvalidation.IsDNS1123Subdomain(record.Name)) > 0 {
				t.Errorf("got the name %q", record.Name)
			}
		})
	}
}

func TestARequestIsNotThereUntilItIsOver(t *testing.T) {
	r := newRecorder(9)
	trace := begun(r, "a")
	if list, _ := r.List(); len(list) > 0 || r.Get("a") != nil {
		t.Errorf("got %v", list)
	}
	trace.done()
	if list, _ := r.List(); len(list) != 1 || r.Get("a") == nil {
		t.Errorf("got %v", list)
	}
}

func TestChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after func(*Recorder)
		want          []string
	}{
		"nothing": {func(r *Recorder) { begun(r, "a").done() }, func(*Recorder) {}, nil},
		"added": {func(r *Recorder) { begun(r, "a").done() }, func(r *Recorder) { begun(r, "b").done() },
			[]string{"0 b"}},
		"in order": {func(r *Recorder) { begun(r, "a").done() }, func(r *Recorder) {
			begun(r, "b").done()
			r.touch(r.names["a"])
		}, []string{"0 b", "1 a"}},
		"new ones in the order in which the requests ended": {func(*Recorder) {}, func(r *Recorder) {
			begun(r, "a").done()
			begun(r, "b").done()
			r.touch(r.names["a"])
		}, []string{"0 a", "0 b"}},
		"another of the name of one that is gone": {func(r *Recorder) { begun(r, "a").done(); begun(r, "b").done() }, func(r *Recorder) {
			begun(r, "c").done()
			begun(r, "a").done()
		}, []string{"0 c", "2 a", "0 a", "2 b"}},
		"several are one": {func(r *Recorder) { begun(r, "a").done() }, func(r *Recorder) {
			r.touch(r.names["a"])
			r.touch(r.names["a"])
		}, []string{"1 a"}},
		"added and modified": {func(*Recorder) {}, func(r *Recorder) { r.touch(begun(r, "a").done()) },
			[]string{"0 a"}},
		"removed": {func(r *Recorder) { begun(r, "a").done(); begun(r, "b").done() }, func(r *Recorder) { begun(r, "c").done() },
			[]string{"0 c", "2 a"}},
		"what was never seen is not removed": {func(r *Recorder) { begun(r, "a").done() }, func(r *Recorder) {
			begun(r, "b").done()
			begun(r, "c").done()
			begun(r, "d").done()
		}, []string{"0 c", "2 a", "0 d"}},
		"nothing becomes of what is gone": {func(r *Recorder) { begun(r, "a").done(); begun(r, "b").done(); begun(r, "c").done() }, func(r *Recorder) {
			r.touch(r.removed[0])
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(2)
			tc.before(r)
			_, version := r.List()
			tc.after(r)
			changes, next, err := r.Changes(version)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				got = append(got, fmt.Sprint(int(c.Type), " ", c.Record.Name))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected changes (-want +got):\n%s", diff)
			}
			// Whoever was told a part goes on from there and misses nothing.
			for i, c := range changes {
				rest, _, err := r.Changes(c.Record.Version)
				if err != nil || len(rest) < len(changes)-i-1 {
					t.Errorf("after %s come %d changes (%v), want at least %d", c.Record.Name, len(rest), err, len(changes)-i-1)
				}
				if c.Record.Version <= version {
					t.Errorf("version %d follows %d", c.Record.Version, version)
				}
				version = c.Record.Version
			}
			if again, same, err := r.Changes(next); len(again) > 0 || same != next || err != nil {
				t.Errorf("then there are %v, up to %d after %d: %v", again, same, next, err)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	r := newRecorder(1)
	_, first := r.List()
	for name, want := range map[uint64]error{0: ErrExpired, first - 1: ErrExpired, first: nil, first + 1: ErrExpired} {
		if _, _, err := r.Changes(name); !errors.Is(err, want) {
			t.Errorf("%d, of %d: got %v, want %v", name, first, err, want)
		}
	}
	begun(r, "a").done()
	_, known := r.List()
	begun(r, "b").done() // a goes, and is remembered
	if _, _, err := r.Changes(first); err != nil {
		t.Error(err)
	}
	begun(r, "c").done() // b goes, and a is forgotten
	if _, _, err := r.Changes(known); !errors.Is(err, ErrExpired) {
		t.Errorf("got %v for a version before what is forgotten", err)
	}
	if other, _ := NewRecorder(Options{Traces: 1}).List(); len(other) > 0 {
		t.Errorf("a new recorder has %v", other)
	}
}

func TestChanged(t *testing.T) {
	r := newRecorder(2)
	trace := begun(r, "a").done()
	_, version := r.List()
	if !closed(r.Changed(version - 1)) {
		t.Error("what is past is not told")
	}
	waits := r.Changed(version)
	if closed(waits) || closed(r.Changed(version)) {
		t.Error("nothing has changed, and it is told")
	}
	r.mu.Lock()
	r.touch(trace)
	r.mu.Unlock()
	if !closed(waits) {
		t.Error("a change is not told")
	}
	if _, version = r.List(); closed(r.Changed(version)) {
		t.Error("the same change is told again")
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestNothingIsRecordedWithoutARecorder(t *testing.T) {
	var r *Recorder
	network := &metav1.ObjectMeta{Name: "a"}
	r.Enqueued(nameOf(network), "ADDED")
	ctx, pass := r.StartPass(t.Context(), network)
	if Shown(ctx) || pass != nil {
		t.Errorf("got a pass %v", pass)
	}
	Note(ctx, Plan, "nothing")
	pass.End("done", true)
	r.Gone(nameOf(network))
}
