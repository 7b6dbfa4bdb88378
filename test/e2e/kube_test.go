//go:build kube

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

// The Makefile builds them: a control plane is not built beside the tests.
func init() { built, _ = filepath.Abs("../../bin") }

// serverNamespace is that of the manifests.
const serverNamespace = "network-apiserver"

// TestKube drives the server behind a real kube-apiserver.
func TestKube(t *testing.T) {
	c := startCluster(t)
	t.Run("Scripts", c.testScripts)
	t.Run("Objects", c.testObjects)
	t.Run("NamespaceDeletion", c.testNamespaceDeletion)
	t.Run("RollingRestart", c.testRollingRestart)
	t.Run("FrozenLeader", c.testFrozenLeader)
	t.Run("Rotation", c.testRotation)
	t.Run("Controller", c.testController)
	t.Run("Attacks", c.testAttacks)
	t.Run("Pipeline", c.testPipeline)
	t.Run("RBAC", c.testRBAC)
	t.Run("Manifests", c.testManifests)
	t.Run("EtcdTLS", c.testEtcdTLS)
	// From here on the server is not installed.
	t.Run("Uninstall", c.testUninstall)
	t.Run("FromCRD", c.testFromCRD)
	t.Run("LeastRBAC", c.testLeastRBAC)
}

// cluster is a Kubernetes control plane from source, with our manifests in it
// and our Service at a balancer of the test.
type cluster struct {
	*server  // a client's view of it, through the aggregator as its administrator
	balancer *balancer
	data     string            // folder of its state
	vars     map[string]string // what a server needs to join
	config   *rest.Config      // of its administrator
	kube     *kubernetes.Clientset
	networks *versioned.Clientset
}

// startCluster runs it until the end of the test. Its programs are those that
// "make kube-build" put into bin/.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	// Not of the context of the test: it is asked to end, not killed.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(bin, "kube"), append([]string{"-bin", bin, "-data", data}, auditFlags(t, data)...)...)
	s := &server{kubeconfig: filepath.Join(data, "kubeconfig"), log: &output{}, ended: make(chan struct{})}
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("%v: run make kube-build", err)
	}
	s.process = command.Process
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			t.Logf("kube, process %d:\n%s", s.process.Pid, s.log)
		}
	})
	ready := make(chan struct{})
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			_, _ = s.log.Write(append(lines.Bytes(), '\n'))
			if strings.HasPrefix(lines.Text(), "export KUBECONFIG=") {
				close(ready)
			}
		}
		s.err = command.Wait()
	}()
	select {
	case <-ready:
	case <-s.ended:
		t.Fatalf("kube ended before it was ready: %v", s.err)
	case <-time.After(startDeadline):
		t.Fatalf("kube was not ready after %v", startDeadline)
	}
	c := &cluster{server: s, balancer: newBalancer(t), data: data, vars: readVars(t, filepath.Join(data, "env")), networks: newClients(t, s)}
	if c.config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.config.QPS = -1
	if c.kube, err = kubernetes.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	// As a person would.
	c.kubectl(t, "apply", "-k", c.overlay(t, "self-registered"))
	return c
}

func readVars(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		vars[name] = value
	}
	return vars
}

