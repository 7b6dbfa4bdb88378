package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
)

// The controller runs in one replica, and the write may have gone to another.
func TestPassesOfAnotherReplica(t *testing.T) {
	started := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	newTrace := func(name, replica string, tweaks ...func(*v1alpha1.RequestTrace)) *v1alpha1.RequestTrace {
		trace := &v1alpha1.RequestTrace{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Replica:    replica,
			StartTime:  metav1.NewMicroTime(started),
			Response:   v1alpha1.Response{Code: http.StatusOK},
			Object:     &v1alpha1.ObjectReference{UID: "uid", Generation: 2, ResourceVersion: "20"},
		}
		for _, tweak := range tweaks {
			tweak(trace)
		}
		return trace
	}
	withPass := func(start int64) func(*v1alpha1.RequestTrace) {
		return func(trace *v1alpha1.RequestTrace) {
			trace.StartTime = metav1.NewMicroTime(started.Add(time.Second))
			trace.Passes = []v1alpha1.Pass{{StartMicroseconds: start, ResourceVersion: "20", Stages: []v1alpha1.Stage{
				{Name: v1alpha1.StagePlan, StartMicroseconds: new(start + 1)}, {Name: v1alpha1.StageQueue},
			}}}
		}
	}
	began := func(resourceVersion string) func(*v1alpha1.RequestTrace) {
		return func(trace *v1alpha1.RequestTrace) { trace.Passes[0].ResourceVersion = resourceVersion }
	}
	for name, tc := range map[string]struct {
		tweak  func(*v1alpha1.RequestTrace) // of the write
		others []*v1alpha1.RequestTrace
		want   []int64 // starts of the passes
	}{
		"none": {},
		"one, in the time of the write": {
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(-10))},
			want:   []int64{999_990},
		},
		"two, in order": {
			others: []*v1alpha1.RequestTrace{newTrace("status-1", "b", withPass(20)), newTrace("status-2", "b", withPass(10))},
			want:   []int64{1_000_010, 1_000_020},
		},
		"that began with a later state": {
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10), began("100"))},
			want:   []int64{1_000_010},
		},
		"that follows from a write before, of the same generation": {
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10), began("9"))},
		},
		"after a read": {
			tweak:  func(t *v1alpha1.RequestTrace) { t.Request.Method = http.MethodGet },
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10))},
		},
		"after a write of the status": {
			tweak:  func(t *v1alpha1.RequestTrace) { t.Request.Subresource = "status" },
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10))},
		},
		"after a dry run": {
			tweak:  func(t *v1alpha1.RequestTrace) { t.Request.Parameters = []string{"dryRun=All"} },
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10))},
		},
		"after a refusal": {
			tweak:  func(t *v1alpha1.RequestTrace) { t.Response.Code = http.StatusConflict },
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10))},
		},
		"of another generation": {
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10), func(t *v1alpha1.RequestTrace) { t.Object.Generation = 1 })},
		},
		"of another object": {
			others: []*v1alpha1.RequestTrace{newTrace("status", "b", withPass(10), func(t *v1alpha1.RequestTrace) { t.Object.UID = types.UID("other") })},
		},
		"of no object": {
			others: []*v1alpha1.RequestTrace{newTrace("list", "b", withPass(10), func(t *v1alpha1.RequestTrace) { t.Object = nil })},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientset()
			for _, other := range tc.others {
				if err := clients.Tracker().Add(other); err != nil {
					t.Fatal(err)
				}
			}
			write := newTrace("write", "a")
			if tc.tweak != nil {
				tc.tweak(write)
			}
			f := &finder{traces: clients.PipelineV1alpha1().RequestTraces()}
			got := f.withPasses(t.Context(), write)
			var starts []int64
			for _, pass := range got.Passes {
				starts = append(starts, pass.StartMicroseconds)
				if plan := *pass.Stages[0].StartMicroseconds; plan != pass.StartMicroseconds+1 {
					t.Errorf("the plan is at %d in a pass that begins at %d", plan, pass.StartMicroseconds)
				}
			}
			if diff := cmp.Diff(tc.want, starts); diff != "" {
				t.Errorf("starts of the passes (-want +got):\n%s", diff)
			}
			if len(write.Passes) > 0 {
				t.Error("the trace itself was changed")
			}
		})
	}
}
