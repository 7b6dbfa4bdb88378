package requesttrace

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the trace: the audit ID, in most cases."},
	{Name: "Verb", Type: "string", Description: "What was asked for, as authorization calls it; apply is a server-side apply."},
	{Name: "Resource", Type: "string", Description: "Resource and subresource."},
	{Name: "Object", Type: "string", Description: "Namespace and name; * stands for all."},
	{Name: "User", Type: "string", Description: "Who asked."},
	{Name: "Code", Type: "integer", Description: "Status code of the answer; 0 if there was none."},
	{Name: "Stopped-At", Type: "string", Description: "Stage that refused the request or failed."},
	{Name: "Duration", Type: "string", Description: "Time from the arrival of the request to the end of the answer."},
	{Name: "Age", Type: "string", Description: "Time since the request arrived."},
	{Name: "Replica", Type: "string", Priority: 1, Description: "Host name of the server that answered."},
	{Name: "Audit-ID", Type: "string", Priority: 1, Description: "What the audit log calls the request, where that is not the name."},
	{Name: "Started", Type: "string", Priority: 1, Description: "When the request arrived."},
}

// none is what kubectl shows where there is nothing.
const none = "<none>"

// tableConvertor makes the columns that kubectl get shows.
type tableConvertor struct{}

// ConvertToTable makes a table of a trace, or of a list of them.
func (tableConvertor) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = columns
	}
	switch t := object.(type) {
	case *pipelinev1alpha1.RequestTrace:
		table.ResourceVersion = t.ResourceVersion
		table.Rows = []metav1.TableRow{row(t)}
	case *pipelinev1alpha1.RequestTraceList:
		table.ResourceVersion = t.ResourceVersion
		table.Rows = make([]metav1.TableRow, len(t.Items))
		for i := range t.Items {
			table.Rows[i] = row(&t.Items[i])
		}
	default:
		return nil, fmt.Errorf("making a table of a %T: not a RequestTrace", object)
	}
	return table, nil
}

func row(trace *pipelinev1alpha1.RequestTrace) metav1.TableRow {
	resource := trace.Request.Resource
	if trace.Request.Subresource != "" {
		resource += "/" + trace.Request.Subresource
	}
	user := none
	if trace.User != nil {
		user = trace.User.Name
	}
	auditID := trace.AuditID
	if auditID == trace.Name {
		auditID = none
	}
	return metav1.TableRow{
		Object: runtime.RawExtension{Object: trace},
		Cells: []any{
			trace.Name, trace.Request.Verb, resource, object(trace), user, int64(trace.Response.Code),
			cmp.Or(string(trace.Response.StoppedAt), none), took(trace.Response.DurationMicroseconds),
			duration.HumanDuration(time.Since(trace.StartTime.Time)),
			trace.Replica, auditID, trace.StartTime.UTC().Format(metav1.RFC3339Micro),
		},
	}
}

// object names what the request was about. That of a create may have got its
// name on the way.
func object(trace *pipelinev1alpha1.RequestTrace) string {
	name := trace.Request.Name
	if trace.Object != nil {
		name = cmp.Or(name, trace.Object.Name)
	}
	switch {
	case name == "" && trace.Request.Verb == "create":
		name = none
	case name == "":
		name = "*"
	}
	if trace.Request.Namespace == "" {
		return name
	}
	return trace.Request.Namespace + "/" + name
}

// took rounds to three digits.
func took(microseconds int64) string {
	d, unit := time.Duration(microseconds)*time.Microsecond, time.Microsecond
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}
