package page

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
)

func newTrace(name string, tweaks ...func(*pipelinev1alpha1.RequestTrace)) *pipelinev1alpha1.RequestTrace {
	trace := &pipelinev1alpha1.RequestTrace{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		AuditID:    name,
		StartTime:  metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)),
		Request:    pipelinev1alpha1.Request{Verb: "create", APIVersion: "v1", Resource: "networks", Namespace: "default"},
		User:       &pipelinev1alpha1.User{Name: "admin"},
		Response:   pipelinev1alpha1.Response{Code: http.StatusCreated, DurationMicroseconds: 5585},
		Object:     &pipelinev1alpha1.ObjectReference{Namespace: "default", Name: "net"},
	}
	for _, tweak := range tweaks {
		tweak(trace)
	}
	return trace
}

func refused(trace *pipelinev1alpha1.RequestTrace) {
	trace.Request.Parameters = []string{"dryRun=All", "fieldManager=x"}
	trace.Response = pipelinev1alpha1.Response{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, StoppedAt: pipelinev1alpha1.StageValidation, Warnings: []string{"host bits"}}
	trace.User, trace.Object = nil, nil
}

func settled(trace *pipelinev1alpha1.RequestTrace) {
	trace.Passes = []pipelinev1alpha1.Pass{{Result: "Creating"}, {Result: "Success", Settled: true}}
	trace.PassesDropped = 3
}

func TestSummarize(t *testing.T) {
	start := newTrace("x").StartTime
	for name, tc := range map[string]struct {
		tweak func(*pipelinev1alpha1.RequestTrace)
		want  summary
	}{
		"of a write with two passes": {settled, summary{
			Name: "x", StartTime: start, Verb: "create", Version: "v1", Resource: "networks", Namespace: "default", Object: "net",
			User: "admin", Code: http.StatusCreated, DurationMicroseconds: 5585, Passes: 5, Result: "Success", Settled: true,
		}},
		"of a dry run by nobody that was refused": {refused, summary{
			Name: "x", StartTime: start, Verb: "create", Version: "v1", Resource: "networks", Namespace: "default",
			DryRun: true, Code: http.StatusUnprocessableEntity, Reason: "Invalid", StoppedAt: "Validation", Warnings: 1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summarize(newTrace("x", tc.tweak))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// openStream returns the events of a page.
func openStream(t *testing.T, p *Page) io.Reader {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("got the content type %q", got)
	}
	if got := response.Header.Get("Content-Encoding"); got != "" {
		t.Errorf("got the content encoding %q", got)
	}
	return response.Body
}

// nextEvent reads up to an empty line.
func nextEvent(t *testing.T, events *bufio.Reader) string {
	t.Helper()
	var text strings.Builder
	for {
		line, err := events.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", text.String(), err)
		}
		if line == "\n" {
			return text.String()
		}
		text.WriteString(line)
	}
}

func wantEvent(t *testing.T, events *bufio.Reader, kind string, parts ...string) {
	t.Helper()
	got := nextEvent(t, events)
	if !strings.HasPrefix(got, kind) {
		t.Fatalf("got %q, want one that begins with %q", got, kind)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("got %q, want it to have %q", got, part)
		}
	}
}

func TestEventsAreTheStateAndThenWhatChanges(t *testing.T) {
	p, clients := fakePage(t, newTrace("one"))
	watched := watch.NewRaceFreeFake()
	clients.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		// Else the server would not tell what is gone.
		if asked, ok := action.(clienttesting.WatchActionImpl); !ok || !asked.ListOptions.AllowWatchBookmarks {
			t.Errorf("got %v, want it to ask for bookmarks", action)
		}
		return true, watched, nil
	})
	events := bufio.NewReader(openStream(t, p))
	wantEvent(t, events, "retry: 2000")
	wantEvent(t, events, "event: state\ndata: [", `"name":"one"`)
	watched.Add(newTrace("two"))
	wantEvent(t, events, "event: trace\ndata: {", `"name":"two"`)
	watched.Modify(newTrace("two", settled))
	wantEvent(t, events, "event: trace\ndata: {", `"name":"two"`, `"settled":true`)
	watched.Action(watch.Bookmark, &pipelinev1alpha1.RequestTrace{})
	watched.Delete(newTrace("one"))
	wantEvent(t, events, `event: gone`, `data: "one"`)
}

