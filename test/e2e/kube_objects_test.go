//go:build kube

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/kube-openapi/pkg/util/proto"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

// testObjects has the cluster treat Networks as it treats all other objects:
// each test has a namespace of its own, and one server is behind them.
func (c *cluster) testObjects(t *testing.T) {
	o := newCloud(t)
	r := c.startReplica(t, o, "--etcd-prefix=/objects", "--resync-period=1s", "--deployment-cidr-pool="+deploymentPool)
	c.waitServed(t)
	t.Run("APIService", c.testAPIService)
	t.Run("Clients", c.testClients)
	t.Run("OpenAPI", c.testOpenAPI)
	t.Run("Policies", c.testPolicies)
	t.Run("DefaultCredentials", func(t *testing.T) { c.testDefaultCredentials(t, o) })
	t.Run("SwappedSecret", func(t *testing.T) { c.testSwappedSecret(t, o, r.log) })
	t.Run("Revocation", func(t *testing.T) { c.testRevocation(t, o) })
	c.waitCollected(t)
	t.Run("Quota", c.testQuota)
	t.Run("Owners", c.testOwners)
	t.Run("Deployments", func(t *testing.T) { c.testDeployments(t, o) })
}

// until waits until there is no error.
func until(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, eventuallyDeadline, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, eventuallyDeadline, last)
	}
}

// gone turns an answer into an error while there still is something.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		return errors.New("it is still there")
	}
	return err
}

// watchDeadline ends a watch that tells of less than is waited for, in seconds.
var watchDeadline = new(int64(eventuallyDeadline / time.Second))

func newTestNetwork(name, cidr string) *samplecrdv1.Network {
	return &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made-by": "e2e"}},
		Spec:       samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: cidr}},
	}
}

// testAPIService reads what the conformance tests of Kubernetes read of an API
// server like ours: the registration, its status, and discovery.
func (c *cluster) testAPIService(t *testing.T) {
	clients, err := aggregator.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2alpha1"} {
		name := version + "." + samplecrdv1.GroupName
		until(t, "APIService "+name+" is available", func(ctx context.Context) error {
			s, err := clients.ApiregistrationV1().APIServices().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if s.Spec.InsecureSkipTLSVerify || len(s.Spec.CABundle) == 0 {
				t.Errorf("APIService %s: insecureSkipTLSVerify is %t, caBundle has %d bytes", name, s.Spec.InsecureSkipTLSVerify, len(s.Spec.CABundle))
			}
			return available(s)
		})
		var status apiregistrationv1.APIService
		err := clients.ApiregistrationV1().RESTClient().Get().Resource("apiservices").Name(name).SubResource("status").Do(t.Context()).Into(&status)
		if err == nil {
			err = available(&status)
		}
		if err != nil {
			t.Errorf("the status of APIService %s: %v", name, err)
		}

		list, err := c.kube.Discovery().ServerResourcesForGroupVersion(samplecrdv1.GroupName + "/" + version)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, r := range list.APIResources {
			got[r.Name] = slices.Sorted(slices.Values(r.Verbs))
		}
		want := map[string][]string{
			"networks":        {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			"networks/status": {"get", "patch", "update"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("resources of %s (-want +got):\n%s", version, diff)
		}
	}
	groups, err := c.kube.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == samplecrdv1.GroupName })
	if i < 0 || groups.Groups[i].PreferredVersion.Version != "v1" || len(groups.Groups[i].Versions) != 2 {
		t.Errorf("among the groups is not ours with two versions, v1 preferred: %+v", groups.Groups)
	}
}

