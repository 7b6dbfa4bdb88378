package network

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

func TestOrphansAreReported(t *testing.T) {
	w := newWorld(t)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	reports := func() string {
		if err := w.controller.resync(ctx); err != nil {
			t.Fatal(err)
		}
		return logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	}
	orphan := ownerMarker(testCluster, types.UID("11111111-2222-3333-4444-555555555555"))
	w.foreignNetwork(orphan)
	w.foreignNetwork(otherMarker)
	w.foreignNetwork("of old")
	w.create(newNetwork())
	w.settle()
	if got := reports(); strings.Contains(got, "no Network") {
		t.Errorf("one that is met for the first time is reported:\n%s", got)
	}
	got := reports()
	if strings.Count(got, "no Network") != 1 || !strings.Contains(got, orphan) {
		t.Errorf("want a report of %s alone:\n%s", orphan, got)
	}
	if got := metric(t, "network_controller_orphans"); got != 1 {
		t.Errorf("the metric says %v orphans, want 1", got)
	}
}

func TestOrphans(t *testing.T) {
	w := newWorld(t)
	marker := ownerMarker(testCluster, types.UID("11111111-2222-3333-4444-555555555555"))
	made, kept := w.foreignNetwork(marker), w.foreignNetwork("of old ["+marker+"]")
	w.foreignNetwork(otherMarker)
	w.foreignNetwork("of old")
	w.create(newNetwork())
	w.settle()
	orphans := func() ([]Orphan, error) {
		return Orphans(t.Context(), w.clients, neutron.NewStaticCloud(w.client()), testCluster)
	}
	got, err := orphans()
	if err != nil {
		t.Fatal(err)
	}
	want := []Orphan{{made.ID, "foreign", marker}, {kept.ID, "foreign", marker}}
	if made.ID > kept.ID {
		want[0], want[1] = want[1], want[0]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("orphans (-want +got):\n%s", diff)
	}

	// One that goes meanwhile is none.
	first := true
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if first && r.URL.Path == "/v2.0/networks/"+made.ID {
			first = false
			if err := w.admin.DeleteNetwork(t.Context(), made.ID); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	if got, err := orphans(); err != nil || len(got) != 1 || got[0].ID != kept.ID {
		t.Errorf("orphans are %v (%v), want %s alone", got, err, kept.ID)
	}

	breakdown(http.MethodGet, "networks", answer(http.StatusServiceUnavailable, ""))(w)
	if got, err := orphans(); err == nil {
		t.Errorf("without a list the orphans are %v, want an error", got)
	}
}
