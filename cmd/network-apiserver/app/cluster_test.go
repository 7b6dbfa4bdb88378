package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

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
