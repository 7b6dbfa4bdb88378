package integration

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

// Who watches a trace sees it come, and change until the controller is done.
func TestWatchingATraceToItsEnd(t *testing.T) {
	t.Parallel()
	traces := shared.clients.PipelineV1alpha1().RequestTraces()
	name := string(uuid.NewUUID())
	w, err := traces.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	created := shared.send(t, request{
		method: http.MethodPost, path: shared.networks(t).path("v1"), header: map[string]string{"Content-Type": yamlType, "Audit-ID": name},
		body: "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {generateName: a-}, spec: {cidr: 192.168.0.0/16}}",
	})
	if created.status != http.StatusCreated {
		t.Fatalf("got HTTP %d: %s", created.status, created.body)
	}
	want, last := watch.Added, uint64(0)
	for deadline := time.After(patience); ; want = watch.Modified {
		select {
		case event := <-w.ResultChan():
			trace, ok := event.Object.(*pipelinev1alpha1.RequestTrace)
			if event.Type != want || !ok || trace.Name != name {
				t.Fatalf("got %s %v, want %s of %s", event.Type, event.Object, want, name)
			}
			version, err := strconv.ParseUint(trace.ResourceVersion, 10, 64)
			if err != nil || version <= last {
				t.Errorf("got version %s after %d", trace.ResourceVersion, last)
			}
			last = version
			if slices.ContainsFunc(trace.Passes, func(p pipelinev1alpha1.Pass) bool { return p.Settled }) {
				return
			}
		case <-deadline:
			t.Fatal("the controller was never seen to be done")
		}
	}
}

func TestTracesEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--controller=false")
	list, err := s.clients.PipelineV1alpha1().RequestTraces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s = s.restart(t, "--controller=false")
	traces := s.clients.PipelineV1alpha1().RequestTraces()
	if w, err := traces.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch that goes on: got %v and error %v, want Expired", w, err)
	}
	if _, err := traces.List(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}); err != nil {
		t.Errorf("a list that is newer: %v", err)
	}
}

func TestTracesCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{
		"with what is recorded": "--pipeline-traces=0",
		"alone":                 "--runtime-config=pipeline.samplecrd.k8s.io/v1alpha1=false",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, flag)
			if _, err := s.clients.PipelineV1alpha1().RequestTraces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("got error %v, want NotFound", err)
			}
			s.networks(t).create(newNetwork("a"))
			s.networks(t).awaitReady("a")
		})
	}
}
