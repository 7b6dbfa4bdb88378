package pipeline

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func object(uid types.UID, generation int64, version string) Object {
	return Object{Namespace: "default", Name: "net", UID: uid, Generation: generation, Version: version}
}

// event is handed to a watch that was opened a minute ago.
func event(version, subject string) delivery {
	return delivery{version: version, at: time.Now(), opened: time.Now().Add(-time.Minute), stage: Stage{Name: Watch, Subject: subject}}
}

func subjects(stages []Stage) (list []string) {
	for _, s := range stages {
		list = append(list, s.Subject)
	}
	return list
}

func TestDeliveries(t *testing.T) {
	opened := func(d delivery, at time.Time) delivery {
		d.opened = at
		return d
	}
	for name, tc := range map[string]struct {
		early, late []delivery
		want        []string
	}{
		"late":                        {late: []delivery{event("7", "one"), event("7", "two")}, want: []string{"one", "two"}},
		"before the write is known":   {early: []delivery{event("7", "one")}, late: []delivery{event("7", "two")}, want: []string{"one", "two"}},
		"of another write":            {early: []delivery{event("6", "one")}, late: []delivery{event("8", "two")}},
		"to a watch that came later":  {late: []delivery{opened(event("7", "one"), time.Now().Add(time.Minute))}},
		"early, and it came later":    {early: []delivery{opened(event("7", "one"), time.Now().Add(time.Minute))}},
		"more than are kept, but one": {early: events(maxEarly), want: []string{"0"}},
		"more than are kept":          {early: events(maxEarly + 1)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(9)
			trace := begun(r, "a")
			for _, d := range tc.early {
				r.delivered(d)
			}
			r.wrote(trace, object("uid", 1, "7"))
			trace.done()
			for _, d := range tc.late {
				r.delivered(d)
			}
			if diff := cmp.Diff(tc.want, subjects(r.Get("a").deliveries)); diff != "" {
				t.Errorf("unexpected deliveries (-want +got):\n%s", diff)
			}
		})
	}
}

// events are many: the first is of version 7, the others of later ones.
func events(n int) (list []delivery) {
	for i := range n {
		list = append(list, event(strconv.Itoa(7+i), strconv.Itoa(i)))
	}
	return list
}

func TestDeliveriesAreBounded(t *testing.T) {
	r := newRecorder(9)
	trace := begun(r, "a")
	r.wrote(trace, object("uid", 1, "7"))
	trace.done()
	for i := range maxDeliveries + 5 {
		r.delivered(event("7", strconv.Itoa(i)))
	}
	if got := r.Get("a").deliveries; len(got) != maxDeliveries || got[0].Subject != "0" {
		t.Errorf("got %d, the first %q", len(got), got[0].Subject)
	}
}

func TestADeliveryIsAChange(t *testing.T) {
	r := newRecorder(9)
	trace := begun(r, "a")
	r.wrote(trace, object("uid", 1, "7"))
	trace.done()
	_, version := r.List()
	r.delivered(event("7", "one"))
	if changes, _, err := r.Changes(version); err != nil || len(changes) != 1 || changes[0].Type != Modified {
		t.Errorf("got %v: %v", changes, err)
	}
}

func TestAnotherWriteIsNoChange(t *testing.T) {
	r := newRecorder(9)
	r.wrote(begun(r, "a").done(), object("uid", 1, "7"))
	_, version := r.List()
	r.wrote(begun(r, "b"), object("uid", 1, "8"))
	if changes, _, err := r.Changes(version); err != nil || len(changes) > 0 {
		t.Errorf("got %v: %v", changes, err)
	}
}

func TestWhatIsGoneIsNotFound(t *testing.T) {
	r := newRecorder(1)
	trace := begun(r, "a") // of many objects, as a deletion of a collection is
	for i := range 3 {
		r.wrote(trace, object(types.UID(fmt.Sprint("uid-", i)), 1, strconv.Itoa(7+i)))
	}
	trace.done()
	begun(r, "b").done()
	if len(r.joins.writes) > 0 || len(r.joins.latest) > 0 {
		t.Errorf("of a trace that is gone there are still %v and %v", r.joins.writes, r.joins.latest)
	}
	r.delivered(event("7", "one"))
	if got := r.removed[0].deliveries; len(got) > 0 {
		t.Errorf("it is told of %v", got)
	}
}

func TestAWriteAfterTheEndIsNotKept(t *testing.T) {
	r := newRecorder(1)
	trace := begun(r, "a").done() // it ran into its timeout
	begun(r, "b").done()
	r.wrote(trace, object("uid", 1, "7"))
	if len(r.joins.writes) > 0 || len(r.joins.latest) > 0 {
		t.Errorf("there are %v and %v", r.joins.writes, r.joins.latest)
	}
}

func TestCauseOfAWriteOfTheStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		status Object
		want   string
	}{
		"of the newest spec":      {object("uid", 2, "20"), "second"},
		"of the spec before":      {object("uid", 1, "20"), "first"},
		"of a spec nobody wrote":  {object("uid", 3, "20"), ""},
		"of another object":       {object("other", 2, "20"), ""},
		"older than what it says": {object("uid", 2, "8"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(9)
			for name, o := range map[string]Object{"first": object("uid", 1, "7"), "second": object("uid", 2, "9")} {
				trace := begun(r, name)
				r.wrote(trace, o)
				trace.done()
			}
			trace := begun(r, "status")
			trace.request.Subresource = "status"
			r.wrote(trace, tc.status)
			trace.done()
			if got := r.Get("status").Cause; got != tc.want {
				t.Errorf("got the cause %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLink(t *testing.T) {
	r := newRecorder(9)
	begun(r, "write").done()
	for cause, want := range map[string]string{"write": "write", "made up": "", "": ""} {
		trace := begun(r, "")
		r.link(trace, cause)
		if got := r.Get(trace.done().name).Cause; got != want {
			t.Errorf("%q: got the cause %q", cause, got)
		}
	}
}

// A write that changes no spec is known later than the passes that follow from
// it: all of them move to it, and the write before has no cause for that.
func TestPassesMoveToTheirWrite(t *testing.T) {
	r := newRecorder(9)
	before := begun(r, "before")
	r.wrote(before, object("uid", 2, "9"))
	for _, result := range []string{"one", "two", "three"} {
		r.look(t, object("uid", 2, "11"), result)
	}
	after := begun(r, "after")
	r.wrote(after, object("uid", 2, "11"))
	if diff := cmp.Diff([]string{"one", "two", "three"}, results(r.Get(after.done().name))); diff != "" {
		t.Errorf("passes of the write (-want +got):\n%s", diff)
	}
	record := r.Get(before.done().name)
	if len(record.Passes) > 0 || record.Cause != "" {
		t.Errorf("the write before has %d passes and cause %q, want neither", len(record.Passes), record.Cause)
	}
}
