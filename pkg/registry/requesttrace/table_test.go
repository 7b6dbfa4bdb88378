package requesttrace

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

type tweak func(*pipelinev1alpha1.RequestTrace)

func newTrace(tweaks ...tweak) *pipelinev1alpha1.RequestTrace {
	trace := &pipelinev1alpha1.RequestTrace{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"},
		AuditID:    "a",
		Replica:    "host",
		StartTime:  metav1.NewMicroTime(time.Now().Add(-73 * time.Hour)),
		Request:    pipelinev1alpha1.Request{Verb: "get", Resource: "networks", Namespace: "default", Name: "net"},
		User:       &pipelinev1alpha1.User{Name: "jane"},
		Response:   pipelinev1alpha1.Response{Code: 200, DurationMicroseconds: 12345},
	}
	for _, tweak := range tweaks {
		tweak(trace)
	}
	return trace
}

func TestRow(t *testing.T) {
	for name, tc := range map[string]struct {
		tweak tweak
		want  map[string]any // that differ from those of newTrace
	}{
		"a get": {tweak: func(*pipelinev1alpha1.RequestTrace) {}},
		"a subresource": {
			func(r *pipelinev1alpha1.RequestTrace) { r.Request.Verb, r.Request.Subresource = "update", "status" },
			map[string]any{"Verb": "update", "Resource": "networks/status"},
		},
		"a list of one namespace": {
			func(r *pipelinev1alpha1.RequestTrace) { r.Request.Verb, r.Request.Name = "list", "" },
			map[string]any{"Verb": "list", "Object": "default/*"},
		},
		"a watch of all namespaces": {
			func(r *pipelinev1alpha1.RequestTrace) {
				r.Request.Verb, r.Request.Namespace, r.Request.Name = "watch", "", ""
			},
			map[string]any{"Verb": "watch", "Object": "*"},
		},
		"a watch of one object": {
			func(r *pipelinev1alpha1.RequestTrace) { r.Request.Verb = "watch" },
			map[string]any{"Verb": "watch"},
		},
		"a create, whose name is that of the object": {
			func(r *pipelinev1alpha1.RequestTrace) {
				r.Request.Verb, r.Request.Name = "create", ""
				r.Object = &pipelinev1alpha1.ObjectReference{Namespace: "default", Name: "net-x7k2p"}
			},
			map[string]any{"Verb": "create", "Object": "default/net-x7k2p"},
		},
		"a create that got no object": {
			func(r *pipelinev1alpha1.RequestTrace) {
				r.Request.Verb, r.Request.Name = "create", ""
				r.Response.Code, r.Response.StoppedAt = 400, "Decode"
			},
			map[string]any{"Verb": "create", "Object": "default/<none>", "Code": int64(400), "Stopped-At": "Decode"},
		},
		"somebody whom nobody recognized": {
			func(r *pipelinev1alpha1.RequestTrace) {
				r.User = nil
				r.Response.Code, r.Response.StoppedAt = 401, "Authentication"
			},
			map[string]any{"User": "<none>", "Code": int64(401), "Stopped-At": "Authentication"},
		},
		"a name that is not the audit ID": {
			func(r *pipelinev1alpha1.RequestTrace) { r.AuditID = "Not/A/Name" },
			map[string]any{"Audit-ID": "Not/A/Name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			trace := newTrace(tc.tweak)
			want := map[string]any{
				"Name": "a", "Verb": "get", "Resource": "networks", "Object": "default/net", "User": "jane", "Code": int64(200),
				"Stopped-At": "<none>", "Duration": "12.3ms", "Age": "3d1h",
				"Replica": "host", "Audit-ID": "<none>", "Started": trace.StartTime.UTC().Format("2006-01-02T15:04:05.000000Z"),
			}
			maps.Copy(want, tc.want)
			table := convert(t, trace, nil)
			got := map[string]any{}
			for i, column := range table.ColumnDefinitions {
				got[column.Name] = table.Rows[0].Cells[i]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected cells (-want +got):\n%s", diff)
			}
			if got := table.Rows[0].Object.Object; got != trace {
				t.Errorf("the row is of %v, not of the trace", got)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	for want, microseconds := range map[string]int64{
		"0s": 0, "7µs": 7, "999µs": 999, "1ms": 1000, "1.23ms": 1234, "12.3ms": 12345, "123ms": 123456,
		"1.23s": 1234567, "12.3s": 12345678, "1m0s": 59999999,
	} {
		if got := took(microseconds); got != want {
			t.Errorf("%d µs are shown as %s, want %s", microseconds, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	names := map[int32][]string{}
	for _, column := range convert(t, newTrace(), &metav1.TableOptions{}).ColumnDefinitions {
		names[column.Priority] = append(names[column.Priority], column.Name)
	}
	// kubectl shows priority 0 always and the others with -o wide.
	want := map[int32][]string{
		0: {"Name", "Verb", "Resource", "Object", "User", "Code", "Stopped-At", "Duration", "Age"},
		1: {"Replica", "Audit-ID", "Started"},
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("unexpected columns (-want +got):\n%s", diff)
	}
	if got := convert(t, newTrace(), &metav1.TableOptions{NoHeaders: true}); len(got.ColumnDefinitions) > 0 || len(got.Rows) != 1 {
		t.Errorf("a table without headers has %d columns and %d rows", len(got.ColumnDefinitions), len(got.Rows))
	}
}

func TestTableOfAList(t *testing.T) {
	list := &pipelinev1alpha1.RequestTraceList{
		ListMeta: metav1.ListMeta{ResourceVersion: "12"},
		Items:    []pipelinev1alpha1.RequestTrace{*newTrace(), *newTrace(func(r *pipelinev1alpha1.RequestTrace) { r.Name = "b" })},
	}
	table := convert(t, list, nil)
	if table.ResourceVersion != "12" || len(table.Rows) != 2 {
		t.Fatalf("got %d rows at %q", len(table.Rows), table.ResourceVersion)
	}
	for i, row := range table.Rows {
		if row.Object.Object != &list.Items[i] || row.Cells[0] != list.Items[i].Name {
			t.Errorf("row %d is of another trace", i)
		}
	}
	if got := convert(t, newTrace(), nil).ResourceVersion; got != "7" {
		t.Errorf("the table of a trace at version 7 is at %q", got)
	}
}

func TestATableIsOfTracesOnly(t *testing.T) {
	if table, err := (tableConvertor{}).ConvertToTable(t.Context(), &metav1.Status{}, nil); err == nil {
		t.Errorf("got %v, want an error", table)
	}
}

func convert(t *testing.T, object, options runtime.Object) *metav1.Table {
	t.Helper()
	table, err := tableConvertor{}.ConvertToTable(t.Context(), object, options)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
