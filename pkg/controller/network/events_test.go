package network

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
)

func TestEventsTellChanges(t *testing.T) {
	w := newWorld(t)
	recorder := events.NewFakeRecorder(100)
	w.controller.recorder = recorder
	told := func() (all []string) {
		for len(recorder.Events) > 0 {
			all = append(all, <-recorder.Events)
		}
		return all
	}
	w.create(newNetwork())
	w.settle()
	want := []string{
		"Normal Creating the network is about to be made",
		"Normal Success the network is as declared",
	}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("of a creation (-want +got):\n%s", diff)
	}

	w.edit(withGateway("10.0.0.254"))
	breakdown(http.MethodGet, "networks", answer(http.StatusServiceUnavailable, strings.Repeat("x", 2000)))(w)
	for range 3 {
		_ = w.pass()
	}
	if got := told(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning TransientError get network ") {
		t.Errorf("three failures of one kind tell %q, want one Warning", got)
	}
	repair(w)
	w.settle()
	w.settle()
	if diff := cmp.Diff([]string{"Normal Success the network is as declared"}, told()); diff != "" {
		t.Errorf("of the recovery (-want +got):\n%s", diff)
	}
}
