package apiserver

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	pipelineclient "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

const (
	networksPath = "/apis/samplecrd.k8s.io/v1/namespaces/default/networks"
	tracesPath   = "/apis/pipeline.samplecrd.k8s.io/v1alpha1/requesttraces"

	// patience is a deadline of the tests, not a bound on what is tested.
	patience = time.Minute
)

// recording keeps that many traces.
func recording(traces int) func(*Config) {
	return func(c *Config) {
		c.Recorder = pipeline.NewRecorder(pipeline.Options{
			Traces: traces, Group: samplecrd.GroupName, StoredVersion: samplecrdv1.SchemeGroupVersion, Scheme: Scheme, Codecs: Codecs,
		})
		c.GenericConfig.Authentication.Authenticator = anonymous.NewAuthenticator(nil)
	}
}

func newRecordingServer(t *testing.T, traces int) *Server {
	t.Helper()
	server, err := newServer(t, nil, recording(traces))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// read sends requests with these audit IDs: for a Network that is not there, which
// waits for nothing.
func read(t *testing.T, server *Server, auditIDs ...string) {
	t.Helper()
	for _, id := range auditIDs {
		exchange{request: "GET " + networksPath + "/none", auditID: id, wantCode: 404, want: `networks.samplecrd.k8s.io \"none\" not found`}.run(t, server)
	}
}

func TestTracesAreThereWithARecorder(t *testing.T) {
	for name, tc := range map[string]struct {
		runtimeConfig map[string]string
		tweaks        []func(*Config)
		wantCode      int
	}{
		"without a recorder": {wantCode: 404},
		"with one":           {tweaks: []func(*Config){recording(1)}, wantCode: 200},
		"switched off": {
			runtimeConfig: map[string]string{"pipeline.samplecrd.k8s.io/v1alpha1": "false"},
			tweaks:        []func(*Config){recording(1)}, wantCode: 404,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := newServer(t, tc.runtimeConfig, tc.tweaks...)
			if err != nil {
				t.Fatal(err)
			}
			exchange{request: "GET " + tracesPath, wantCode: tc.wantCode}.run(t, server)
			read(t, server, "a")
		})
	}
}

func TestTracesAreReadOnly(t *testing.T) {
	server := newRecordingServer(t, 1)
	var got metav1.APIResourceList
	get(t, server, strings.TrimSuffix(tracesPath, "/requesttraces"), &got)
	want := []metav1.APIResource{{
		Name: "requesttraces", SingularName: "requesttrace", Kind: "RequestTrace", Verbs: metav1.Verbs{"get", "list", "watch"},
	}}
	if diff := cmp.Diff(want, got.APIResources); diff != "" {
		t.Errorf("unexpected resources (-want +got):\n%s", diff)
	}
	read(t, server, "a")
	for _, request := range []string{"POST " + tracesPath, "PUT " + tracesPath + "/a", "PATCH " + tracesPath + "/a", "DELETE " + tracesPath + "/a", "DELETE " + tracesPath} {
		exchange{request: request, contentType: "application/json", wantCode: 405}.run(t, server)
	}
}

