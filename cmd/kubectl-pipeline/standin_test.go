package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

const (
	token        = "a-token-that-nobody-may-see"
	networksPath = "/apis/samplecrd.k8s.io/v1/namespaces/default/networks"
	tracesPath   = "/apis/pipeline.samplecrd.k8s.io/v1alpha1/requesttraces"
)

// standIn answers as the server does, with the traces that a test makes. The
// fields above mu are set before the first request.
type standIn struct {
	*httptest.Server
	// refuse is the answer to writes.
	refuse *metav1.Status
	// record makes the trace of a write; one that goes all the way if it is nil.
	record func(*v1alpha1.RequestTrace)
	// notServed: there are no traces here.
	notServed bool
	// forbidden: nobody may read traces.
	forbidden bool
	// reads decides about a request for traces, by its number: false is answered
	// as by another replica.
	reads func(r *http.Request, number int) bool

	mu       sync.Mutex
	requests []string // each as METHOD PATH?QUERY
	networks map[string]*unstructured.Unstructured
	bodies   []*unstructured.Unstructured
	traces   []v1alpha1.RequestTrace
	events   []metav1.WatchEvent
	changed  chan struct{} // closed when there are more events
	read     int
}

// newStandIn speaks HTTP/2 with who wants it, as a server does.
func newStandIn(t *testing.T) *standIn {
	t.Helper()
	s := &standIn{networks: map[string]*unstructured.Unstructured{}, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{}})
	})
	mux.HandleFunc("GET /apis", s.serveGroups)
	mux.HandleFunc("GET /apis/{group}/{version}", s.serveResources)
	mux.HandleFunc("POST "+networksPath, s.write)
	mux.HandleFunc(networksPath+"/{name}", s.write)
	mux.HandleFunc("GET "+tracesPath, s.serveTraces)
	mux.HandleFunc("GET "+tracesPath+"/{name}", s.serveTraces)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+token {
			answerStatus(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// kubeconfig returns the flags that lead to the stand-in.
func (s *standIn) kubeconfig(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server:                   s.URL,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--kubeconfig=" + file, "--cache-dir=" + filepath.Join(dir, "cache")}
}

func (s *standIn) serveGroups(w http.ResponseWriter, _ *http.Request) {
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, groupVersion := range []string{"samplecrd.k8s.io/v1", "pipeline.samplecrd.k8s.io/v1alpha1"} {
		version := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: path.Base(groupVersion)}
		groups.Groups = append(groups.Groups, metav1.APIGroup{
			Name: path.Dir(groupVersion), Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		})
	}
	answerJSON(w, http.StatusOK, groups)
}

func (s *standIn) serveResources(w http.ResponseWriter, r *http.Request) {
	resource := metav1.APIResource{Name: "networks", SingularName: "network", Kind: "Network", Namespaced: true}
	if r.PathValue("group") == "pipeline.samplecrd.k8s.io" {
		if s.notServed {
			http.NotFound(w, r)
			return
		}
		resource = metav1.APIResource{Name: "requesttraces", SingularName: "requesttrace", Kind: "RequestTrace"}
	}
	resource.Verbs = metav1.Verbs{"get", "list"}
	answerJSON(w, http.StatusOK, &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: r.PathValue("group") + "/" + r.PathValue("version"),
		APIResources: []metav1.APIResource{resource},
	})
}

// write answers all requests for Networks, and records what is no read.
func (s *standIn) write(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	existing := s.networks[r.PathValue("name")]
	if r.Method == http.MethodGet {
		if existing == nil {
			answerStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		answerJSON(w, http.StatusOK, existing)
		return
	}
	body, _ := io.ReadAll(r.Body)
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &object.Object); err != nil {
		answerStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	s.bodies = append(s.bodies, object.DeepCopy())
	code, verb := http.StatusOK, map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "apply"}[r.Method]
	if existing == nil {
		code = http.StatusCreated
	}
	refused := s.refuse
	if refused != nil {
		code = int(refused.Code)
	}
	s.addTrace(r.Header.Get("Audit-ID"), func(trace *v1alpha1.RequestTrace) {
		trace.Request.Verb, trace.Request.Method = verb, r.Method
		trace.Request.Path, trace.Request.Parameters = r.URL.Path, strings.Split(r.URL.RawQuery, "&")
		trace.Request.UserAgent = r.UserAgent()
		trace.Response.Code = int32(code)
		if refused != nil {
			trace.Response.Reason, trace.Response.Message = refused.Reason, refused.Message
		}
		if s.record != nil {
			s.record(trace)
		}
	})
	w.Header().Add("Warning", `299 - "a word from the server"`)
	if refused != nil {
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		answerJSON(w, code, refused)
		return
	}
	if existing == nil || !sameSpec(existing, object) {
		object.SetResourceVersion(strconv.Itoa(1000 + len(s.bodies)))
		existing = object
	}
	if r.URL.Query().Get("dryRun") == "" {
		s.networks[object.GetName()] = existing
	}
	answerJSON(w, code, existing)
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	x, _ := json.Marshal(a.Object["spec"])
	y, _ := json.Marshal(b.Object["spec"])
	return string(x) == string(y)
}