func available(s *apiregistrationv1.APIService) error {
	for _, condition := range s.Status.Conditions {
		if condition.Type == apiregistrationv1.Available && condition.Status == apiregistrationv1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is not available: %+v", s.Status.Conditions)
}

// testClients goes through the life of Networks with the clients that Go
// programs use.
func (c *cluster) testClients(t *testing.T) {
	namespace := c.newNamespace(t, "clients", nil)
	t.Run("typed", func(t *testing.T) { testTyped(t, c.networks.SamplecrdV1().Networks(namespace)) })
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	for version, spec := range map[string]map[string]any{
		"v1":       {"cidr": "10.1.0.0/24"},
		"v2alpha1": {"subnets": []any{map[string]any{"cidr": "10.1.0.0/24"}}},
	} {
		t.Run("dynamic "+version, func(t *testing.T) {
			resource := samplecrdv1.SchemeGroupVersion.WithResource("networks")
			resource.Version = version
			testDynamic(t, client.Resource(resource).Namespace(namespace), version, spec)
		})
	}
}

func testTyped(t *testing.T, networks typedv1.NetworkInterface) {
	ctx := t.Context()
	list, err := networks.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Fatalf("at first there are %d Networks (%v)", len(list.Items), err)
	}
	watching, err := networks.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: watchDeadline})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if _, err := networks.Create(ctx, newTestNetwork("one", "10.0.0.0/24"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := networks.Create(ctx, newTestNetwork("one", "10.0.0.0/24"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second Network of that name is answered with %v", err)
	}
	one := converge(t, networks)[0]
	if one.Status.NetworkID == "" {
		t.Errorf("nothing was made in Neutron: %+v", one.Status)
	}
	got, err := networks.Get(ctx, "one", metav1.GetOptions{})
	if err != nil || got.UID != one.UID {
		t.Errorf("got %v (%v), want the Network of the list", got, err)
	}
	got, err = networks.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"gateway":"10.0.0.9"}}`), metav1.PatchOptions{})
	if err != nil || got.Spec.Gateway != "10.0.0.9" || got.Generation != 2 {
		t.Errorf("patched it is %+v (%v)", got, err)
	}
	if err := networks.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the Network is gone", func(ctx context.Context) error {
		_, err := networks.Get(ctx, "one", metav1.GetOptions{})
		return gone(err)
	})
	seen := []watch.EventType{}
	for event := range watching.ResultChan() {
		if n, ok := event.Object.(*samplecrdv1.Network); !ok || n.UID != one.UID {
			t.Fatalf("the watch tells of %v", event)
		}
		if len(seen) == 0 || seen[len(seen)-1] != event.Type {
			seen = append(seen, event.Type)
		}
		if event.Type == watch.Deleted {
			break
		}
	}
	if diff := cmp.Diff([]watch.EventType{watch.Added, watch.Modified, watch.Deleted}, seen); diff != "" {
		t.Errorf("the watch tells (-want +got):\n%s", diff)
	}

	for i := range 3 {
		if _, err := networks.Create(ctx, newTestNetwork(fmt.Sprint("net-", i), "10.0.0.0/24"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	createNetwork(t, networks, "without-label")
	if err := networks.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "made-by=e2e"}); err != nil {
		t.Fatal(err)
	}
	if left := converge(t, networks); len(left) != 1 || left[0].Name != "without-label" {
		t.Errorf("of the collection is left %v", left)
	}
	if err := networks.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := converge(t, networks); len(left) > 0 {
		t.Errorf("of everything is left %v", left)
	}
}

func testDynamic(t *testing.T, networks dynamic.ResourceInterface, version string, spec map[string]any) {
	ctx := t.Context()
	list, err := networks.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watching, err := networks.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: watchDeadline})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for _, name := range []string{"one", "two"} {
		_, err := networks.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": samplecrdv1.GroupName + "/" + version, "kind": "Network",
			"metadata": map[string]any{"name": name}, "spec": spec,
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := networks.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	one, err := networks.Get(ctx, "one", metav1.GetOptions{})
	if err != nil || one.GetLabels()["a"] != "b" {
		t.Errorf("patched it is %v (%v)", one, err)
	}
	if list, err = networks.List(ctx, metav1.ListOptions{LabelSelector: "a=b"}); err != nil || len(list.Items) != 1 {
		t.Errorf("with the label there are %v (%v), want one", list, err)
	}
	if err := networks.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := networks.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	until(t, "all Networks are gone", func(ctx context.Context) error {
		list, err := networks.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("left are %d", len(list.Items))
		}
		return err
	})
	deleted := 0
	for event := range watching.ResultChan() {
		if event.Type == watch.Deleted {
			deleted++
		}
		if deleted == 2 {
			break
		}
	}
	if deleted != 2 {
		t.Errorf("the watch tells of %d deletions, want 2", deleted)
	}
}

// testOpenAPI reads the description of the whole cluster as clients do.
func (c *cluster) testOpenAPI(t *testing.T) {
	until(t, "the description of the cluster has both Networks", func(context.Context) error {
		document, err := c.kube.Discovery().OpenAPISchema()
		if err != nil {
			return err
		}
		models, err := proto.NewOpenAPIData(document)
		if err != nil {
			return err
		}
		ours := 0
		for _, name := range models.ListModels() {
			// A copy under another name, _v2, is of a library of another version.
			if strings.ContainsAny(name, "/~_") {
				t.Errorf("a definition is named %q", name)
			}
			if strings.Contains(name, "samplecrd") && strings.HasSuffix(name, ".Network") {
				ours++
			}
		}
		if ours != 2 {
			return fmt.Errorf("it has %d", ours)
		}
		t.Logf("%d definitions", len(models.ListModels()))
		return nil
	})
	for _, format := range []string{"plaintext", "plaintext-openapiv2"} {
		for field, want := range map[string]string{
			"networks.spec.cidr": "cidr <string>", "networks.status.networkID": "networkID <string>", "deployments.spec.replicas": "replicas <integer>",
		} {
			got := strings.Join(strings.Fields(c.kubectl(t, "explain", field, "--output="+format)), " ")
			if !strings.Contains(strings.ReplaceAll(got, ":", ""), want) {
				t.Errorf("kubectl explain %s as %s is %q, want in it %q", field, format, got, want)
			}
		}
	}
}