func TestReadingTraces(t *testing.T) {
	server := newRecordingServer(t, 8)
	for _, e := range []exchange{
		{request: "POST " + networksPath, contentType: "application/yaml", auditID: "write",
			body: "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: secret}}, " +
				"spec: {cidr: 192.168.0.0/16}}", wantCode: 201},
		{request: "GET " + networksPath + "/b", auditID: "read", wantCode: 404},

		{request: "GET " + tracesPath + "/write", wantCode: 200, want: `"kind":"RequestTrace","apiVersion":"pipeline.samplecrd.k8s.io/v1alpha1","metadata":{"name":"write"`},
		{request: "GET " + tracesPath + "/write", wantCode: 200, want: `"apiVersion":"samplecrd.k8s.io/__internal","metadata":{"name":"a"`},
		{request: "GET " + tracesPath + "/write", wantCode: 200, want: `"apiVersion":"samplecrd.k8s.io/v1","metadata":{"name":"a"`},
		{request: "GET " + tracesPath + "/read", wantCode: 200, want: `"reason":"NotFound"`},
		{request: "GET " + tracesPath + "/none", wantCode: 404, want: `requesttraces.pipeline.samplecrd.k8s.io \"none\" not found`},
		{request: "GET " + tracesPath, wantCode: 200, want: `"kind":"RequestTraceList"`},
		{request: "GET " + tracesPath + "/write", accept: runtime.ContentTypeProtobuf, wantCode: 200, want: "k8s\x00"},
		{request: "GET " + tracesPath, accept: runtime.ContentTypeProtobuf, wantCode: 200, want: "k8s\x00"},
		{request: "GET " + tracesPath + "/write", accept: runtime.ContentTypeYAML, wantCode: 200, want: "startTime: \""},
		{request: "GET " + tracesPath, accept: "application/json;as=Table;g=meta.k8s.io;v=v1", wantCode: 200,
			want: `"cells":["read","get","networks","default/b","system:anonymous",404,`},
		{request: "GET " + tracesPath, accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", wantCode: 200, want: `"name":"read"`},
		{request: "GET " + tracesPath + "?fieldSelector=metadata.name%3Dread", wantCode: 200, want: `"items":[{"metadata":{"name":"read"`},
		{request: "GET " + tracesPath + "?fieldSelector=object.uid%3D", wantCode: 200, want: `"name":"read"`},
		{request: "GET " + tracesPath + "?fieldSelector=object.uid%3Dno-such-uid", wantCode: 200, want: `"items":[]`},
		{request: "GET " + tracesPath + "?fieldSelector=request.verb%3Dget", wantCode: 400, want: "is not a known field selector"},
		{request: "GET " + tracesPath + "?resourceVersion=9000000000000000000", wantCode: 410, want: `"reason":"Expired"`},
		{request: "GET " + tracesPath + "?watch=true&resourceVersion=7", wantCode: 410, want: `"reason":"Expired"`},
		{request: "GET " + tracesPath + "?watch=true&resourceVersion=x", wantCode: 400, want: "must be a number"},
	} {
		e.run(t, server)
	}
	if answer := (exchange{request: "GET " + tracesPath + "/write", wantCode: 200}).run(t, server); strings.Contains(string(answer), "secret") {
		t.Errorf("what kubectl apply notes is shown:\n%s", answer)
	}
	trace, err := newClient(t, server).Get(t.Context(), "write", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(trace.Stages, func(s pipelinev1alpha1.Stage) bool {
		return s.After != nil && strings.Contains(string(s.After.Raw), `"cidr":"192.168.0.0/16"`)
	}) {
		t.Errorf("over protobuf there is no object in\n%+v", trace.Stages)
	}
}

// newClient reads traces over HTTP, as protobuf.
func newClient(t *testing.T, server *Server) pipelineclient.RequestTraceInterface {
	t.Helper()
	listening := httptest.NewServer(server.GenericAPIServer.Handler)
	t.Cleanup(listening.Close)
	clients, err := versioned.NewForConfig(&rest.Config{Host: listening.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
	if err != nil {
		t.Fatal(err)
	}
	return clients.PipelineV1alpha1().RequestTraces()
}

func TestWatchingTraces(t *testing.T) {
	server := newRecordingServer(t, 2)
	client := newClient(t, server)
	read(t, server, "a")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	read(t, server, "b", "c")
	for _, want := range []string{"b", "c"} {
		select {
		case event := <-w.ResultChan():
			trace, ok := event.Object.(*pipelinev1alpha1.RequestTrace)
			if event.Type != watch.Added || !ok || trace.Name != want || len(trace.Stages) == 0 {
				t.Errorf("got %s %v, want ADDED %s", event.Type, event.Object, want)
			}
		case <-time.After(patience):
			t.Fatal("no event came")
		}
	}
}

// An informer knows what the recorder has, and nothing that it has no more.
func TestAnInformerOfTraces(t *testing.T) {
	server := newRecordingServer(t, 2)
	client := newClient(t, server)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, &pipelinev1alpha1.RequestTrace{}, 0, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()
	defer cancel()

	for _, step := range []struct{ read, want []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"c"}, []string{"b", "c"}},
		{[]string{"d", "e"}, []string{"d", "e"}},
	} {
		read(t, server, step.read...)
		var got []string
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
			got = informer.GetStore().ListKeys()
			slices.Sort(got)
			return slices.Equal(got, step.want), nil
		})
		if err != nil {
			t.Fatalf("the informer has %q, want %q", got, step.want)
		}
	}
}
