package requesttrace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// pass has time go by on the clock of a bubble, which stands still while anything
// can go on.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // on that clock nobody waits
	synctest.Wait()
}

func (f *fixture) watch(options metainternalversion.ListOptions) watch.Interface {
	f.t.Helper()
	w, err := f.Watch(f.t.Context(), &options)
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

// told returns what a watch has to tell now, as TYPE NAME.
func told(t *testing.T, w watch.Interface) (events []string) {
	t.Helper()
	for {
		synctest.Wait()
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return append(events, "end")
			}
			text := string(event.Type)
			if object, err := meta.Accessor(event.Object); err == nil && object.GetName() != "" {
				text += " " + object.GetName()
			}
			events = append(events, text)
		default:
			return events
		}
	}
}

func wants(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, told(t, w)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestWatchBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		tweak  func(*metainternalversion.ListOptions, uint64)
		before []string // told of what was there: b, c
		after  []string // told of d
	}{
		"with what is there": {
			before: []string{"ADDED b", "ADDED c"}, after: []string{"ADDED d"},
		},
		"with what is there, at any version": {
			tweak:  func(o *metainternalversion.ListOptions, _ uint64) { o.ResourceVersion = "0" },
			before: []string{"ADDED b", "ADDED c"}, after: []string{"ADDED d"},
		},
		"after the version of a list": {
			tweak: func(o *metainternalversion.ListOptions, now uint64) { o.ResourceVersion = formatVersion(now) },
			after: []string{"ADDED d"},
		},
		"after an earlier version, b being there": {
			tweak:  func(o *metainternalversion.ListOptions, now uint64) { o.ResourceVersion = formatVersion(now - 2) },
			before: []string{"ADDED c"}, after: []string{"ADDED d"},
		},
		"as an informer": {
			tweak: func(o *metainternalversion.ListOptions, _ uint64) {
				o.AllowWatchBookmarks, o.SendInitialEvents = true, new(true)
				o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
			},
			before: []string{"ADDED b", "ADDED c", "BOOKMARK"}, after: []string{"ADDED d", "DELETED b"},
		},
		"as an informer that comes again": {
			tweak: func(o *metainternalversion.ListOptions, now uint64) {
				o.AllowWatchBookmarks, o.SendInitialEvents = true, new(true)
				o.ResourceVersionMatch, o.ResourceVersion = metav1.ResourceVersionMatchNotOlderThan, formatVersion(now-1)
			},
			before: []string{"ADDED b", "ADDED c", "BOOKMARK"}, after: []string{"ADDED d", "DELETED b"},
		},
		"with what is there, as asked for, and no bookmark": {
			tweak:  func(o *metainternalversion.ListOptions, _ uint64) { o.SendInitialEvents = new(true) },
			before: []string{"ADDED b", "ADDED c"}, after: []string{"ADDED d"},
		},
		"with nothing, as asked for": {
			tweak: func(o *metainternalversion.ListOptions, _ uint64) { o.SendInitialEvents = new(false) },
			after: []string{"ADDED d"},
		},
		"for one name": {
			tweak: func(o *metainternalversion.ListOptions, _ uint64) {
				o.FieldSelector, o.AllowWatchBookmarks = fields.OneTermEqualSelector("metadata.name", "b"), true
			},
			before: []string{"ADDED b"}, after: []string{"DELETED b"},
		},
		"for a label, which none has": {
			tweak: func(o *metainternalversion.ListOptions, _ uint64) { o.LabelSelector = mustParse(t, "a=b") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 2)
				f.request("a", "b", "c")
				var options metainternalversion.ListOptions
				if tc.tweak != nil {
					tc.tweak(&options, f.version())
				}
				w := f.watch(options)
				defer w.Stop()
				wants(t, w, tc.before...)
				f.request("d")
				wants(t, w)
				pass(gathering)
				wants(t, w, tc.after...)
			})
		})
	}
}

func TestAWatchThatCannotBegin(t *testing.T) {
	f := newFixture(t, 1)
	f.request("a")
	now := f.version()
	for name, tc := range map[string]struct {
		options metainternalversion.ListOptions
		want    metav1.StatusReason
	}{
		"after a version of an earlier life":      {metainternalversion.ListOptions{ResourceVersion: "7"}, metav1.StatusReasonExpired},
		"after a version of another replica":      {metainternalversion.ListOptions{ResourceVersion: formatVersion(now + 1)}, metav1.StatusReasonExpired},
		"with what is there at another replica's": {metainternalversion.ListOptions{ResourceVersion: formatVersion(now + 1), SendInitialEvents: new(true)}, metav1.StatusReasonExpired},
		"after what is no version":                {metainternalversion.ListOptions{ResourceVersion: "x"}, metav1.StatusReasonBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := f.Watch(t.Context(), &tc.options)
			if apierrors.ReasonForError(err) != tc.want {
				t.Errorf("got %v and error %v, want %s", w, err, tc.want)
			}
		})
	}
}

func TestChangesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		w := f.watch(metainternalversion.ListOptions{})
		defer w.Stop()
		f.request("a")
		wants(t, w)
		f.request("b") // a is gone before anybody heard of it
		pass(gathering)
		wants(t, w, "ADDED b")
		pass(gathering)
		wants(t, w)
	})
}

func TestASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2)
		slow, quick := f.watch(metainternalversion.ListOptions{}), f.watch(metainternalversion.ListOptions{})
		defer slow.Stop()
		defer quick.Stop()
		for _, name := range []string{"a", "b", "c"} {
			f.request(name)
			pass(gathering)
			wants(t, quick, "ADDED "+name)
		}
		// It was about to be told of a when b came, and c.
		wants(t, slow, "ADDED a")
		pass(gathering)
		wants(t, slow, "ADDED b", "ADDED c")
	})
}

func TestAReaderThatIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		w := f.watch(metainternalversion.ListOptions{})
		f.request("a")
		pass(gathering)
		f.request("b", "c", "d") // more are gone than are remembered
		wants(t, w, "ADDED a")
		pass(gathering)
		event := <-w.ResultChan()
		if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
			t.Errorf("got %s with %v, want an ERROR with Expired", event.Type, err)
		}
		wants(t, w, "end")
	})
}

func TestBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		options := metainternalversion.ListOptions{AllowWatchBookmarks: true, SendInitialEvents: new(true)}
		w, plain := f.watch(options), f.watch(metainternalversion.ListOptions{})
		defer w.Stop()
		defer plain.Stop()
		bookmark := func(wantEnd string) {
			t.Helper()
			synctest.Wait()
			select {
			case event := <-w.ResultChan():
				trace := event.Object.(*pipelinev1alpha1.RequestTrace)
				if event.Type != watch.Bookmark || trace.ResourceVersion != formatVersion(f.version()) || trace.Annotations["k8s.io/initial-events-end"] != wantEnd {
					t.Errorf("got %s %+v, want a bookmark at %d, the end of what was there: %q", event.Type, trace.ObjectMeta, f.version(), wantEnd)
				}
			default:
				t.Error("no bookmark")
			}
		}
		bookmark("true")
		f.request("a")
		pass(gathering)
		wants(t, w, "ADDED a")
		wants(t, plain, "ADDED a")
		pass(bookmarkPeriod)
		bookmark("")
		pass(bookmarkPeriod)
		bookmark("")
		wants(t, plain)
	})
}

func TestAWatchEnds(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *fixture){
		"while nothing happens":      func(*testing.T, *fixture) {},
		"while it gathers":           func(_ *testing.T, f *fixture) { f.request("a") },
		"while nobody reads":         func(_ *testing.T, f *fixture) { f.request("a"); pass(gathering) },
		"while a bookmark is unread": func(*testing.T, *fixture) { pass(bookmarkPeriod) },
	} {
		for how, end := range map[string]func(watch.Interface, context.CancelFunc){
			"its reader stops it":  func(w watch.Interface, _ context.CancelFunc) { w.Stop(); w.Stop() },
			"its request is ended": func(_ watch.Interface, cancel context.CancelFunc) { cancel() },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, 1)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w, err := f.Watch(ctx, &metainternalversion.ListOptions{AllowWatchBookmarks: true})
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					begin(t, f)
					synctest.Wait()
					end(w, cancel)
					synctest.Wait()
					// A bubble fails where anything goes on in it.
					wants(t, w, "end")
				})
			})
		}
	}
}

func TestEventsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &watcher{
			Storage: f.Storage, selected: func(*pipeline.Record) bool { return true }, bookmarks: true,
			events: make(chan watch.Event), stop: cancel, version: f.version(),
			changes: []pipeline.Change{
				{Type: pipeline.Added, Record: &pipeline.Record{Name: "a"}},
				{Type: pipeline.Modified, Record: &pipeline.Record{Name: "b"}},
				{Type: pipeline.Removed, Record: &pipeline.Record{Name: "c"}},
			},
		}
		go w.run(ctx)
		wants(t, w, "ADDED a", "MODIFIED b", "DELETED c")
	})
}
