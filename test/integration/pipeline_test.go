package integration

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

const (
	auditIDHeader = "Audit-Id"
	tracePoll     = 20 * time.Millisecond
)

// traced sends a request and waits for its trace, until done is content.
func (s *server) traced(t *testing.T, r request, done func(*pipelinev1alpha1.RequestTrace) bool) (answer, *pipelinev1alpha1.RequestTrace) {
	t.Helper()
	answer := s.send(t, r)
	return answer, s.awaitTrace(t, answer.header.Get(auditIDHeader), done)
}

// awaitTrace waits for a trace: it is there a moment after the answer.
func (s *server) awaitTrace(t *testing.T, name string, done func(*pipelinev1alpha1.RequestTrace) bool) (trace *pipelinev1alpha1.RequestTrace) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), tracePoll, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		trace, err = s.clients.PipelineV1alpha1().RequestTraces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && (done == nil || done(trace)), err
	})
	if err != nil {
		t.Fatalf("no trace %q as it should be: %v\n%+v", name, err, trace)
	}
	return trace
}

func (s *server) awaitReadyz(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), tracePoll, patience, true, func(context.Context) (bool, error) {
		return s.send(t, request{method: http.MethodGet, path: "/readyz"}).status == http.StatusOK, nil
	})
	if err != nil {
		t.Fatal("the server is not ready")
	}
}

// settled tells that the controller has done all it does by itself.
func settled(trace *pipelinev1alpha1.RequestTrace) bool {
	return slices.ContainsFunc(trace.Passes, func(p pipelinev1alpha1.Pass) bool { return p.Settled })
}

func stageNames(stages []pipelinev1alpha1.Stage) (names []string) {
	for _, s := range stages {
		name := string(s.Name)
		if s.Subject != "" && s.Name == pipelinev1alpha1.StageNeutron {
			name += " " + s.Subject
		}
		names = append(names, name)
	}
	return names
}

func stageOf(t *testing.T, trace *pipelinev1alpha1.RequestTrace, name pipelinev1alpha1.StageName) pipelinev1alpha1.Stage {
	t.Helper()
	i := slices.IndexFunc(trace.Stages, func(s pipelinev1alpha1.Stage) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no stage %s, only %q", name, stageNames(trace.Stages))
	}
	return trace.Stages[i]
}

// field returns what is at a path of an object, as JSON; empty if nothing is.
func field(t *testing.T, object *runtime.RawExtension, path ...string) string {
	t.Helper()
	if object == nil {
		t.Fatal("there is no object")
	}
	var at any
	if err := json.Unmarshal(object.Raw, &at); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		switch level := at.(type) {
		case map[string]any:
			at = level[key]
		case []any:
			at = nil
			if len(level) > 0 {
				at = level[0]
			}
		}
	}
	if at == nil {
		return ""
	}
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(text), `"`)
}

