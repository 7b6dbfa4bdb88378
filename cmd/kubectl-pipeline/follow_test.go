package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

func TestFollow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newStandIn(t)
	watched := make(chan struct{}, 10)
	s.reads = func(r *http.Request, number int) bool {
		if r.URL.Query().Get("watch") != "" {
			watched <- struct{}{}
		}
		return number != 2 // the first watch gets to another replica
	}
	add := func(id string, tweaks ...func(*v1alpha1.RequestTrace)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addTrace(id, append([]func(*v1alpha1.RequestTrace){object(id)}, tweaks...)...)
	}
	add("before")
	program := start(ctx, t, s, "follow")
	got := program.wait("before")
	await(ctx, t, watched) // refused with 410
	await(ctx, t, watched)
	add("refused-and-long", refusedBy(v1alpha1.StageValidation, "no"), func(trace *v1alpha1.RequestTrace) {
		trace.Request.Subresource = "status"
		trace.Response.Code = http.StatusUnprocessableEntity
		trace.User = nil
	})
	got = append(got, program.wait("refused-and-long")...)
	s.addPass(settled) // is no request
	s.expire("while-nobody-watched")
	got = append(got, program.wait("while-nobody-watched")...)
	await(ctx, t, watched)
	add("after", func(trace *v1alpha1.RequestTrace) {
		trace.Request.Verb, trace.Request.Method, trace.Request.Name, trace.Object = "list", http.MethodGet, "", nil
		trace.User.Name = "system:apiserver"
	})
	got = append(got, program.wait("list")...)
	cancel()
	if err := program.end(); err != nil {
		t.Error(err)
	}
	for line := range program.lines {
		got = append(got, line)
	}
	want := []string{
		"TIME           VERB     RESOURCE          OBJECT                     USER               CODE   STOPPED-AT   DURATION",
		"22:43:17.000   create   networks          default/before             alice              201    -            1.500ms",
		"22:43:17.000   create   networks/status   default/refused-and-long   -                  422    Validation   1.500ms",
		"22:43:17.000   create   networks          default/while-nobody-watched   alice              201    -            1.500ms",
		"22:43:17.000   list     networks          default/*                      system:apiserver   201    -            1.500ms",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
}

func TestFollowRefused(t *testing.T) {
	s := newStandIn(t)
	s.forbidden = true
	out, _, err := run(t, s, "follow")
	if err == nil || !strings.Contains(err.Error(), "listing traces: ") || out != "" {
		t.Errorf("got error %v and %q", err, out)
	}
}
