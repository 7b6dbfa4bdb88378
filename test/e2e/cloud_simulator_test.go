//go:build !openstack

package e2e

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

// newCloud returns a simulator of Neutron and Keystone that outlives the
// servers of the test.
func newCloud(t testing.TB) *cloud {
	t.Helper()
	openStack, err := simulator.New(simulator.Options{TokenLifetime: 2 * tokenMargin})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(openStack)
	t.Cleanup(func() {
		listener.Close()
		if err := openStack.Close(); err != nil {
			t.Error(err)
		}
	})
	return &cloud{configFile: writeClouds(t, listener.URL), neutron: listener.URL, networks: 20}
}

// writeClouds writes a clouds.yaml for the simulator at that URL.
func writeClouds(t testing.TB, url string) (path string) {
	t.Helper()
	named := map[string]any{}
	for _, name := range []string{osCloud, "other", "admin"} {
		named[name] = map[string]any{"region_name": "RegionOne", "auth": map[string]string{
			"auth_url": url + "/identity/v3", "project_name": name, "project_domain_id": "default",
			"username": name, "password": name, "user_domain_id": "default",
		}}
	}
	// JSON is YAML.
	content, err := json.Marshal(map[string]any{"clouds": named})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// backUp does what docs/backup.md tells to, without jq, which not every machine
// has. restore makes the Networks anew.
func backUp(t *testing.T, s *server, dir string) (restore func(*server)) {
	t.Helper()
	backup, cluster := s.kubectl(t, "get", "networks", "--all-namespaces", "-o", "json"), clusterID(t, dir)
	return func(s *server) {
		t.Helper()
		var list samplecrdv1.NetworkList
		if err := json.Unmarshal([]byte(backup), &list); err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(filepath.Join(t.TempDir(), "networks.json"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		manifests := json.NewEncoder(file)
		for _, n := range list.Items {
			if n.Spec.OpenStack == nil {
				n.Spec.OpenStack = &samplecrdv1.OpenStack{}
			}
			n.Spec.OpenStack.NetworkID = n.Status.NetworkID
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, samplecrdv1.AnnotationTakeOverFrom, ownerMarker(cluster, n))
			delete(n.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
			n.UID, n.ResourceVersion, n.OwnerReferences, n.Status = "", "", nil, samplecrdv1.NetworkStatus{}
			if err := manifests.Encode(n); err != nil {
				t.Fatal(err)
			}
		}
		s.kubectl(t, "create", "-f", file.Name())
	}
}