// A create goes all the way: through the server, to the controller, to Neutron,
// and back as writes of the status, which are requests again.
func TestTraceOfACreate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.awaitReadyz(t) // then the watch of the controller is open
	path := "/apis/samplecrd.k8s.io/v1/namespaces/" + namespaceOf(t) + "/networks"
	answer, trace := s.traced(t, request{
		method: http.MethodPost, path: path, header: map[string]string{"Content-Type": jsonType},
		body: `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":"a"},"spec":{"cidr":"192.168.0.0/16"}}`,
	}, settled)
	if answer.status != http.StatusCreated {
		t.Fatalf("got %d: %s", answer.status, answer.body)
	}
	wantStages := []string{
		"Authentication", "Audit", "Impersonation", "Authorization", "Mux", "Decode", "Defaulting", "ConversionToHub", "Strategy",
		"Validation", "ValidatingAdmission", "StorageEncoding", "Etcd", "ConversionFromHub", "Encoding", "Watch",
	}
	if diff := cmp.Diff(wantStages, stageNames(trace.Stages)); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	wantPass := []string{
		"Informer", "Queue", "Status", "Observe", "Plan", "Neutron POST /v2.0/networks",
		"Observe", "Plan", "Status", "Neutron POST /v2.0/subnets", "Observe", "Plan", "Status",
	}
	if diff := cmp.Diff(wantPass, stageNames(trace.Passes[0].Stages)); diff != "" {
		t.Errorf("stages of the pass (-want +got):\n%s", diff)
	}

	for name, tc := range map[string]struct {
		stage         pipelinev1alpha1.StageName
		path          []string
		before, after string
	}{
		"dhcp appears":              {pipelinev1alpha1.StageDefaulting, []string{"spec", "dhcp"}, "", "Enabled"},
		"cidr stands flat":          {pipelinev1alpha1.StageConversionToHub, []string{"spec", "cidr"}, "192.168.0.0/16", ""},
		"and moves into the list":   {pipelinev1alpha1.StageConversionToHub, []string{"spec", "subnets", "0", "cidr"}, "", "192.168.0.0/16"},
		"the finalizer appears":     {pipelinev1alpha1.StageStrategy, []string{"metadata", "finalizers", "0"}, "", "samplecrd.k8s.io/neutron"},
		"the generation appears":    {pipelinev1alpha1.StageStrategy, []string{"metadata", "generation"}, "", "1"},
		"the uid appears":           {pipelinev1alpha1.StageStrategy, []string{"metadata", "uid"}, "", string(trace.Object.UID)},
		"the hub is stored as v1":   {pipelinev1alpha1.StageStorageEncoding, []string{"apiVersion"}, "samplecrd.k8s.io/__internal", "samplecrd.k8s.io/v1"},
		"the answer is of v1 again": {pipelinev1alpha1.StageConversionFromHub, []string{"spec", "cidr"}, "", "192.168.0.0/16"},
	} {
		t.Run(name, func(t *testing.T) {
			stage := stageOf(t, trace, tc.stage)
			if got := field(t, stage.Before, tc.path...); got != tc.before {
				t.Errorf("before: got %q, want %q", got, tc.before)
			}
			if got := field(t, stage.After, tc.path...); got != tc.after {
				t.Errorf("after: got %q, want %q", got, tc.after)
			}
			if stage.Outcome != pipelinev1alpha1.OutcomeChanged {
				t.Errorf("got outcome %s, want Changed", stage.Outcome)
			}
		})
	}

	// Each write of the status is a trace of its own, which knows where it comes from.
	var writes []string
	for _, stage := range trace.Passes[0].Stages {
		for _, d := range stage.Details {
			if stage.Name == pipelinev1alpha1.StageStatus && d.Name == "trace" {
				writes = append(writes, d.Value)
			}
		}
	}
	if len(writes) != 3 {
		t.Fatalf("the pass names %d traces of its writes, want 3", len(writes))
	}
	for _, write := range writes {
		status := s.awaitTrace(t, write, nil)
		if status.Cause != trace.Name || status.Request.Subresource != "status" || status.Object.UID != trace.Object.UID {
			t.Errorf("the write %s has cause %q, subresource %q and uid %q, want %q, status and %q",
				write, status.Cause, status.Request.Subresource, status.Object.UID, trace.Name, trace.Object.UID)
		}
	}
}

