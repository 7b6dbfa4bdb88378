package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

func TestRegisteredVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		traces        int
		runtimeConfig map[string]string
		want          []string
	}{
		"no traces": {want: []string{"samplecrd.k8s.io/v1", "samplecrd.k8s.io/v2alpha1"}},
		"traces":    {traces: 1, want: []string{"samplecrd.k8s.io/v1", "samplecrd.k8s.io/v2alpha1", "pipeline.samplecrd.k8s.io/v1alpha1"}},
		"traces that are switched off": {
			traces: 1, runtimeConfig: map[string]string{"pipeline.samplecrd.k8s.io/v1alpha1": "false"},
			want: []string{"samplecrd.k8s.io/v1", "samplecrd.k8s.io/v2alpha1"},
		},
		"nothing but what is stable": {traces: 1, runtimeConfig: map[string]string{"api/alpha": "false"}, want: []string{"samplecrd.k8s.io/v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.PipelineTraces, o.APIEnablement.RuntimeConfig = tc.traces, tc.runtimeConfig
			versions, err := o.registeredVersions()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, version := range versions {
				got = append(got, version.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}

// caContent is a CA bundle that is read later.
type caContent struct {
	dynamiccertificates.CAContentProvider
	pem []byte
}

func (c *caContent) CurrentCABundleContent() []byte { return c.pem }

func TestNotReadyBeforeTheFrontProxyIsKnown(t *testing.T) {
	ca := &caContent{}
	check := knowsFrontProxy(&authenticatorfactory.RequestHeaderConfig{CAContentProvider: ca})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
	if err := check.Check(request); err == nil {
		t.Error("ready without the CA of the front proxy: what it forwards would be anonymous")
	}
	ca.pem = []byte("a CA")
	if err := check.Check(request); err != nil {
		t.Errorf("not ready with the CA: %v", err)
	}
	if err := knowsFrontProxy(nil).Check(request); err != nil {
		t.Errorf("not ready in a cluster that has no front proxy: %v", err)
	}
}