// bubble runs one reader in a bubble of synctest, and returns its events: all in
// memory, for what waits for a socket is not at rest.
func bubble(t *testing.T, clients *fake.Clientset) (events *bufio.Reader, leave func(), done chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	leave = func() {
		cancel()
		reader.Close()
	}
	done = make(chan struct{})
	p := &Page{clients: clients}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", http.NoBody)
	go func() {
		defer close(done)
		defer writer.Close()
		p.events(pipe{httptest.NewRecorder(), writer}, request)
	}()
	return bufio.NewReader(reader), leave, done
}

// pipe is a response that can be read while it is written.
type pipe struct {
	*httptest.ResponseRecorder
	w io.Writer
}

func (p pipe) Write(data []byte) (int, error) { return p.w.Write(data) }

func TestAReaderThatDoesNotReadHoldsUpItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		_, leaveSlow, slowDone := bubble(t, clients)
		events, leave, done := bubble(t, clients)
		wantEvent(t, events, "retry")
		wantEvent(t, events, "event: state")
		wantEvent(t, events, ": ")
		leave()
		<-done
		leaveSlow()
		<-slowDone
	})
}

func TestAStreamThatIsStillSaysThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, leave, done := bubble(t, fake.NewClientset())
		wantEvent(t, events, "retry")
		wantEvent(t, events, "event: state\ndata: []")
		began := time.Now()
		for i := range 3 {
			wantEvent(t, events, ": ")
			if got, want := time.Since(began), time.Duration(i+1)*15*time.Second; got != want {
				t.Errorf("got a sign of life after %v, want %v", got, want)
			}
		}
		leave()
		<-done
	})
}

func TestNothingStaysOfAReaderThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		watched := watch.NewRaceFreeFake()
		clients.PrependWatchReactor("*", clienttesting.DefaultWatchReactor(watched, nil))
		events, leave, done := bubble(t, clients)
		wantEvent(t, events, "retry")
		wantEvent(t, events, "event: state")
		leave()
		<-done // and synctest itself fails if a goroutine stays
		if !watched.IsStopped() {
			t.Error("the watch goes on")
		}
	})
}

func TestAWatchThatEndsIsBegunAnew(t *testing.T) {
	expired := &apierrors.NewResourceExpired("too old").ErrStatus
	for name, end := range map[string]func(*watch.RaceFreeFakeWatcher){
		"because it is over":             func(w *watch.RaceFreeFakeWatcher) { w.Stop() },
		"because the version is too old": func(w *watch.RaceFreeFakeWatcher) { w.Error(expired) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clients := fake.NewClientset()
				watched := watch.NewRaceFreeFake()
				first := true
				clients.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
					handled := first
					first = false
					return handled, watched, nil
				})
				events, leave, done := bubble(t, clients)
				wantEvent(t, events, "retry")
				wantEvent(t, events, "event: state\ndata: []")
				if err := clients.Tracker().Add(newTrace("missed")); err != nil {
					t.Fatal(err)
				}
				end(watched)
				wantEvent(t, events, "event: state", `"name":"missed"`)
				leave()
				<-done
			})
		})
	}
}

func TestAReaderIsToldWhyThereIsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		verb string
		err  error
		want string
	}{
		"who may not list":        {"list", apierrors.NewForbidden(pipelinev1alpha1.Resource("requesttraces"), "", errors.New("no")), `"reason":"Forbidden"`},
		"a server without traces": {"list", apierrors.NewNotFound(pipelinev1alpha1.Resource("requesttraces"), ""), `"reason":"NotFound"`},
		"who may not watch":       {"watch", apierrors.NewForbidden(pipelinev1alpha1.Resource("requesttraces"), "", errors.New("no")), `"reason":"Forbidden"`},
	} {
		t.Run(name, func(t *testing.T) {
			p, clients := fakePage(t)
			if tc.verb == "list" {
				clients.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			} else {
				clients.PrependWatchReactor("*", clienttesting.DefaultWatchReactor(nil, tc.err))
			}
			events := bufio.NewReader(openStream(t, p))
			wantEvent(t, events, "retry")
			wantEvent(t, events, "event: problem", tc.want)
			if rest, err := io.ReadAll(events); err != nil || len(rest) > 0 {
				t.Errorf("got %q and %v after the end", rest, err)
			}
		})
	}
}
