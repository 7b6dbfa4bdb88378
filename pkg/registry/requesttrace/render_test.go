package requesttrace

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

func newRenderer() renderer { return renderer{newScheme(), samplecrdv2alpha1.SchemeGroupVersion} }

func TestTrace(t *testing.T) {
	for name, tc := range map[string]struct {
		record *pipeline.Record
		want   *pipelinev1alpha1.RequestTrace
	}{
		"all there is to know": {
			&pipeline.Record{
				Name: "a", AuditID: "A", Replica: "host", Version: 7, Start: start,
				Request: pipeline.Request{
					Verb: "apply", Method: "PATCH", Path: "/path", Parameters: []string{"force=true"},
					Group: "samplecrd.k8s.io", Version: "v1", Resource: "networks", Subresource: "status",
					Namespace: "default", Name: "net", ContentType: "application/apply-patch+yaml",
					Accept: "application/json", UserAgent: "kubectl", BodyBytes: 11,
				},
				User: &pipeline.User{Name: "jane", Groups: []string{"g"}, ImpersonatedBy: "admin"},
				Response: pipeline.Response{
					Code: 422, Reason: "Invalid", Message: "no", ContentType: "application/json", Bytes: 12,
					Duration: 3 * time.Millisecond, StoppedAt: pipeline.Validation, Warnings: []string{"w"},
				},
				Object: pipeline.Object{Namespace: "default", Name: "net", UID: "u", Generation: 2, Version: "5"},
				Cause:  "c",
				Passes: []pipeline.PassRecord{
					{Start: time.Second, Duration: 2 * time.Second, ResourceVersion: "6", Result: "Success", Settled: true, Stages: []pipeline.Stage{
						{Name: pipeline.Neutron, Subject: "POST /v2.0/networks", Outcome: pipeline.Passed, Start: time.Second, Duration: time.Millisecond},
					}},
					{Start: 3 * time.Second, Duration: pipeline.Unknown, ResourceVersion: "8"},
				},
				PassesDropped: 3, Omitted: "too large",
			},
			&pipelinev1alpha1.RequestTrace{
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(start)},
				AuditID:    "A", Replica: "host", StartTime: metav1.NewMicroTime(start),
				Request: pipelinev1alpha1.Request{
					Verb: "apply", Method: "PATCH", Path: "/path", Parameters: []string{"force=true"},
					APIGroup: "samplecrd.k8s.io", APIVersion: "v1", Resource: "networks", Subresource: "status",
					Namespace: "default", Name: "net", ContentType: "application/apply-patch+yaml",
					Accept: "application/json", UserAgent: "kubectl", BodyBytes: 11,
				},
				User: &pipelinev1alpha1.User{Name: "jane", Groups: []string{"g"}, ImpersonatedBy: "admin"},
				Response: pipelinev1alpha1.Response{
					Code: 422, Reason: "Invalid", Message: "no", ContentType: "application/json", Bytes: 12,
					DurationMicroseconds: 3000, StoppedAt: "Validation", Warnings: []string{"w"},
				},
				Object: &pipelinev1alpha1.ObjectReference{Namespace: "default", Name: "net", UID: "u", Generation: 2, ResourceVersion: "5"},
				Cause:  "c",
				Passes: []pipelinev1alpha1.Pass{
					{StartMicroseconds: 1e6, DurationMicroseconds: new(int64(2e6)), ResourceVersion: "6", Result: "Success", Settled: true, Stages: []pipelinev1alpha1.Stage{
						{Name: "Neutron", Subject: "POST /v2.0/networks", Outcome: "Passed", StartMicroseconds: new(int64(1e6)), DurationMicroseconds: new(int64(1000))},
					}},
					{StartMicroseconds: 3e6, ResourceVersion: "8"},
				},
				PassesDropped: 3, Omitted: "too large",
			},
		},
		"somebody whom nobody recognized, and no object": {
			&pipeline.Record{Name: "a", Start: start, Response: pipeline.Response{Code: 401}},
			&pipelinev1alpha1.RequestTrace{
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", ResourceVersion: "0", CreationTimestamp: metav1.NewTime(start)},
				StartTime:  metav1.NewMicroTime(start),
				Response:   pipelinev1alpha1.Response{Code: 401},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, newRenderer().trace(tc.record)); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStages(t *testing.T) {
	stages := []pipeline.Stage{
		{
			Name: pipeline.MutatingAdmission, Subject: "P", Outcome: pipeline.Changed, Start: 0, Duration: 1500 * time.Nanosecond,
			Message: "m", Errors: []string{"e"}, Details: []pipeline.Detail{{Name: "n", Value: "v"}},
		},
		{Name: pipeline.Defaulting, Outcome: pipeline.Passed, Start: pipeline.Unknown, Duration: pipeline.Unknown, Replayed: true},
	}
	want := []pipelinev1alpha1.Stage{
		{
			Name: "MutatingAdmission", Subject: "P", Outcome: "Changed", StartMicroseconds: new(int64), DurationMicroseconds: new(int64(1)),
			Message: "m", Errors: []string{"e"}, Details: []pipelinev1alpha1.Detail{{Name: "n", Value: "v"}},
		},
		{Name: "Defaulting", Outcome: "Passed", Replayed: true},
	}
	if diff := cmp.Diff(want, newRenderer().stages(stages, rendered{})); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestObjects(t *testing.T) {
	metadata := metav1.ObjectMeta{
		Name: "net", Namespace: "default",
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{secret}", "team": "a"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	const shown = `"name":"net","namespace":"default","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"\u003credacted\u003e","team":"a"}`
	for name, tc := range map[string]struct {
		object runtime.Object
		want   string // a part
		not    string
	}{
		"the version that was sent": {
			&samplecrdv1.Network{ObjectMeta: metadata, Spec: samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/24"}}},
			`"kind":"Network","apiVersion":"samplecrd.k8s.io/v1"`, `"subnets"`,
		},
		"the hub, with the fields of another version": {
			&samplecrd.Network{ObjectMeta: metadata, Spec: samplecrd.NetworkSpec{Subnets: []samplecrd.Subnet{{CIDR: "10.0.0.0/24"}}}},
			`"kind":"Network","apiVersion":"samplecrd.k8s.io/__internal"`, `"spec":{"cidr"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.object.DeepCopyObject()
			objects, r := rendered{}, newRenderer()
			got, err := r.object(tc.object, objects)
			if err != nil {
				t.Fatal(err)
			}
			text := string(got.Raw)
			for _, want := range []string{tc.want, shown, "10.0.0.0/24"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s is not in\n%s", want, text)
				}
			}
			for _, not := range []string{tc.not, "secret", "managedFields"} {
				if strings.Contains(text, not) {
					t.Errorf("%s is in\n%s", not, text)
				}
			}
			if diff := cmp.Diff(before, tc.object); diff != "" {
				t.Errorf("the recorder's object was changed (-want +got):\n%s", diff)
			}
			if again, err := r.object(tc.object, objects); err != nil || again != got {
				t.Errorf("an object that came twice was made twice (error %v)", err)
			}
		})
	}
}

func TestAnObjectThatCannotBeShown(t *testing.T) {
	stages := []pipeline.Stage{{
		Name: pipeline.Merge, Outcome: pipeline.Changed, Message: "merged",
		Before: &samplecrdv1.Network{}, After: &pipelinev1alpha1.RequestTrace{},
	}}
	got := newRenderer().stages(stages, rendered{})[0]
	if !json.Valid(got.Before.Raw) || got.After != nil || !strings.HasPrefix(got.Message, "merged (a *v1alpha1.RequestTrace is not shown: no kind") {
		t.Errorf("got %+v", got)
	}
}
