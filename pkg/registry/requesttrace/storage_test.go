package requesttrace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

func TestGet(t *testing.T) {
	f := newFixture(t, 2)
	f.request("a", "b", "c")
	got, err := f.Get(t.Context(), "c", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trace := got.(*pipelinev1alpha1.RequestTrace)
	want := pipelinev1alpha1.Request{
		Verb: "get", Method: "GET", Path: "/apis/samplecrd.k8s.io/v1/namespaces/default/networks/net",
		APIGroup: "samplecrd.k8s.io", APIVersion: "v1", Resource: "networks", Namespace: "default", Name: "net",
	}
	if diff := cmp.Diff(want, trace.Request); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if trace.Name != "c" || trace.AuditID != "c" || trace.Response.Code != 204 || len(trace.Stages) == 0 {
		t.Errorf("got %+v", trace)
	}
	for _, name := range []string{"a", "d"} {
		if got, err := f.Get(t.Context(), name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get %s: got %v and error %v, want NotFound", name, got, err)
		}
	}
}

func TestList(t *testing.T) {
	f := newFixture(t, 2)
	before := f.version()
	f.request("a", "b", "c")
	now := f.version()
	for name, tc := range map[string]struct {
		options    metainternalversion.ListOptions
		want       []string
		wantReason metav1.StatusReason
	}{
		"all, the oldest first": {want: []string{"b", "c"}},
		"a limit is left aside": {options: metainternalversion.ListOptions{Limit: 1}, want: []string{"b", "c"}},
		"by name": {
			options: metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "c")},
			want:    []string{"c"},
		},
		"by all names but one": {
			options: metainternalversion.ListOptions{FieldSelector: fields.OneTermNotEqualSelector("metadata.name", "c")},
			want:    []string{"b"},
		},
		"by a label, which none has": {options: metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})}},
		"without a label": {
			options: metainternalversion.ListOptions{LabelSelector: mustParse(t, "!a")},
			want:    []string{"b", "c"},
		},
		"any version": {options: metainternalversion.ListOptions{ResourceVersion: "0"}, want: []string{"b", "c"}},
		"not older than an earlier version": {
			options: metainternalversion.ListOptions{ResourceVersion: formatVersion(before), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			want:    []string{"b", "c"},
		},
		"not older than one of another life": {options: metainternalversion.ListOptions{ResourceVersion: "7"}, want: []string{"b", "c"}},
		"not older than one of another replica, which lies ahead": {
			options:    metainternalversion.ListOptions{ResourceVersion: formatVersion(now + 1)},
			wantReason: metav1.StatusReasonExpired,
		},
		"exactly as it is": {
			options: metainternalversion.ListOptions{ResourceVersion: formatVersion(now), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
			want:    []string{"b", "c"},
		},
		"exactly as it was": {
			options:    metainternalversion.ListOptions{ResourceVersion: formatVersion(now - 1), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
			wantReason: metav1.StatusReasonExpired,
		},
		"a version that is none": {
			options:    metainternalversion.ListOptions{ResourceVersion: "-1"},
			wantReason: metav1.StatusReasonBadRequest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := f.List(t.Context(), &tc.options)
			if tc.wantReason != "" {
				if reason := apierrors.ReasonForError(err); reason != tc.wantReason {
					t.Errorf("got %v and error %v, want %s", got, err, tc.wantReason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			list := got.(*pipelinev1alpha1.RequestTraceList)
			var names []string
			for _, trace := range list.Items {
				names = append(names, trace.Name)
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if list.ResourceVersion != formatVersion(now) {
				t.Errorf("the list is of version %s, want %d", list.ResourceVersion, now)
			}
		})
	}
}

func mustParse(t *testing.T, selector string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
