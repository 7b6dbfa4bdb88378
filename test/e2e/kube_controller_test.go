//go:build kube

package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testController runs network-controller outside of a server that has no
// controller. It is started before there is anything to control.
func (c *cluster) testController(t *testing.T) {
	// retries are waited for before there is an API. Each is one line, and there
	// are some at the start.
	const retries, lines = 4, 20
	o := newCloud(t)
	networks := c.networks.SamplecrdV1().Networks(c.newNamespace(t, "outside", nil))
	first := c.startController(t, o)
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
	second := c.startController(t, o)
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
	if err := networks.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	c.checkNetworks(t, o, networks)
	second.stop(t)
	if strings.Contains(r.log.String(), "Starting Network control loop") {
		t.Error("a server with --controller=false has run the controller")
	}
}

// startController runs network-controller as the administrator of the cluster.
func (c *cluster) startController(t *testing.T, o *cloud) *server {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "network-controller",
		"-kubeconfig", c.kubeconfig, "-alsologtostderr=true", "-os-cloud", osCloud,
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
