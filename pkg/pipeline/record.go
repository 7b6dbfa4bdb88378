package pipeline

import (
	"slices"
	"time"
)

// Record is what a recorder has of one request. What is in it is not to be
// changed.
type Record struct {
	Name, AuditID, Replica string
	// Version counts changes in one life of a recorder.
	Version  uint64
	Start    time.Time
	Request  Request
	User     *User // nil: nobody was recognized
	Response Response
	Object   Object
	// Cause is the name of the trace of the write that this request follows from.
	Cause         string
	Passes        []PassRecord
	PassesDropped int
	// Omitted says why there are no objects.
	Omitted string

	stages, deliveries []Stage
	replay             replay
}

// record returns the trace as it is now. The caller holds the recorder's lock.
func (t *Trace) record() *Record {
	r := &Record{
		Name: t.name, AuditID: t.auditID, Replica: t.recorder.replica, Version: t.version, Start: t.start,
		Cause: t.cause, PassesDropped: t.passesDropped, Omitted: t.omitted,
		deliveries: slices.Clone(t.deliveries),
		stages:     t.copyStages(),
	}
	for _, p := range t.passes {
		r.Passes = append(r.Passes, p.record(t.start))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Request, r.User, r.Response, r.Object = t.request, t.user, t.response, t.object
	r.replay = replay{recorder: t.recorder, body: t.body, last: t.last, stored: t.stored, removed: t.removed}
	return r
}

// Stages returns the way of the request, with the steps done again that no hook
// shows.
func (r *Record) Stages() []Stage {
	stages := r.replay.stages(r)
	return append(stages, r.deliveries...)
}