// Whatever a client sends that is none of this API's business stays unseen.
func TestNothingSecretInTraces(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	path := "/apis/samplecrd.k8s.io/v1/namespaces/" + namespaceOf(t) + "/networks"
	network := `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":"a"},"spec":{"cidr":"192.168.0.0/16"%s}}`
	canary := func(place string) string { return "canary-" + place + "-c0ffee" }
	for place, r := range map[string]request{
		"authorization": {method: http.MethodGet, header: map[string]string{"Authorization": "Bearer " + canary("authorization")}},
		"cookie":        {method: http.MethodGet, header: map[string]string{"Cookie": "session=" + canary("cookie")}},
		"extra":         {method: http.MethodGet, header: map[string]string{"Impersonate-User": "bob", "Impersonate-Extra-Token": canary("extra")}},
		"query":         {method: http.MethodGet, path: "?access_token=" + canary("query")},
		"secret":        {method: http.MethodPost, body: `{"apiVersion":"v1","kind":"Secret","stringData":{"password":"` + canary("secret") + `"}}`},
		"group":         {method: http.MethodPost, body: `{"apiVersion":"other/v1","kind":"Network","spec":{"cidr":"` + canary("group") + `"}}`},
		"no JSON":       {method: http.MethodPost, body: `password: [` + canary("no JSON")},
		"unknown field": {method: http.MethodPost, body: fmt.Sprintf(network, `,"password":"`+canary("unknown field")+`"`)},
		"patch":         {method: http.MethodPatch, path: "/a", header: map[string]string{"Content-Type": mergePatch}, body: `{"data":{"password":"` + canary("patch") + `"}}`},
		"applied": {method: http.MethodPatch, path: "/a", header: map[string]string{"Content-Type": mergePatch},
			body: `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + canary("applied") + `"}}}`},
	} {
		r.path = path + r.path
		if r.header == nil {
			r.header = map[string]string{"Content-Type": jsonType}
		}
		t.Log(place)
		s.traced(t, r, nil)
	}
	list := s.send(t, request{method: http.MethodGet, path: "/apis/pipeline.samplecrd.k8s.io/v1alpha1/requesttraces"})
	text := string(list.body)
	if list.status != http.StatusOK || strings.Count(text, `"auditID"`) < 10 {
		t.Fatalf("got %d and too few traces:\n%s", list.status, text)
	}
	for _, form := range []func(string) string{
		func(c string) string { return c },
		func(c string) string { return hex.EncodeToString([]byte(c)) },
		func(c string) string { return base64.StdEncoding.EncodeToString([]byte(c)) },
	} {
		if found := form("canary-"); strings.Contains(text, found[:len(found)-2]) {
			at := strings.Index(text, found[:len(found)-2])
			t.Errorf("a trace tells a secret: ...%s...", text[max(0, at-200):min(len(text), at+100)])
		}
	}
}

// A reader that has stopped reading holds up nobody.
func TestStuckReaderOfTraces(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	stuck, err := s.clients.PipelineV1alpha1().RequestTraces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Stop()
	n := s.networks(t)
	n.create(newNetwork("a"))
	var last string
	for range 1000 {
		answer := s.send(t, request{method: http.MethodGet, path: "/apis/samplecrd.k8s.io/v1/namespaces/" + namespaceOf(t) + "/networks/a"})
		if answer.status != http.StatusOK {
			t.Fatalf("got %d: %s", answer.status, answer.body)
		}
		last = answer.header.Get(auditIDHeader)
	}
	s.awaitTrace(t, last, nil)
	// When it reads again it comes to what there is then, or is told to list again.
	for event := range stuck.ResultChan() {
		if trace, ok := event.Object.(*pipelinev1alpha1.RequestTrace); ok && trace.Name != last {
			continue
		} else if ok || apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
			return
		}
		t.Fatalf("got %s: %v", event.Type, event.Object)
	}
	t.Error("the watch ended before the last trace")
}

// A client may choose the audit ID, even one that is taken.
func TestTracesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := uuid.NewString()
	for range 2 {
		s.send(t, request{method: http.MethodGet, path: "/apis/samplecrd.k8s.io/v1/networks", header: map[string]string{auditIDHeader: id}})
	}
	s.awaitTrace(t, id, nil)
	err := wait.PollUntilContextTimeout(t.Context(), tracePoll, patience, true, func(ctx context.Context) (bool, error) {
		list, err := s.clients.PipelineV1alpha1().RequestTraces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		count := 0
		for _, trace := range list.Items {
			if trace.AuditID == id {
				count++
			}
		}
		return count == 2, nil
	})
	if err != nil {
		t.Errorf("waiting for two traces of one audit ID: %v", err)
	}
}
