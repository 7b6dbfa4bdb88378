package standalone

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

func TestKubeconfigOpensAServer(t *testing.T) {
	dir := t.TempDir()
	pki := loadPKI(t, dir)
	server := serveTLS(t, pki)
	path := filepath.Join(dir, "kubeconfig")
	// What stands there, readable for all, is replaced.
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteKubeconfig(path, server.URL, pki); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)

	loader := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	clientConfig := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loader, nil)
	raw, err := clientConfig.RawConfig()
	if err != nil {
		t.Fatal(err)
	}
	if got := raw.Contexts[raw.CurrentContext].Namespace; got != "default" {
		t.Errorf("got namespace %q, want default", got)
	}
	config, err := clientConfig.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.CAFile+config.CertFile+config.KeyFile != "" {
		t.Error("kubeconfig names files")
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	group, err := io.ReadAll(response.Body)
	if err != nil || string(group) != "system:masters" {
		t.Errorf("the server saw a client of group %q (%v), want system:masters", group, err)
	}
}

func TestKubeconfigWithoutAServer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	err := WriteKubeconfig(path, "", loadPKI(t, dir))
	wantError(t, err, path, "no server found")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file was written all the same (%v)", err)
	}
}

func TestKubeconfigInAMissingDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "missing", "kubeconfig")
	err := WriteKubeconfig(path, "https://127.0.0.1:1", loadPKI(t, dir))
	wantError(t, err, "write kubeconfig", path)
}

// serveTLS answers a client that has a certificate of pki with the client's group.
func serveTLS(t *testing.T, pki *PKI) *httptest.Server {
	t.Helper()
	pair, err := tls.X509KeyPair(pki.ServingCert, pki.ServingKey)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := cert.NewPoolFromBytes(pki.CA)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.Organization[0])
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}
