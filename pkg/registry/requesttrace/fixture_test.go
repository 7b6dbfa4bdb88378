package requesttrace

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/install"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// fixture is a storage on a recorder, and the requests that go by that.
type fixture struct {
	*Storage
	t       *testing.T
	handler http.Handler
}

// newFixture keeps that many traces.
func newFixture(t *testing.T, traces int) *fixture {
	scheme := newScheme()
	recorder := pipeline.NewRecorder(pipeline.Options{Traces: traces, Group: samplecrdv2alpha1.GroupName, Scheme: scheme})
	config := &genericapiserver.Config{
		RequestInfoResolver: &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("apis")},
		BuildHandlerChainFunc: func(api http.Handler, _ *genericapiserver.Config) http.Handler {
			return genericapifilters.WithAuditInit(api)
		},
	}
	recorder.Observe(config)
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return &fixture{
		Storage: NewStorage(recorder, scheme, samplecrdv2alpha1.SchemeGroupVersion),
		t:       t,
		handler: config.BuildHandlerChainFunc(api, config),
	}
}

// request sends requests with these audit IDs.
func (f *fixture) request(auditIDs ...string) {
	f.t.Helper()
	for _, id := range auditIDs {
		request := httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, "/apis/samplecrd.k8s.io/v1/namespaces/default/networks/net", http.NoBody)
		request.Header.Set("Audit-ID", id)
		f.handler.ServeHTTP(httptest.NewRecorder(), request)
	}
}

// version is that of the recorder now.
func (f *fixture) version() uint64 {
	_, version := f.recorder.List()
	return version
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}
