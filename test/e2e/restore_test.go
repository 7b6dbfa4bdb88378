package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// declarations are of the kinds that a restore might get wrong.
var declarations = []string{
	`{cidr: 10.0.0.0/24}`,
	`{cidr: 10.0.0.0/24, gateway: None, dhcp: Disabled, adminState: Down}`,
	`{cidr: 10.0.0.0/24, gateway: 10.0.0.9, deletionPolicy: Retain, additionalSubnets: [{cidr: "fd00:1::/64", dhcp: Enabled}]}`,
	`{cidr: 10.0.0.0/24, mtu: 1400, allocationPools: [{start: 10.0.0.50, end: 10.0.0.60}], dnsNameservers: [192.0.2.53],
  hostRoutes: [{destination: 10.5.0.0/16, nextHop: 10.0.0.5}]}`,
}

// TestRestore loses etcd, and then the whole data directory, and makes the
// Networks anew from a backup as docs/backup.md says: each has the network that
// it had, and there nothing changes but the owner marker.
func TestRestore(t *testing.T) {
	cloud, dir := newCloud(t), dataDir(t)
	manifests := writeManifests(t, cloud.networks, cloud.makeByHand(t))
	s := cloud.start(t, dir, "demo")
	s.kubectl(t, "apply", "-f", manifests)
	// By the time of a restore it has another UID, or none.
	s.kubectl(t, "patch", "network", "net-0", "--type=merge",
		"--patch", `{"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "net-0", "uid": "lost"}]}}`)
	before := allNetworks(t, s)
	if len(before) != cloud.networks {
		t.Fatalf("%d Networks are there, want %d", len(before), cloud.networks)
	}
	there := cloud.resources(t)
	for _, lost := range []string{"etcd", "."} {
		cluster, restore := clusterID(t, dir), backUp(t, s, dir)
		s.stop(t)
		if err := os.RemoveAll(filepath.Join(dir, lost)); err != nil {
			t.Fatal(err)
		}
		s = cloud.start(t, dir, "demo")
		restore(s)
		s.kubectl(t, "apply", "-f", manifests) // as they do who keep manifests
		after := allNetworks(t, s)
		if diff := cmp.Diff(declaredAndKnown(before), declaredAndKnown(after)); diff != "" {
			t.Errorf("the Networks restored after the loss of %s are (-before +after):\n%s", lost, diff)
		}
		if owners := after["default/net-0"].OwnerReferences; len(owners) > 0 {
			t.Errorf("after the loss of %s a Network is restored for owners that are gone, %v: a garbage collector deletes it", lost, owners)
		}
		markers := map[string]string{}
		for name, n := range before {
			markers[ownerMarker(cluster, n)] = ownerMarker(clusterID(t, dir), after[name])
		}
		want, got := normalized(there, markers), cloud.resources(t)
		if diff := cmp.Diff(want, normalized(got, nil), anyOrder); diff != "" {
			t.Errorf("a restore after the loss of %s left in Neutron (-want +got):\n%s", lost, diff)
		}
		before, there = after, got
	}

	s.kubectl(t, "delete", "networks", "--all", "--all-namespaces", "--timeout=3m")
	released := map[string]string{}
	for _, n := range before {
		released[ownerMarker(clusterID(t, dir), n)] = ""
		if n.Spec.DeletionPolicy == samplecrdv1.DeletionPolicyDelete {
			delete(there, n.Status.NetworkID)
			for _, subnet := range n.Status.Subnets {
				delete(there, subnet.ID)
			}
		}
	}
	if diff := cmp.Diff(normalized(there, released), normalized(cloud.resources(t), nil), anyOrder); diff != "" {
		t.Errorf("the end of the Networks that were restored left in Neutron (-want +got):\n%s", diff)
	}
}

// makeByHand makes a network that is none of ours, and returns its id.
func (c *cloud) makeByHand(t *testing.T) string {
	t.Helper()
	var answer map[string]resource
	c.call(t, "demo", http.MethodPost, "/v2.0/networks", `{"network": {"name": "by hand", "description": "rack [7]  "}}`, &answer)
	id := answer["network"]["id"].(string)
	for _, cidr := range []string{"10.1.0.0/24", "10.2.0.0/24"} {
		body := fmt.Sprintf(`{"subnet": {"network_id": %q, "ip_version": 4, "cidr": %q, "description": "two of them"}}`, id, cidr)
		c.call(t, "demo", http.MethodPost, "/v2.0/subnets", body, &answer)
	}
	return id
}

// writeManifests declares a Network that takes over the network given and one
// of its subnets, and so many others that they are count.
func writeManifests(t *testing.T, count int, networkID string) (path string) {
	t.Helper()
	manifests := &strings.Builder{}
	add := func(namespace, name, spec string) {
		fmt.Fprintf(manifests, "---\napiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata: {namespace: %s, name: %s, labels: {from: manifest}}\nspec: %s\n",
			namespace, name, spec)
	}
	add("elsewhere", "by-hand", fmt.Sprintf("{cidr: 10.1.0.0/24, openStack: {networkID: %s}}", networkID))
	for i := range count - 1 {
		add("default", fmt.Sprintf("net-%d", i), declarations[i%len(declarations)])
	}
	path = filepath.Join(t.TempDir(), "networks.yaml")
	if err := os.WriteFile(path, []byte(manifests.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// allNetworks waits until all Networks are ready and returns them by name.
func allNetworks(t *testing.T, s *server) map[string]samplecrdv1.Network {
	t.Helper()
	all := map[string]samplecrdv1.Network{}
	for _, n := range converge(t, newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceAll)) {
		all[n.Namespace+"/"+n.Name] = n
	}
	return all
}

// declaredAndKnown leaves of each Network what a restore must not change. That
// it declares the network that it has is what a restore is.
func declaredAndKnown(networks map[string]samplecrdv1.Network) map[string]samplecrdv1.Network {
	all := map[string]samplecrdv1.Network{}
	for name, n := range networks {
		n = *n.DeepCopy()
		delete(n.Annotations, samplecrdv1.AnnotationTakeOverFrom)
		n.ObjectMeta = metav1.ObjectMeta{Labels: n.Labels, Annotations: n.Annotations}
		if n.Spec.OpenStack == nil {
			n.Spec.OpenStack = &samplecrdv1.OpenStack{}
		}
		n.Spec.OpenStack.NetworkID = n.Status.NetworkID
		n.Status.Conditions, n.Status.ObservedGeneration = nil, 0
		all[name] = n
	}
	return all
}

// anyMarker matches a description that bears an owner marker.
var anyMarker = regexp.MustCompile(`^(.*?)(?: \[)?(samplecrd\.k8s\.io/[^/\]]+/[^/\]]+)\]?$`)

// normalized leaves out what each write raises, and replaces owner markers.
func normalized(resources map[string]resource, markers map[string]string) map[string]resource {
	all := map[string]resource{}
	for id, r := range resources {
		r = maps.Clone(r)
		delete(r, "revision_number")
		delete(r, "updated_at")
		if m := anyMarker.FindStringSubmatch(r["description"].(string)); m != nil {
			text, marker := m[1], m[2]
			if replacement, ok := markers[marker]; ok {
				marker = replacement
			}
			r["description"] = []any{text, marker}
			if marker == "" {
				r["description"] = text
			}
		}
		all[id] = r
	}
	return all
}

func ownerMarker(cluster string, n samplecrdv1.Network) string {
	return "samplecrd.k8s.io/" + cluster + "/" + string(n.UID)
}

// clusterID returns what a server without --cluster-id keeps.
func clusterID(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "cluster-id"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}
