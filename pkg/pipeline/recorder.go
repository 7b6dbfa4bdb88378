// Package pipeline records what happens to a request on its way through an API
// server on k8s.io/apiserver, and to an object in a controller afterwards. It
// uses public hooks of the library alone; where there is none, it does the step
// again with what it kept, or says that it saw nothing.
package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	restful "github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
)

// ErrExpired is the answer to a version that this recorder does not know, or
// not any more.
var ErrExpired = errors.New("version is of another life of the server, or too old")

// Options of a Recorder.
type Options struct {
	// Traces is how many requests are kept. Above 0.
	Traces int
	// Bytes is about how much memory they may take; the oldest go first.
	// Default 64 MiB.
	Bytes int64
	// Group is that of the requests to record.
	Group string
	// StoredVersion is how objects of the group are kept.
	StoredVersion schema.GroupVersion
	// Scheme and Codecs do again what no hook shows.
	Scheme *runtime.Scheme
	Codecs serializer.CodecFactory
}

// Recorder keeps the last requests. Its methods are safe for concurrent use,
// and those that record do nothing on a nil Recorder.
type Recorder struct {
	Options
	replica string // tells this server from others
	routes  atomic.Pointer[restful.Container]

	mu      sync.Mutex
	version uint64 // of the last change
	first   uint64 // of the first change that is remembered
	bytes   int64
	ring    []*Trace // the oldest first
	names   map[string]*Trace
	removed []*Trace // the oldest first
	changed chan struct{}

	joins joins
	queue map[cache.ObjectName]queued
}

// NewRecorder returns an empty recorder. Its versions begin at the time in
// microseconds, so that none of another life is among them.
func NewRecorder(o Options) *Recorder {
	if o.Bytes == 0 {
		o.Bytes = 64 << 20
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &Recorder{
		Options: o,
		replica: fmt.Sprintf("%s_%d", host, os.Getpid()), // there may be two on one host
		version: uint64(time.Now().UnixMicro()),
		names:   map[string]*Trace{},
		joins:   joins{writes: map[string]*Trace{}, latest: map[types.UID][]write{}},
		queue:   map[cache.ObjectName]queued{},
	}
	r.first = r.version
	return r
}

// Get returns the trace of that name, or nil.
func (r *Recorder) Get(name string) *Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.names[name]; t != nil && t.added != 0 {
		return t.record()
	}
	return nil
}

// List returns all traces, the oldest first, and the version of the list.
func (r *Recorder) List() ([]*Record, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*Record, len(r.ring))
	for i, t := range r.ring {
		list[i] = t.record()
	}
	return list, r.version
}

// Change is a trace that came, changed or went.
type Change struct {
	Type   ChangeType
	Record *Record
}

// ChangeType tells what became of a trace.
type ChangeType int

// What can become of a trace.
const (
	Added ChangeType = iota
	Modified
	Removed
)

// Changes returns what changed after a version, and the version it leads to;
// several changes of one trace are one. They come in the order in which they
// happened, and each record has a version from which Changes tells all that comes
// after it here: a trace that is new has that of the end of its request, which is
// lower than with Get where it changed again. The error is ErrExpired.
func (r *Recorder) Changes(after uint64) ([]Change, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after < r.first || after > r.version {
		return nil, 0, ErrExpired
	}
	var changes []Change
	for _, t := range r.ring {
		switch {
		case t.added > after:
			record := t.record()
			record.Version = t.added
			changes = append(changes, Change{Added, record})
		case t.version > after:
			changes = append(changes, Change{Modified, t.record()})
		}
	}
	for _, removed := range r.removed {
		// Who never heard of it need not hear that it is gone.
		if removed.version > after && removed.added <= after {
			changes = append(changes, Change{Removed, removed.record()})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Record.Version, b.Record.Version) })
	return changes, r.version, nil
}

// Changed returns a channel that is closed when something changes after a
// version.
func (r *Recorder) Changed(after uint64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after != r.version {
		now := make(chan struct{})
		close(now)
		return now
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// next counts a change and wakes who waits for one. The caller holds mu.
func (r *Recorder) next() uint64 {
	r.version++
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	return r.version
}

// begin gives a trace its name: the audit ID, where that is a name and no other
// has it.
func (r *Recorder) begin(t *Trace, auditID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.name != "" {
		return
	}
	auditID = strings.Clone(auditID) // it may be the beginning of a long header
	t.auditID, t.name = auditID, auditID
	if len(utilvalidation.IsDNS1123Subdomain(auditID)) > 0 || r.names[auditID] != nil {
		t.name = string(uuid.NewUUID())
	}
	r.names[t.name] = t
}

// add keeps a trace whose request is over.
func (r *Recorder) add(t *Trace) {
	size, omitted := t.measure()
	r.mu.Lock()
	defer r.mu.Unlock()
	t.size, t.omitted = size, omitted
	r.bytes += size
	r.ring = append(r.ring, t)
	t.added = r.next()
	t.version = t.added
	for len(r.ring) > r.Traces || len(r.ring) > 1 && r.bytes > r.Bytes {
		r.dropOldest()
	}
	tracesBytes.Set(float64(r.bytes))
}

// dropOldest keeps of a trace what a watch has to tell of its end. The caller
// holds mu.
func (r *Recorder) dropOldest() {
	t := r.ring[0]
	r.ring = slices.Delete(r.ring, 0, 1)
	r.bytes -= t.size
	delete(r.names, t.name)
	r.joins.unlink(t)
	r.removed = append(r.removed, t.shrink(r.next()))
	if len(r.removed) > r.Traces {
		r.first = r.removed[0].version
		r.removed = slices.Delete(r.removed, 0, 1)
	}
	tracesDropped.Inc()
}

// touch counts a change of a trace, if it is in the ring. The caller holds mu.
func (r *Recorder) touch(t *Trace) {
	if t.added != 0 && r.names[t.name] == t {
		t.version = r.next()
	}
}
