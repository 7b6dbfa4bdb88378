package requesttrace

import (
	"context"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

const (
	// gathering is how long changes are gathered: those of one request come
	// within moments of each other, and are to be one event.
	gathering = 100 * time.Millisecond
	// bookmarkPeriod is that of kube-apiserver.
	bookmarkPeriod = time.Minute
)

// watcher pulls changes when its reader is ready for them: a slow one misses
// states in between, and keeps nobody waiting.
type watcher struct {
	*Storage
	selected  func(*pipeline.Record) bool
	bookmarks bool
	version   uint64 // all up to it has been told, or is in changes
	changes   []pipeline.Change
	// announce: a bookmark tells where changes end that were there before.
	announce bool

	events chan watch.Event
	stop   context.CancelFunc
}

// Watch tells what changes after the version asked for. Without one it begins
// with what is there.
func (s *Storage) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	asked, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		Storage:   s,
		selected:  selector(options),
		bookmarks: options.AllowWatchBookmarks,
		events:    make(chan watch.Event),
	}
	initial := asked == 0
	if options.SendInitialEvents != nil {
		initial = *options.SendInitialEvents
		w.announce = initial && w.bookmarks
	}
	if initial || asked == 0 {
		var records []*pipeline.Record
		records, w.version = s.recorder.List()
		if asked > w.version {
			return nil, expired()
		}
		for _, record := range records {
			if initial {
				w.changes = append(w.changes, pipeline.Change{Type: pipeline.Added, Record: record})
			}
		}
	} else if w.changes, w.version, err = s.recorder.Changes(asked); err != nil {
		return nil, expired()
	}
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

// Stop ends the watch. It may be called more than once.
func (w *watcher) Stop() { w.stop() }

// ResultChan returns the events; it is closed when the watch ends.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) run(ctx context.Context) {
	defer close(w.events)
	defer w.stop()
	var bookmark <-chan time.Time
	if w.bookmarks {
		bookmark = time.Tick(bookmarkPeriod)
	}
	for {
		if !w.tell(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-bookmark:
			if !w.send(ctx, w.bookmark()) {
				return
			}
			continue
		case <-w.recorder.Changed(w.version):
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gathering):
		}
		var err error
		if w.changes, w.version, err = w.recorder.Changes(w.version); err != nil {
			w.send(ctx, watch.Event{Type: watch.Error, Object: &expired().ErrStatus})
			return
		}
	}
}

// tell sends what has changed. It returns false when the watch has ended.
func (w *watcher) tell(ctx context.Context) bool {
	for _, change := range w.changes {
		// Informers ask for bookmarks, and must learn what is gone. Who looks on
		// with kubectl would read one more line for each new request, about one
		// that nobody asked for.
		if change.Type == pipeline.Removed && !w.bookmarks || !w.selected(change.Record) {
			continue
		}
		if !w.send(ctx, watch.Event{Type: eventTypes[change.Type], Object: w.trace(change.Record)}) {
			return false
		}
	}
	w.changes = nil // a trace may be large
	if !w.announce {
		return true
	}
	w.announce = false
	end := w.bookmark()
	end.Object.(*pipelinev1alpha1.RequestTrace).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return w.send(ctx, end)
}

var eventTypes = map[pipeline.ChangeType]watch.EventType{
	pipeline.Added:    watch.Added,
	pipeline.Modified: watch.Modified,
	pipeline.Removed:  watch.Deleted,
}

func (w *watcher) bookmark() watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &pipelinev1alpha1.RequestTrace{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: formatVersion(w.version)},
	}}
}

func (w *watcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case <-ctx.Done():
		return false
	case w.events <- event:
		return true
	}
}
