//go:build kube

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// testUninstall runs artifacts/uninstall.sh with Networks that are real in
// Neutron, and looks for anything that is left.
func (c *cluster) testUninstall(t *testing.T) {
	cloud := newCloud(t)
	r := c.startReplica(t, cloud, "--etcd-prefix=/uninstall")
	c.waitServed(t)
	nothing := cloud.resources(t)
	namespace := c.newNamespace(t, "uninstalled", nil)
	networks := c.networks.SamplecrdV1().Networks(namespace)
	for _, name := range []string{"a", "b", "c"} {
		createNetwork(t, networks, name)
	}
	// Deployments would get theirs again.
	for _, name := range []string{"asks", "asks-not"} {
		c.kubectl(t, "create", "deployment", name, "--image=any", "--replicas=0", "-n", namespace)
	}
	c.kubectl(t, "annotate", "deployment", "asks", "-n", namespace, samplecrdv1.AnnotationNetwork+"=true")
	until(t, "the Deployment has a Network", func(ctx context.Context) error {
		_, err := networks.Get(ctx, "asks", metav1.GetOptions{})
		return err
	})
	converge(t, networks)
	if len(cloud.resources(t)) == len(nothing) || len(c.ours(t)) == 0 {
		t.Fatal("there is nothing to leave behind")
	}
	c.uninstallRefused(t, "/no/overlay", "/no/overlay")
	if left := cloud.resources(t); len(left) == len(nothing) {
		t.Error("with an overlay that is not there the Networks are deleted")
	}
	kubelet := make(chan error, 1)
	c.hold(t)
	go func() { kubelet <- c.stopWithDeployment(t, r) }()
	c.script(t, absolute(t, "../../artifacts/uninstall.sh"), c.overlay(t, "self-registered"))
	if err := <-kubelet; err != nil {
		t.Errorf("stopping the server with its Deployment: %v", err)
	}
	if left := cloud.resources(t); len(left) != len(nothing) {
		t.Errorf("left in Neutron: %v", left)
	}
	if left := c.ours(t); len(left) > 0 {
		t.Errorf("left in the cluster: %q", left)
	}
	c.script(t, absolute(t, "../../artifacts/uninstall.sh"), c.overlay(t, "self-registered")) // as after one that was interrupted
	// With an API that nobody serves this would not end.
	c.kubectl(t, "delete", "namespace", namespace, "--timeout=1m")

	// As after an installation that never worked.
	c.kubectl(t, "apply", "-f", absolute(t, "../../artifacts/overlays/cert-manager/apiservice.yaml"))
	c.uninstallRefused(t, c.overlay(t, "self-registered"), "Networks can't be read, so nothing was deleted")
	c.kubectl(t, "delete", "apiservice", "v1.samplecrd.k8s.io")
	c.script(t, absolute(t, "../../artifacts/uninstall.sh"), c.overlay(t, "self-registered"))
	if left := c.ours(t); len(left) > 0 {
		t.Errorf("left in the cluster: %q", left)
	}
}

// uninstallRefused expects artifacts/uninstall.sh to say why it does nothing.
func (c *cluster) uninstallRefused(t *testing.T, overlay, why string) {
	t.Helper()
	output, err := c.tryScript(t, nil, t.TempDir(), absolute(t, "../../artifacts/uninstall.sh"), overlay)
	if err == nil || !strings.Contains(output, why) {
		t.Errorf("uninstall.sh %s: %v, want an error with %q:\n%s", overlay, err, why, output)
	}
}

// hold has the Deployment stay until its process has ended, as Pods do.
func (c *cluster) hold(t *testing.T) {
	t.Helper()
	c.kubectl(t, "patch", "deployment", "network-apiserver", "--namespace="+serverNamespace, "--type=merge",
		"--patch", `{"metadata":{"finalizers":["samplecrd.k8s.io/e2e"]}}`)
}

// stopWithDeployment stops the server as a kubelet does.
func (c *cluster) stopWithDeployment(t *testing.T, r *replica) error {
	deployments := c.kube.AppsV1().Deployments(serverNamespace)
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, convergeDeadline, true, func(ctx context.Context) (bool, error) {
		deployment, err := deployments.Get(ctx, "network-apiserver", metav1.GetOptions{})
		return err == nil && deployment.DeletionTimestamp != nil, err
	})
	r.stop(t)
	if err == nil {
		_, err = deployments.Patch(t.Context(), "network-apiserver", types.JSONPatchType,
			[]byte(`[{"op":"test","path":"/metadata/finalizers/0","value":"samplecrd.k8s.io/e2e"},{"op":"remove","path":"/metadata/finalizers/0"}]`), metav1.PatchOptions{})
	}
	return err
}

// ours are the objects, of all kinds, that are in the cluster for the server.
func (c *cluster) ours(t *testing.T) []string {
	t.Helper()
	client, err := metadata.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	// Where there was no server a while ago, kube-apiserver calls what it knows of
	// the group stale until it looks again.
	var lists []*metav1.APIResourceList
	var incomplete error
	err = wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, convergeDeadline, true, func(context.Context) (bool, error) {
		lists, incomplete = c.kube.Discovery().ServerPreferredResources()
		return incomplete == nil, nil
	})
	if err != nil {
		t.Fatal(incomplete)
	}
	var ours []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			objects, err := client.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("listing %s: %v", resource.Name, err)
			}
			for _, object := range objects.Items {
				named := object.Namespace == "" || object.Namespace == metav1.NamespaceSystem
				if object.Namespace == serverNamespace || version.Group == samplecrdv1.GroupName ||
					named && (strings.Contains(object.Name, "network-") || strings.Contains(object.Name, samplecrdv1.GroupName)) {
					ours = append(ours, resource.Name+"/"+object.Name)
				}
			}
		}
	}
	slices.Sort(ours)
	return ours
}
