package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

// loggedError is how klog writes one.
var loggedError = regexp.MustCompile(`(?m)^[EF]\d{4} .*`)

// TestSecondStart shows that a data directory belongs to one server.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := start(t, dir)
	_, stderr, exitCode := runToEnd(t, "--standalone", "--data-dir", dir, "--secure-port", "0")
	if exitCode == 0 {
		t.Error("the second server ended with 0")
	}
	if want := "process " + strconv.Itoa(first.process.Pid); !strings.Contains(stderr, want) {
		t.Errorf("the second server does not name %q:\n%s", want, stderr)
	}
	createExample(t, first)
}

// TestStop shows that SIGTERM is a clean end, that an open watch does not hold
// it up, and that all is as it was after a start.
func TestStop(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := start(t, dir)
	createExample(t, s)
	want := exampleState(t, s)
	keptKubeconfig := keepKubeconfig(t, s)

	watch, err := newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	<-watch.ResultChan() // the network that is there: the watch is open
	s.stop(t)
	if s.err != nil {
		t.Errorf("after SIGTERM, with an open watch, the server ended with: %v", s.err)
	}
	if errors := loggedError.FindAllString(s.log.String(), -1); errors != nil {
		t.Errorf("a life without trouble logged errors: %q", errors)
	}

	s = start(t, dir)
	if got := exampleState(t, s); got != want {
		t.Errorf("after a restart the network is %s, want %s", got, want)
	}
	networkID := s.kubectl(t, "get", "network", "example-network", "-o", "jsonpath={.status.networkID}")
	if _, err := callNeutron(t.Context(), "", http.MethodGet, s.neutronURL+"/v2.0/networks/"+networkID, nil); err != nil {
		t.Errorf("after a restart Neutron has lost the network: %v", err)
	}
	// The port is another one; the certificates are the same.
	s.kubectl(t, "--kubeconfig", keptKubeconfig, "--server", s.apiURL, "delete", "network", "example-network", "--timeout=10s")
	s.stop(t)
	if s.err != nil {
		t.Errorf("after SIGTERM the server ended with: %v", s.err)
	}
}

// TestStrangersRefused shows that a client needs the certificate of the
// kubeconfig, on every path.
func TestStrangersRefused(t *testing.T) {
	t.Parallel()
	s := start(t, dataDir(t))
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData = nil, nil
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/apis", "/version", "/metrics", "/openapi/v3", "/apis/samplecrd.k8s.io/v1/networks"} {
		var status int
		clients.RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&status)
		if status != http.StatusUnauthorized {
			t.Errorf("%s without a certificate answered %d, want 401", path, status)
		}
	}
}

// createExample makes the network of the course and waits until it is there.
func createExample(t *testing.T, s *server) {
	t.Helper()
	file, err := filepath.Abs("../../artifacts/example/example-network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "create", "-f", file)
	s.kubectl(t, "wait", "--for=condition=Ready", "--timeout=10s", "network/example-network")
}

func exampleState(t *testing.T, s *server) string {
	t.Helper()
	return s.kubectl(t, "get", "network", "example-network", "-o", "jsonpath={.metadata.uid} {.metadata.generation} {.spec} {.status}")
}

// keepKubeconfig copies the kubeconfig of a server that is about to end.
func keepKubeconfig(t *testing.T, s *server) string {
	t.Helper()
	content, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kept, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return kept
}

// newClients returns clients without a limit of their own.
func newClients(t *testing.T, s *server) *versioned.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}
