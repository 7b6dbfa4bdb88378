//go:build kube

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
)

// giveCredentials puts a Secret lab into the namespace, whose cloud LAB leads to
// the project, and lets the controller at it as docs/credentials.md says.
func (c *cluster) giveCredentials(t *testing.T, namespace string, o *cloud, project string) {
	t.Helper()
	c.putSecret(t, namespace, o, project)
	c.kubectl(t, "create", "rolebinding", network.CredentialsBinding, "-n", namespace,
		"--clusterrole="+network.CredentialsRole, "--serviceaccount="+serverNamespace+":network-apiserver")
}

func (c *cluster) putSecret(t *testing.T, namespace string, o *cloud, project string) {
	t.Helper()
	content, err := os.ReadFile(o.configFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Clouds map[string]any }
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	cloudsYAML, err := json.Marshal(map[string]any{"clouds": map[string]any{"LAB": file.Clouds[project]}})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "lab", "namespace": namespace},
		"stringData": map[string]any{"clouds.yaml": string(cloudsYAML)},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/secret.json"
	if err := os.WriteFile(path, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "apply", "-f", path)
}

func withLab(n *samplecrdv1.Network) *samplecrdv1.Network {
	n.Spec.OpenStack = &samplecrdv1.OpenStack{CredentialsRef: &samplecrdv1.CredentialsRef{SecretName: "lab", CloudName: "LAB"}}
	return n
}

