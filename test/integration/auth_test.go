package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs certificates of clients.
type authority struct {
	cert *x509.Certificate
	key  any
}

// ownAuthority is the one that the server trusts.
func (s *server) ownAuthority(t *testing.T) authority {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.ParseCertsPEM(content)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(content)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certs[0], key}
}

func foreignAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// Not even the name tells it from the right one.
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "network-apiserver-ca"}, key)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key}
}

// nobody is a client that trusts the server and has nothing to show. It speaks
// HTTP/1.1, in which a refusal does not cost the connection.
func (s *server) nobody() *rest.Config {
	config := rest.AnonymousClientConfig(s.config)
	config.NextProtos = []string{"http/1.1"}
	return config
}

// client is a client with a certificate of the authority.
func (a authority) client(t *testing.T, s *server, subject pkix.Name) *rest.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject:     subject,
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	config := s.nobody()
	config.CertData = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	if config.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestNobodyButTheAdministratorGetsIn(t *testing.T) {
	t.Parallel()
	s := shared
	namespace := namespaceOf(t)
	s.networks(t).create(newNetwork("guarded"))

	anonymous := s.nobody()
	bearer := func(token string) *rest.Config {
		config := s.nobody()
		config.BearerToken = token
		return config
	}
	masters := pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}
	stranger := s.ownAuthority(t).client(t, s, pkix.Name{CommonName: "stranger", Organization: []string{"strangers"}})
	forged := map[string]string{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}

	for name, tc := range map[string]struct {
		config     *rest.Config
		header     map[string]string
		wantStatus int
	}{
		"nobody is refused":                                {config: anonymous, wantStatus: http.StatusUnauthorized},
		"headers of a proxy prove nothing":                 {config: anonymous, header: forged, wantStatus: http.StatusUnauthorized},
		"a bearer token is refused":                        {config: bearer("secret"), wantStatus: http.StatusUnauthorized},
		"a token that looks signed is refused":             {config: bearer("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."), wantStatus: http.StatusUnauthorized},
		"a password is refused":                            {config: anonymous, header: map[string]string{"Authorization": "Basic YWRtaW46YWRtaW4="}, wantStatus: http.StatusUnauthorized},
		"masters of another authority are refused":         {config: foreignAuthority(t).client(t, s, masters), wantStatus: http.StatusUnauthorized},
		"another user of our authority may do nothing":     {config: stranger, wantStatus: http.StatusForbidden},
		"headers of a proxy lift nobody":                   {config: stranger, header: forged, wantStatus: http.StatusForbidden},
		"another user may not act for the administrator":   {config: stranger, header: map[string]string{"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}, wantStatus: http.StatusForbidden},
		"whom the administrator acts for gets no more":     {config: s.config, header: map[string]string{"Impersonate-User": "stranger"}, wantStatus: http.StatusForbidden},
		"the name of the administrator alone is no key":    {config: s.config, header: map[string]string{"Impersonate-User": "admin"}, wantStatus: http.StatusForbidden},
		"nobody acts for the administrator by header only": {config: anonymous, header: map[string]string{"Impersonate-User": "admin"}, wantStatus: http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range everyRequest(namespace) {
				r.header = map[string]string{"Content-Type": jsonType}
				maps.Copy(r.header, tc.header)
				if got := s.sendAs(t, tc.config, r); got.status != tc.wantStatus {
					t.Errorf("%s %s: got HTTP %d, want %d: %.200s", r.method, r.path, got.status, tc.wantStatus, got.body)
				}
			}
		})
	}
	s.networks(t).awaitReady("guarded")
}

// everyRequest is each path, and each verb on the resources.
func everyRequest(namespace string) []request {
	var requests []request
	for _, path := range []string{
		"/", "/readyz", "/livez", "/healthz", "/readyz/etcd", "/metrics", "/version", "/openapi/v2", "/openapi/v3",
		"/openapi/v3/apis/samplecrd.k8s.io/v1", "/api", "/apis", "/apis/samplecrd.k8s.io", "/debug/pprof/", "/nowhere",
	} {
		requests = append(requests, request{method: http.MethodGet, path: path})
	}
	for _, version := range apiVersions {
		group := "/apis/samplecrd.k8s.io/" + version
		all := group + "/namespaces/" + namespace + "/networks"
		one := all + "/guarded"
		requests = append(requests,
			request{method: http.MethodGet, path: group},
			request{method: http.MethodGet, path: group + "/networks"},
			request{method: http.MethodGet, path: group + "/networks?watch=true&timeoutSeconds=1"},
			request{method: http.MethodGet, path: all},
			request{method: http.MethodPost, path: all, body: "{}"},
			request{method: http.MethodDelete, path: all},
		)
		for _, path := range []string{one, one + "/status"} {
			requests = append(requests,
				request{method: http.MethodGet, path: path},
				request{method: http.MethodPut, path: path, body: "{}"},
				request{method: http.MethodPatch, path: path, body: "{}"},
			)
		}
		requests = append(requests, request{method: http.MethodDelete, path: one})
	}
	return requests
}

func TestTheAdministratorMayActForTheGroupOfAdministrators(t *testing.T) {
	t.Parallel()
	shared.get(t, "/apis", map[string]string{"Impersonate-User": "deputy", "Impersonate-Group": "system:masters"})
}
