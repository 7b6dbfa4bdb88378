package pipeline

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCredentials(t *testing.T) {
	const (
		token       = "bearer token"
		certificate = "client certificate"
		frontProxy  = "headers of a front proxy, with its certificate"
	)
	for name, tc := range map[string]struct {
		header      http.Header
		certificate bool
		want        []string
	}{
		"none":                                  {nil, false, []string{"none"}},
		"token":                                 {http.Header{"Authorization": {"Bearer secret"}}, false, []string{token}},
		"token, as others write it":             {http.Header{"Authorization": {"bearer secret"}}, false, []string{token}},
		"token of a WebSocket":                  {http.Header{"Sec-Websocket-Protocol": {"one", "two, base64url.bearer.authorization.k8s.io.c2VjcmV0"}}, false, []string{token}},
		"WebSocket without a token":             {http.Header{"Sec-Websocket-Protocol": {"base64.binary.k8s.io"}}, false, []string{"none"}},
		"password":                              {http.Header{"Authorization": {"Basic secret"}}, false, []string{"none"}},
		"certificate":                           {nil, true, []string{certificate}},
		"front proxy":                           {http.Header{"X-Remote-User": {"alice"}}, true, []string{frontProxy}},
		"headers without a certificate":         {http.Header{"X-Remote-User": {"alice"}}, false, []string{"none"}},
		"certificate and token: both are shown": {http.Header{"Authorization": {"Bearer secret"}}, true, []string{certificate, token}},
	} {
		t.Run(name, func(t *testing.T) {
			req := &http.Request{Header: tc.header, TLS: &tls.ConnectionState{}}
			if tc.certificate {
				req.TLS.PeerCertificates = []*x509.Certificate{{}}
			}
			if diff := cmp.Diff(tc.want, credentials(req)); diff != "" {
				t.Errorf("unexpected kinds (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	got := warnings([]string{`299 - "unknown field \"spec.colour\""`, `299 - "two words"`, "garbage", ""})
	if diff := cmp.Diff([]string{`unknown field "spec.colour"`, "two words"}, got); diff != "" {
		t.Errorf("unexpected warnings (-want +got):\n%s", diff)
	}
}
