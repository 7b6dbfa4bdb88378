package pipeline

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Each of these would not end, and synctest would say so, if the watcher did not.
func TestWatcher(t *testing.T) {
	network := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "net", ResourceVersion: version}}
	}
	events := []watch.Event{
		{Type: watch.Added, Object: network("1")},
		{Type: watch.Modified, Object: network("2")},
		{Type: watch.Modified, Object: network("3")},
		{Type: watch.Bookmark, Object: network("4")},
		{Type: watch.Deleted, Object: network("5")},
		{Type: watch.Error, Object: &metav1.Status{Message: "too old"}},
	}
	start := func(r *Recorder, inner watch.Interface) (*Trace, watch.Interface) {
		trace := begun(r, "watch")
		trace.user = &User{Name: "bob"}
		return trace, newWatcher(inner, trace)
	}
	t.Run("hands on everything", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder(9)
			inner := watch.NewFakeWithChanSize(len(events), false)
			trace, w := start(r, inner)
			var got []watch.Event
			for _, e := range events {
				inner.Action(e.Type, e.Object)
				got = append(got, <-w.ResultChan())
			}
			if diff := cmp.Diff(events, got); diff != "" {
				t.Errorf("unexpected events (-want +got):\n%s", diff)
			}
			inner.Stop()
			if e, open := <-w.ResultChan(); open {
				t.Errorf("it goes on with %v", e)
			}
			synctest.Wait()
			var told []string
			for _, d := range r.joins.deliveries {
				told = append(told, d.version+" "+d.stage.Subject)
			}
			if diff := cmp.Diff([]string{"1 ADDED to bob", "2 MODIFIED to bob", "3 MODIFIED to bob", "5 DELETED to bob"}, told); diff != "" {
				t.Errorf("unexpected deliveries (-want +got):\n%s", diff)
			}
			stage := r.Get(trace.done().name).stages[0]
			if diff := cmp.Diff([]Detail{{"ADDED", "1"}, {"MODIFIED", "2"}, {"BOOKMARK", "1"}, {"DELETED", "1"}, {"ERROR", "1"}}, stage.Details); diff != "" {
				t.Errorf("unexpected details (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("ends when nobody reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder(9)
			inner := watch.NewFakeWithChanSize(len(events), false)
			for _, e := range events {
				inner.Action(e.Type, e.Object)
			}
			_, w := start(r, inner)
			synctest.Wait() // it waits for a reader
			w.Stop()
			w.Stop()
			synctest.Wait()
			if e, open := <-w.ResultChan(); open {
				t.Errorf("it goes on with %v", e)
			}
			if len(r.joins.deliveries) > 0 {
				t.Errorf("nobody was told, and there are %v", r.joins.deliveries)
			}
		})
	})
	t.Run("ends with the inner watch and its request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder(9)
			inner := watch.NewFake()
			trace, w := start(r, inner)
			trace.done() // what comes now is too late, and does no harm
			go inner.Add(network("1"))
			<-w.ResultChan()
			inner.Stop()
			if _, open := <-w.ResultChan(); open {
				t.Error("it goes on")
			}
		})
	})
}
