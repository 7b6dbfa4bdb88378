package pipeline

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxEarly bounds what is kept of events whose write is not known yet: etcd
// tells the watches before it has answered the writer.
const maxEarly = 256

// joins are how later events find the trace they belong to. The recorder's lock
// guards them.
type joins struct {
	writes     map[string]*Trace     // by the version they made
	latest     map[types.UID][]write // those of the object itself, the oldest first
	deliveries []delivery            // early
	passes     []*Pass               // early
}

// write is what a request made of an object.
type write struct {
	trace  *Trace
	object Object
}

// delivery is an event that was handed to a watch.
type delivery struct {
	version string
	at      time.Time
	opened  time.Time // the watch
	stage   Stage
}

// unlink forgets a trace.
func (j *joins) unlink(t *Trace) {
	for _, version := range t.versions {
		delete(j.writes, version)
	}
	for _, uid := range t.wroteTo {
		rest := slices.DeleteFunc(j.latest[uid], func(w write) bool { return w.trace == t })
		if j.latest[uid] = rest; len(rest) == 0 {
			delete(j.latest, uid)
		}
	}
}

// wrote notes what a request made of an object.
func (r *Recorder) wrote(t *Trace, o Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[t.name] != t {
		return // it took so long that its trace is gone
	}
	t.versions = append(t.versions, o.Version)
	r.joins.writes[o.Version] = t
	r.joins.deliveries = slices.DeleteFunc(r.joins.deliveries, func(d delivery) bool {
		if d.version == o.Version {
			r.deliver(t, d)
		}
		return d.version == o.Version
	})
	if t.request.Subresource != "" {
		if cause := r.joins.cause(o); cause != nil && t.cause == "" {
			t.cause = cause.name
		}
		return
	}
	belongs := func(p *Pass) bool {
		return p.object.UID == o.UID && p.object.Generation == o.Generation && !older(p.object.Version, o.Version)
	}
	r.joins.passes = slices.DeleteFunc(r.joins.passes, func(p *Pass) bool {
		if !belongs(p) {
			return false
		}
		if own := p.trace; own != nil {
			own.cause = t.name
		}
		r.attach(t, p)
		return true
	})
	// Until now they seemed to follow from the write before.
	if before := r.joins.cause(o); before != nil && before != t {
		for _, p := range slices.Clone(before.passes) {
			if belongs(p) {
				r.attach(t, p)
			}
		}
	}
	t.wroteTo = append(t.wroteTo, o.UID)
	r.joins.latest[o.UID] = append(r.joins.latest[o.UID], write{t, o})
}

// cause returns the write that an object in this state goes back to, if it is
// known.
func (j *joins) cause(o Object) *Trace {
	for _, w := range slices.Backward(j.latest[o.UID]) {
		if !older(o.Version, w.object.Version) && w.object.Generation == o.Generation {
			return w.trace
		}
	}
	return nil
}

func older(version, other string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(other, 10, 64)
	return errA == nil && errB == nil && a < b
}

// delivered joins an event with the write it tells of.
func (r *Recorder) delivered(d delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.joins.writes[d.version]; t != nil {
		r.deliver(t, d)
		return
	}
	if r.joins.deliveries = append(r.joins.deliveries, d); len(r.joins.deliveries) > maxEarly {
		r.joins.deliveries = slices.Delete(r.joins.deliveries, 0, 1)
	}
}

func (r *Recorder) deliver(t *Trace, d delivery) {
	// A watch that was opened later is told of the past.
	if d.opened.After(t.start) || len(t.deliveries) >= maxDeliveries {
		return
	}
	d.stage.Start = d.at.Sub(t.start)
	t.deliveries = append(t.deliveries, d.stage)
	r.touch(t)
}

// attach gives a pass to the write that caused it, and takes it from where it
// was.
func (r *Recorder) attach(t *Trace, p *Pass) {
	if was := p.trace; was != nil {
		was.passes = slices.DeleteFunc(was.passes, func(other *Pass) bool { return other == p })
		r.touch(was)
	}
	p.trace = t
	if len(t.passes) >= maxPasses {
		t.passesDropped++
		t.passes = slices.Delete(t.passes, 1, 2) // the first one tells most
	}
	t.passes = append(t.passes, p)
	r.touch(t)
}

// link takes a request for the work of a pass that says so.
func (r *Recorder) link(t *Trace, cause string) {
	if cause == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[cause] != nil {
		t.cause = cause
		return
	}
	// What caused the pass is not known here: it was asked of another replica.
	// Then its own first write shows it.
	if i := slices.IndexFunc(r.joins.passes, func(p *Pass) bool { return p.id == cause && p.trace == nil }); i >= 0 {
		r.attach(t, r.joins.passes[i])
	}
}

// id is what a trace is called, once it has an audit ID.
func (t *Trace) id() string {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	return t.name
}
