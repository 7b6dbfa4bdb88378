package pipeline

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher tells the traces of writes to whom their events are handed.
type watcher struct {
	inner  watch.Interface
	t      *Trace
	result chan watch.Event
	stop   func() // once
	done   chan struct{}
}

func newWatcher(inner watch.Interface, t *Trace) watch.Interface {
	w := &watcher{inner: inner, t: t, result: make(chan watch.Event), done: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { close(w.done) })
	t.mu.Lock()
	user := t.user
	t.mu.Unlock()
	reader := "somebody"
	if user != nil {
		reader = user.Name
	}
	go w.pass(t.step(Watch, "events"), reader)
	return w
}

func (w *watcher) Stop() {
	w.stop() // nobody reads any more
	w.inner.Stop()
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// pass hands on each event, and ends with the inner watch.
func (w *watcher) pass(s *step, reader string) {
	defer close(w.result)
	defer s.end(Passed, "")
	for event := range w.inner.ResultChan() {
		s.count(string(event.Type)) // before the reader may end the request
		version := ""
		if accessor, err := meta.Accessor(event.Object); err == nil {
			version = accessor.GetResourceVersion()
		}
		select {
		case w.result <- event:
		case <-w.done:
			continue
		}
		if version == "" || event.Type == watch.Bookmark || event.Type == watch.Error {
			continue
		}
		w.t.recorder.delivered(delivery{
			version: version,
			at:      time.Now(),
			opened:  w.t.start,
			stage: Stage{
				Name: Watch, Subject: string(event.Type) + " to " + reader, Outcome: Passed, Duration: Unknown,
				Details: []Detail{{"watch", w.t.id()}, {"client", w.t.request.UserAgent}, {"revision", version}},
			},
		})
	}
}
