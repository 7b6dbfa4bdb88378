//go:build kube

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

// testController runs network-controller outside of a server that has no
// controller. It is started before there is anything to control.
func (c *cluster) testController(t *testing.T) {
	// retries are waited for before there is an API. Each is one line, and there
	// are some at the start.
	const retries, lines = 4, 20
	o, kubeconfig := newCloud(t), c.makeOutsideAccount(t)
	networks := c.networks.SamplecrdV1().Networks(c.newNamespace(t, "outside", nil))
	first := c.startController(t, o, kubeconfig)
	began := time.Now()
	first.waitLogged(t, "Failed to watch", retries)
	logged := strings.Count(first.log.String(), "\n")
	t.Logf("in %v without the API network-controller logged %d lines", time.Since(began), logged)
	if logged > lines {
		t.Errorf("without the API network-controller logged %d lines:\n%s", logged, first.log)
	}

	r := c.startReplica(t, o, "--etcd-prefix=/outside", "--controller=false")
	c.waitServed(t)
	for _, name := range []string{"one", "two"} {
		createNetwork(t, networks, name)
	}
	c.checkNetworks(t, o, networks)
	want, there := statuses(converge(t, networks)), o.resources(t)

	first.stop(t)
	if first.err != nil {
		t.Errorf("after SIGTERM network-controller ended with: %v", first.err)
	}
	if diff := cmp.Diff(want, statuses(converge(t, networks))); diff != "" {
		t.Errorf("without a controller the Networks are (-before +after):\n%s", diff)
	}
	createNetwork(t, networks, "three")
	second := c.startController(t, o, kubeconfig)
	c.checkNetworks(t, o, networks)
	after := o.resources(t)
	for id, before := range there {
		if diff := cmp.Diff(before, after[id], anyOrder); diff != "" {
			t.Errorf("with a second controller %s is (-before +after):\n%s", id, diff)
		}
	}
	if holder := c.leader(t).HolderIdentity; holder == nil || *holder == "" {
		t.Error("nobody holds the Lease")
	}
	c.testRights(t, o, networks)
	if err := networks.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	c.checkNetworks(t, o, networks)
	second.stop(t)
	c.kubectl(t, "delete", "clusterrolebinding", outsideAccount)
	c.kubectl(t, "delete", "serviceaccount,rolebinding", outsideAccount, "-n", serverNamespace)
	for _, s := range []*server{first, second} {
		if strings.Contains(s.log.String(), "forbidden") {
			t.Errorf("network-controller lacks a right:\n%s", s.log)
		}
	}
	if strings.Contains(r.log.String(), "Starting Network control loop") {
		t.Error("a server with --controller=false has run the controller")
	}
}

// testRights has network-controller use what else its role gives.
func (c *cluster) testRights(t *testing.T, o *cloud, networks typedv1.NetworkInterface) {
	t.Helper()
	const namespace = "outside"
	c.repeatEvent(t, namespace)
	converge(t, networks)
	c.kubectl(t, "annotate", "deployment", "deployed", "--namespace="+namespace, samplecrdv1.AnnotationNetwork+"-")
	c.kubectl(t, "wait", "network", "deployed", "--namespace="+namespace, "--for=delete", "--timeout=1m")
	c.kubectl(t, "delete", "deployment", "deployed", "--namespace="+namespace)

	c.putSecret(t, namespace, o, "other")
	c.kubectl(t, "create", "rolebinding", network.CredentialsBinding, "--namespace="+namespace,
		"--clusterrole="+network.CredentialsRole, "--serviceaccount="+serverNamespace+":"+outsideAccount)
	if _, err := networks.Create(t.Context(), withLab(newTestNetwork("lab", "10.0.0.0/24")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.checkNetworks(t, o, networks)
}

const outsideAccount = "network-controller"

// makeOutsideAccount makes one with the roles that docs/install.md
// names, and no other, and returns a kubeconfig for it.
func (c *cluster) makeOutsideAccount(t *testing.T) (path string) {
	t.Helper()
	const name = outsideAccount
	subject := "--serviceaccount=" + serverNamespace + ":" + name
	c.kubectl(t, "create", "serviceaccount", name, "-n", serverNamespace)
	c.kubectl(t, "create", "clusterrolebinding", name, "--clusterrole=network-controller", subject)
	c.kubectl(t, "create", "rolebinding", name, "-n", serverNamespace, "--role=network-apiserver", subject)
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(c.kubectl(t, "create", "token", name, "-n", serverNamespace))
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *cluster) startController(t *testing.T, o *cloud, kubeconfig string) *server {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "network-controller",
		"-kubeconfig", kubeconfig, "-alsologtostderr=true", "-os-cloud", osCloud,
		"-leader-elect-resource-namespace", serverNamespace)
	command.Env = []string{"OS_CLIENT_CONFIG_FILE=" + o.configFile}
	s := &server{log: &output{}, ended: make(chan struct{})}
	command.Stdout, command.Stderr = s.log, s.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = command.Process
	go func() {
		defer close(s.ended)
		s.err = command.Wait()
	}()
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			t.Logf("network-controller, process %d:\n%s", s.process.Pid, s.log)
		}
	})
	return s
}
