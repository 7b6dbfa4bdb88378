package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

const (
	// keepAlive is how often a stream says that it lives.
	keepAlive = 15 * time.Second
	// again is how long a reader waits before it comes again, and how far apart
	// two lists for one reader are at least.
	again = 2 * time.Second
)

// summary is what the list shows of a trace.
type summary struct {
	Name                 string                     `json:"name"`
	StartTime            metav1.MicroTime           `json:"startTime"`
	Verb                 string                     `json:"verb"`
	Version              string                     `json:"version"`
	Resource             string                     `json:"resource"`
	Subresource          string                     `json:"subresource,omitempty"`
	Namespace            string                     `json:"namespace,omitempty"`
	Object               string                     `json:"object,omitempty"`
	DryRun               bool                       `json:"dryRun,omitempty"`
	User                 string                     `json:"user,omitempty"`
	UserAgent            string                     `json:"userAgent,omitempty"`
	Code                 int32                      `json:"code,omitempty"`
	Reason               string                     `json:"reason,omitempty"`
	StoppedAt            pipelinev1alpha1.StageName `json:"stoppedAt,omitempty"`
	Warnings             int                        `json:"warnings,omitempty"`
	DurationMicroseconds int64                      `json:"durationMicroseconds"`
	Cause                string                     `json:"cause,omitempty"`
	Passes               int                        `json:"passes,omitempty"`
	Result               string                     `json:"result,omitempty"` // of the last pass
	Settled              bool                       `json:"settled,omitempty"`
}

func summarize(t *pipelinev1alpha1.RequestTrace) summary {
	s := summary{
		Name: t.Name, StartTime: t.StartTime,
		Verb: t.Request.Verb, Version: t.Request.APIVersion, Resource: t.Request.Resource, Subresource: t.Request.Subresource,
		Namespace: t.Request.Namespace, Object: t.Request.Name,
		DryRun:    slices.Contains(t.Request.Parameters, "dryRun=All"),
		UserAgent: t.Request.UserAgent,
		Code:      t.Response.Code, Reason: string(t.Response.Reason), StoppedAt: t.Response.StoppedAt,
		Warnings:             len(t.Response.Warnings),
		DurationMicroseconds: t.Response.DurationMicroseconds,
		Cause:                t.Cause,
		Passes:               len(t.Passes) + int(t.PassesDropped),
	}
	if t.User != nil {
		s.User = t.User.Name
	}
	if s.Object == "" && t.Object != nil {
		s.Object = t.Object.Name // a create has none in its path
	}
	if n := len(t.Passes); n > 0 {
		s.Result, s.Settled = t.Passes[n-1].Result, t.Passes[n-1].Settled
	}
	return s
}

// stream is one reader. It has a watch of its own: who reads slowly holds up
// nobody else.
type stream struct {
	*http.ResponseController
	w         http.ResponseWriter
	keepAlive <-chan time.Time
}

// events tells of all traces that there are, then of each as it comes, changes
// or goes. A stream that ends is begun anew by the browser.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	s := stream{http.NewResponseController(w), w, ticker.C}
	if err := s.write(fmt.Sprintf("retry: %d\n\n", again.Milliseconds())); err != nil {
		return
	}
	for {
		err := p.follow(r.Context(), s)
		if r.Context().Err() != nil {
			return
		}
		if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			_ = s.send("problem", newProblem(err)) // a reader that is gone does not hear it
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(again):
		}
	}
}

// follow lists and watches until the watch ends. It returns nil where that is
// as it should be.
func (p *Page) follow(ctx context.Context, s stream) error {
	traces := p.clients.PipelineV1alpha1().RequestTraces()
	list, err := traces.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	// Only who asks for bookmarks is told what is gone.
	w, err := traces.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	state := make([]summary, len(list.Items))
	for i := range list.Items {
		state[i] = summarize(&list.Items[i])
	}
	if err := s.send("state", state); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.keepAlive:
			err = s.write(": \n\n")
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			err = s.tell(event)
		}
		if err != nil {
			return err
		}
	}
}

func (s stream) tell(event watch.Event) error {
	trace, ok := event.Object.(*pipelinev1alpha1.RequestTrace)
	switch {
	case event.Type == watch.Error:
		return apierrors.FromObject(event.Object)
	case !ok, event.Type == watch.Bookmark:
		return nil
	case event.Type == watch.Deleted:
		return s.send("gone", trace.Name)
	}
	return s.send("trace", summarize(trace))
}

// send sends one event.
func (s stream) send(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, data))
}

func (s stream) write(text string) error {
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return err
	}
	return s.Flush()
}