// addTrace is called with mu locked.
func (s *standIn) addTrace(id string, tweaks ...func(*v1alpha1.RequestTrace)) {
	trace := v1alpha1.RequestTrace{
		TypeMeta:   metav1.TypeMeta{Kind: "RequestTrace", APIVersion: "pipeline.samplecrd.k8s.io/v1alpha1"},
		ObjectMeta: metav1.ObjectMeta{Name: id},
		AuditID:    id,
		Replica:    "replica-a",
		StartTime:  metav1.NewMicroTime(time.Date(2026, 11, 29, 22, 43, 17, 0, time.UTC)),
		Request:    v1alpha1.Request{Verb: "create", Method: http.MethodPost, Path: networksPath, Resource: "networks", Namespace: "default"},
		User:       &v1alpha1.User{Name: "alice"},
		Response:   v1alpha1.Response{Code: http.StatusCreated, DurationMicroseconds: 1500},
		Object:     &v1alpha1.ObjectReference{Namespace: "default", Name: "example-network"},
		Stages:     []v1alpha1.Stage{{Name: v1alpha1.StageEtcd, Outcome: v1alpha1.OutcomePassed}},
	}
	for _, tweak := range tweaks {
		tweak(&trace)
	}
	s.traces = append(s.traces, trace)
	s.tell("ADDED", &s.traces[len(s.traces)-1])
}

// addPass gives the newest trace one more pass of the controller.
func (s *standIn) addPass(pass v1alpha1.Pass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	trace := &s.traces[len(s.traces)-1]
	trace.Passes = append(slices.Clone(trace.Passes), pass)
	s.tell("MODIFIED", trace)
}

// expire ends all watches with 410, and then adds a trace.
func (s *standIn) expire(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, _ := json.Marshal(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
	s.events = append(s.events, metav1.WatchEvent{Type: "ERROR"})
	s.events[len(s.events)-1].Object.Raw = raw
	s.addTrace(id, object(id))
}

// tell is called with mu locked.
func (s *standIn) tell(event string, trace *v1alpha1.RequestTrace) {
	trace.ResourceVersion = strconv.Itoa(len(s.events) + 1)
	raw, _ := json.Marshal(trace)
	s.events = append(s.events, metav1.WatchEvent{Type: event})
	s.events[len(s.events)-1].Object.Raw = raw
	close(s.changed)
	s.changed = make(chan struct{})
}

// serveTraces answers get, list and watch.
func (s *standIn) serveTraces(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.read++
	number := s.read
	traces := slices.Clone(s.traces)
	resourceVersion := strconv.Itoa(len(s.events))
	s.mu.Unlock()
	if s.forbidden {
		answerStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		return
	}
	watching, name := r.URL.Query().Get("watch") != "", r.PathValue("name")
	here := s.reads == nil || s.reads(r, number)
	if !here {
		traces = nil
	}
	switch i := slices.IndexFunc(traces, func(trace v1alpha1.RequestTrace) bool { return trace.Name == name }); {
	case watching && !here:
		answerStatus(w, http.StatusGone, metav1.StatusReasonExpired)
	case watching:
		s.serveWatch(w, r)
	case name == "":
		answerJSON(w, http.StatusOK, &v1alpha1.RequestTraceList{
			TypeMeta: metav1.TypeMeta{Kind: "RequestTraceList", APIVersion: "pipeline.samplecrd.k8s.io/v1alpha1"},
			ListMeta: metav1.ListMeta{ResourceVersion: resourceVersion},
			Items:    traces,
		})
	case i < 0:
		answerStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	default:
		answerJSON(w, http.StatusOK, &traces[i])
	}
}

func (s *standIn) serveWatch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		answerStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		s.mu.Lock()
		events, changed := s.events[from:], s.changed
		s.mu.Unlock()
		for _, event := range events {
			_ = json.NewEncoder(w).Encode(&event)
			if event.Type == "ERROR" {
				return
			}
		}
		from += len(events)
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// sent returns the requests that were sent to paths that begin so.
func (s *standIn) sent(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(request string) bool {
		_, uri, _ := strings.Cut(request, " ")
		return !strings.HasPrefix(uri, prefix)
	})
}

func answerStatus(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answerJSON(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf("the stand-in says %s", reason),
	})
}

func answerJSON(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "network.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