// overlay returns a folder to install from. No pod runs without a node: the
// Service points to processes of the test instead.
func (c *cluster) overlay(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Rel(dir, absolute(t, filepath.Join("../../artifacts/overlays", name)))
	if err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- %s
patches:
- target: {kind: Service, name: network-apiserver}
  patch: |
    - op: replace
      path: /spec
      value: {type: ExternalName, externalName: localhost, ports: [{port: %d}]}
`, base, c.balancer.port)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// replica is one network-apiserver behind the Service.
type replica struct {
	*server
	port int
}

// startReplica runs network-apiserver as the service account of the manifests,
// with what their Deployment says, and returns when it is ready.
func (c *cluster) startReplica(t testing.TB, o *cloud, flags ...string) *replica {
	t.Helper()
	r := c.launchReplica(t, o, flags...)
	r.waitReady(t)
	return r
}

// launchReplica does not wait.
func (c *cluster) launchReplica(t testing.TB, o *cloud, flags ...string) *replica {
	t.Helper()
	r := &replica{server: &server{log: &output{}, ended: make(chan struct{})}, port: freePort(t)}
	command := program(context.WithoutCancel(t.Context()), append([]string{
		"--secure-port", strconv.Itoa(r.port),
		"--kubeconfig", c.vars["SERVER_KUBECONFIG"],
		"--etcd-servers", c.vars["ETCD_SERVERS"],
		"--etcd-cafile", c.vars["ETCD_CAFILE"],
		"--etcd-certfile", c.vars["ETCD_CERTFILE"],
		"--etcd-keyfile", c.vars["ETCD_KEYFILE"],
		"--os-cloud", osCloud,
		"--enable-priority-and-fairness",
		"--disable-http2-serving",
		"--register-apiservice",
		"--service-namespace", serverNamespace,
		"--service-port", strconv.Itoa(c.balancer.port),
		"--leader-elect-resource-namespace", serverNamespace,
		"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
		"--shutdown-delay-duration=1s",
	}, flags...)...)
	command.Env = []string{"OS_CLIENT_CONFIG_FILE=" + o.configFile}
	command.Stdout, command.Stderr = r.log, r.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	r.process = command.Process
	go func() {
		defer close(r.ended)
		r.err = command.Wait()
	}()
	c.balancer.add(r.port)
	t.Cleanup(func() {
		r.stop(t)
		c.balancer.remove(r.port)
		r.checkLog(t)
		if t.Failed() {
			t.Logf("network-apiserver, process %d, on port %d:\n%s", r.process.Pid, r.port, r.log)
		}
	})
	return r
}

// unwanted is what no log of a server should hold: a crash, and a right that the
// manifests do not give. The one that an owner of a namespace is asked for is
// told in a message of its own.
var unwanted = regexp.MustCompile(`(?im)^.*(\bpanic:|^goroutine \d|forbidden).*$`)

func (r *replica) checkLog(t testing.TB) {
	t.Helper()
	for _, line := range unwanted.FindAllString(r.log.String(), -1) {
		if !strings.Contains(line, "network-apiserver:credentials") {
			t.Errorf("network-apiserver, process %d, logged %q", r.process.Pid, line)
		}
	}
}

func (r *replica) waitReady(t testing.TB) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, startDeadline, true, func(ctx context.Context) (bool, error) {
		select {
		case <-r.ended:
			return false, fmt.Errorf("it ended: %w", r.err)
		default:
			return ready(ctx, r.port), nil
		}
	})
	if err != nil {
		t.Fatalf("network-apiserver is not ready: %v\n%s", err, r.log)
	}
}

// waitServed waits until the group is served, in these versions or in all: the
// aggregator looks for servers only every few seconds.
func (c *cluster) waitServed(t testing.TB, versions ...string) {
	t.Helper()
	if versions == nil {
		versions = []string{"v1", "v2alpha1"}
	}
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, startDeadline, true, func(ctx context.Context) (bool, error) {
		last = nil
		for _, version := range versions {
			last = errors.Join(last, c.networks.RESTClient().Get().AbsPath("/apis/"+samplecrdv1.GroupName, version, "networks").Do(ctx).Error())
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the aggregator does not serve the group: %v", last)
	}
}

// waitCollected waits until the garbage collector of the cluster has found
// Networks, which it looks for twice a minute.
func (c *cluster) waitCollected(t *testing.T) {
	t.Helper()
	c.kubectl(t, "create", "-f", absolute(t, "../../artifacts/example/example-network.yaml"))
	c.kubectl(t, "delete", "network", "example-network", "--cascade=foreground", "--timeout=3m")
}

// newNamespace makes a namespace. It stays: what is in it may outlive the test.
func (c *cluster) newNamespace(t testing.TB, name string, annotations map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	if _, err := c.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// freePort returns one that was free a moment ago.
func freePort(t testing.TB) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// newProbe returns a client that asks as a kubelet does, who does not verify
// either.
func newProbe() *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// probe sends one request, and is not interested in the body of the answer.
func probe(ctx context.Context, client *http.Client, port int, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err == nil {
		response.Body.Close()
	}
	return response, err
}

func ready(ctx context.Context, port int) bool {
	client := newProbe()
	defer client.CloseIdleConnections()
	response, err := probe(ctx, client, port, "/readyz")
	return err == nil && response.StatusCode == http.StatusOK
}