// testSwappedSecret has the Secret lead to another project, where nothing is
// found: that does not mean that it is gone.
func (c *cluster) testSwappedSecret(t *testing.T, o *cloud, log *output) {
	namespace := c.newNamespace(t, "swapped", nil)
	c.giveCredentials(t, namespace, o, "demo")
	networks := c.networks.SamplecrdV1().Networks(namespace)
	const count = 5
	for i := range count {
		if _, err := networks.Create(t.Context(), withLab(newTestNetwork(fmt.Sprint("net-", i), "10.0.0.0/24")), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before := statuses(converge(t, networks))
	there := o.resources(t)
	done := len(neutronLog.FindAllString(log.String(), -1))
	message := fmt.Sprintf("the network is in project %q of region %q, and the credentials are for project %q of region %[2]q",
		o.project(t, "demo"), "RegionOne", o.project(t, "other"))

	c.putSecret(t, namespace, o, "other")
	waitForAll(t, networks, count, func(n samplecrdv1.Network) bool {
		ready := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionReady)
		return ready.Status == metav1.ConditionTrue && ready.Reason == samplecrdv1.ReasonCredentialsUnavailable && ready.Message == message
	})
	// A change that the controller would carry out, were it the right place.
	c.kubectl(t, "patch", "network", "net-0", "-n", namespace, "--type=merge", "-p", `{"spec":{"gateway":"10.0.0.9"}}`)
	waitForAll(t, networks, count, func(n samplecrdv1.Network) bool {
		return n.Status.ObservedGeneration == n.Generation
	})
	c.kubectl(t, "patch", "network", "net-0", "-n", namespace, "--type=merge", "-p", `{"spec":{"gateway":null}}`)
	c.putSecret(t, namespace, o, "demo")
	if diff := cmp.Diff(before, statuses(converge(t, networks)), cmpopts.IgnoreFields(samplecrdv1.NetworkStatus{}, "ObservedGeneration")); diff != "" {
		t.Errorf("with the credentials of before the Networks are (-before +after):\n%s", diff)
	}
	if calls := neutronLog.FindAllString(log.String(), -1)[done:]; len(calls) > 0 {
		t.Errorf("meanwhile the controller went on to: %q", calls)
	}
	if diff := cmp.Diff(there, o.resources(t), anyOrder); diff != "" {
		t.Errorf("Neutron changed (-before +after):\n%s", diff)
	}
	c.kubectl(t, "delete", "network", "--all", "-n", namespace, "--timeout=1m")
}

// testRevocation has the owner of a namespace take the right back.
func (c *cluster) testRevocation(t *testing.T, o *cloud) {
	namespace := c.newNamespace(t, "revoked", nil)
	c.giveCredentials(t, namespace, o, "demo")
	networks := c.networks.SamplecrdV1().Networks(namespace)
	if _, err := networks.Create(t.Context(), withLab(newTestNetwork("one", "10.0.0.0/24")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	converge(t, networks)
	c.kubectl(t, "delete", "rolebinding", network.CredentialsBinding, "-n", namespace, "--timeout=1m")
	until(t, "the Network names the binding", func(ctx context.Context) error {
		n, err := networks.Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionReady)
		if ready.Reason != samplecrdv1.ReasonCredentialsUnavailable || !strings.Contains(ready.Message, network.CredentialsBinding) {
			return fmt.Errorf("it says %+v", ready)
		}
		return nil
	})
	c.kubectl(t, "create", "rolebinding", network.CredentialsBinding, "-n", namespace,
		"--clusterrole="+network.CredentialsRole, "--serviceaccount="+serverNamespace+":network-apiserver")
	converge(t, networks)
	// All at once, in a namespace that stays.
	c.kubectl(t, "delete", "network/one", "secret/lab", "rolebinding/"+network.CredentialsBinding, "-n", namespace, "--timeout=1m")
}

// testNamespaceDeletion deletes namespaces that are full of Networks; then more
// of them, and has no server run while the rest of their content is deleted.
func (c *cluster) testNamespaceDeletion(t *testing.T) {
	o := newCloud(t)
	r := c.startReplica(t, o, "--etcd-prefix=/namespaces")
	c.waitServed(t)
	for _, stopped := range []bool{false, true} {
		namespaces := []string{fmt.Sprint("full-", stopped), fmt.Sprint("full-lab-", stopped)}
		c.fill(t, o, namespaces[0], namespaces[1])
		started := time.Now()
		for _, namespace := range namespaces {
			c.kubectl(t, "delete", "namespace", namespace, "--wait=false")
		}
		if stopped {
			r.stop(t)
			c.balancer.remove(r.port)
			until(t, "the RoleBinding is deleted and stays", func(ctx context.Context) error {
				b, err := c.kube.RbacV1().RoleBindings(namespaces[1]).Get(ctx, network.CredentialsBinding, metav1.GetOptions{})
				if err == nil && b.DeletionTimestamp == nil {
					err = errors.New("it is not deleted")
				}
				return err
			})
			r = c.startReplica(t, o, "--etcd-prefix=/namespaces")
		}
		for _, namespace := range namespaces {
			c.waitNamespaceGone(t, namespace)
		}
		t.Logf("100 Networks in 2 namespaces, server stopped meanwhile: %t: gone after %v", stopped, time.Since(started).Round(time.Second))
		if left := o.resources(t); len(left) > 0 {
			t.Errorf("left in Neutron are %v", left)
		}
	}
}

// fill makes two namespaces with 50 ready Networks each, the second with
// credentials of its own.
func (c *cluster) fill(t *testing.T, o *cloud, plain, withSecret string) {
	t.Helper()
	const count = 50
	c.newNamespace(t, plain, nil)
	c.newNamespace(t, withSecret, nil)
	c.giveCredentials(t, withSecret, o, "other")
	for i := range count {
		n := newTestNetwork(fmt.Sprint("net-", i), "10.0.0.0/24")
		if _, err := c.networks.SamplecrdV1().Networks(plain).Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.networks.SamplecrdV1().Networks(withSecret).Create(t.Context(), withLab(n), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for namespace, project := range map[string]string{plain: "demo", withSecret: "other"} {
		want := o.project(t, project)
		for _, n := range converge(t, c.networks.SamplecrdV1().Networks(namespace)) {
			if n.Status.ProjectID != want {
				t.Errorf("Network %s/%s is in project %s, want %s", namespace, n.Name, n.Status.ProjectID, want)
			}
		}
	}
	if got := len(o.resources(t)); got != 4*count {
		t.Errorf("Neutron has %d networks and subnets, want %d", got, 4*count)
	}
}

// waitNamespaceGone tells what is in the way.
func (c *cluster) waitNamespaceGone(t *testing.T, name string) {
	t.Helper()
	until(t, "namespace "+name+" is gone", func(ctx context.Context) error {
		namespace, err := c.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			conditions := slices.DeleteFunc(namespace.Status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Status != corev1.ConditionTrue })
			return fmt.Errorf("its conditions are %+v", conditions)
		}
		return gone(err)
	})
}
