package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestGenerationCountsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	if got := n.create(newNetwork("one", func(n *samplecrdv1.Network) { n.Generation = 7 })).Generation; got != 1 {
		t.Errorf("got generation %d of a new Network, want 1", got)
	}
	n.awaitReady("one")
	// Keeps the object once it is deleted.
	n.edit("one", func(n *samplecrdv1.Network) { n.Finalizers = append(n.Finalizers, "example.com/test") })
	for _, step := range []struct {
		name           string
		act            func()
		wantGeneration int64
	}{
		{"a label does not count", func() { n.edit("one", func(n *samplecrdv1.Network) { n.Labels = map[string]string{"a": "b"} }) }, 1},
		{"a generation that is sent does not count", func() { n.edit("one", func(n *samplecrdv1.Network) { n.Generation = 9 }) }, 1},
		{"an explicit default does not count", func() { n.edit("one", func(n *samplecrdv1.Network) { n.Spec.AdminState = samplecrdv1.AdminStateUp }) }, 1},
		{"an empty list does not count", func() { n.edit("one", func(n *samplecrdv1.Network) { n.Spec.DNSNameservers = []string{} }) }, 1},
		{"a status does not count", func() { n.writeStatus("one", func(n *samplecrdv1.Network) { n.Status.MTU = new(int32(1)) }) }, 1},
		{"a change of spec counts once", func() {
			n.edit("one", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)); n.Spec.Gateway = "192.168.0.9" })
		}, 2},
		{"a deletion counts once", func() { n.delete("one") }, 3},
		{"a second deletion does not count", func() { n.delete("one") }, 3},
	} {
		step.act()
		if got := n.get("one").Generation; got != step.wantGeneration {
			t.Errorf("%s: got generation %d, want %d", step.name, got, step.wantGeneration)
		}
	}
	n.edit("one", func(n *samplecrdv1.Network) {
		n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == "example.com/test" })
	})
	n.awaitGone("one")
}

// writeStatus changes the newest state of a status.
func (n networks) writeStatus(name string, tweak func(*samplecrdv1.Network)) *samplecrdv1.Network {
	n.t.Helper()
	network := n.get(name)
	tweak(network)
	written, err := n.UpdateStatus(n.t.Context(), network, metav1.UpdateOptions{})
	if err != nil {
		n.t.Fatalf("writing the status of %s: %v", name, err)
	}
	return written
}

func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	t.Parallel()
	// Without the controller nobody else writes.
	s := newServer(t, "--controller=false")
	n := s.networks(t)
	created := n.create(newNetwork("one", func(n *samplecrdv1.Network) {
		n.Status = samplecrdv1.NetworkStatus{NetworkID: "forged", ProjectID: "forged"}
	}))
	if diff := cmp.Diff(samplecrdv1.NetworkStatus{}, created.Status); diff != "" {
		t.Errorf("the status sent with a new Network is kept (-want +got):\n%s", diff)
	}

	written := n.writeStatus("one", func(n *samplecrdv1.Network) {
		n.Status.NetworkID = "known"
		n.Spec.CIDR = "10.0.0.0/24"
		n.Labels = map[string]string{"a": "b"}
		n.Annotations = map[string]string{"a": "b"}
		n.Finalizers = nil
		n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "a"}}
	})
	want := created.DeepCopy()
	want.Status.NetworkID = "known"
	want.ResourceVersion, want.ManagedFields = written.ResourceVersion, written.ManagedFields
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("a write of the status (-want +got):\n%s", diff)
	}

	edited := n.edit("one", func(n *samplecrdv1.Network) {
		n.Status = samplecrdv1.NetworkStatus{NetworkID: "forged"}
		n.Spec.Gateway = "192.168.0.9"
	})
	if edited.Status.NetworkID != "known" || edited.Spec.Gateway != "192.168.0.9" {
		t.Errorf("got status %+v and gateway %s, want the old status and the new gateway", edited.Status, edited.Spec.Gateway)
	}
	for _, version := range apiVersions {
		got := s.send(t, request{
			method: http.MethodPatch, path: n.path(version, "one", "status"), header: map[string]string{"Content-Type": mergePatch},
			body: `{"metadata":{"labels":{"a":"b"}},"spec":{"mtu":1400},"status":{"conditions":[{"type":"Ready","status":"Maybe"}]}}`,
		})
		if _, ok := got.causes(t)["status.conditions[0].status"]; got.status != http.StatusUnprocessableEntity || !ok {
			t.Errorf("%s: got HTTP %d %s of a condition that is none, want 422 with its field", version, got.status, got.body)
		}
	}
}

func TestTheFinalizerStaysUntilTheDeletion(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--controller=false")
	n := s.networks(t)
	want := []string{samplecrdv1.NeutronFinalizer}
	for _, version := range apiVersions {
		name := "of-" + version
		path := n.path(version, name)
		manifest := fmt.Sprintf(manifests[version], name, "")
		write := func(method, path, contentType, body string) answer {
			t.Helper()
			got := s.send(t, request{method: method, path: path, header: map[string]string{"Content-Type": contentType}, body: body})
			if got.status >= 300 {
				t.Fatalf("%s %s: got HTTP %d %s", method, path, got.status, got.body)
			}
			return got
		}
		write(http.MethodPost, n.path(version), jsonType, manifest)
		for _, step := range []struct{ name, method, contentType, body string }{
			{"a replacement by the file", http.MethodPut, jsonType, strings.Replace(manifest, `"name"`, `"resourceVersion":"`+n.get(name).ResourceVersion+`","name"`, 1)},
			{"a merge patch", http.MethodPatch, mergePatch, `{"metadata":{"finalizers":null}}`},
			{"a JSON patch", http.MethodPatch, jsonPatch, `[{"op":"remove","path":"/metadata/finalizers"}]`},
		} {
			write(step.method, path, step.contentType, step.body)
			if diff := cmp.Diff(want, n.get(name).Finalizers); diff != "" {
				t.Errorf("%s: finalizers after %s (-want +got):\n%s", version, step.name, diff)
			}
		}
		write(http.MethodDelete, path, jsonType, "")
		if n.get(name).DeletionTimestamp == nil {
			t.Fatalf("%s: the object has no deletion timestamp", version)
		}
		write(http.MethodPatch, path, mergePatch, `{"metadata":{"finalizers":null}}`)
		if _, err := n.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got error %v once the finalizer is off, want NotFound", version, err)
		}
	}
}

func TestWritesThatAreRefused(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("one"))
	n.awaitReady("one")
	for _, version := range apiVersions {
		for name, tc := range map[string]struct {
			method, path, body string
			wantStatus         int
			wantText           string
		}{
			"a replacement without a version":    {http.MethodPut, "one", fmt.Sprintf(manifests[version], "one", ""), http.StatusUnprocessableEntity, "metadata.resourceVersion"},
			"a replacement of what is not there": {http.MethodPut, "none", fmt.Sprintf(manifests[version], "none", ""), http.StatusNotFound, "not found"},
			"a replacement under another name":   {http.MethodPut, "one", fmt.Sprintf(manifests[version], "two", ""), http.StatusBadRequest, "does not match"},
			"a second one of the name":           {http.MethodPost, "", fmt.Sprintf(manifests[version], "one", ""), http.StatusConflict, "already exists"},
			"one with a version":                 {http.MethodPost, "", strings.Replace(fmt.Sprintf(manifests[version], "two", ""), `"name"`, `"resourceVersion":"5","name"`, 1), http.StatusInternalServerError, "resourceVersion"},
		} {
			path := strings.TrimSuffix(n.path(version, tc.path), "/")
			got := shared.send(t, request{method: tc.method, path: path, header: map[string]string{"Content-Type": jsonType}, body: tc.body})
			if got.status != tc.wantStatus || !strings.Contains(string(got.body), tc.wantText) {
				t.Errorf("%s in %s: got HTTP %d %s, want HTTP %d with %q", name, version, got.status, got.body, tc.wantStatus, tc.wantText)
			}
		}
	}
}

func TestApplyOwnsNoStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--controller=false")
	n := s.networks(t)
	for _, version := range apiVersions {
		name := "of-" + version
		body := strings.Replace(fmt.Sprintf(manifests[version], name, ""), `"spec"`, `"status":{"networkID":"forged"},"spec"`, 1)
		apply := func(path, manager string) *samplecrdv1.Network {
			t.Helper()
			got := s.send(t, request{
				method: http.MethodPatch, path: path + "?fieldManager=" + manager, header: map[string]string{"Content-Type": applyPatch}, body: body,
			})
			if got.status >= 300 {
				t.Fatalf("%s: got HTTP %d %s", path, got.status, got.body)
			}
			return n.get(name)
		}
		applied := apply(n.path(version, name), "spec")
		if fields := fieldsOf(applied, "spec"); applied.Status.NetworkID != "" || !strings.Contains(fields, `"f:spec"`) || strings.Contains(fields, "f:status") {
			t.Errorf("%s: got status %+v and fields %s, want only spec", version, applied.Status, fields)
		}
		if diff := cmp.Diff(applied, apply(n.path(version, name), "spec")); diff != "" {
			t.Errorf("%s: the same apply again changed the object (-before +after):\n%s", version, diff)
		}
		applied = apply(n.path(version, name, "status"), "status")
		if fields := fieldsOf(applied, "status"); applied.Status.NetworkID != "forged" || !strings.Contains(fields, `"f:status"`) || strings.Contains(fields, "f:spec") || strings.Contains(fields, "f:metadata") {
			t.Errorf("%s: got status %+v and fields %s, want only status", version, applied.Status, fields)
		}
	}
}

// fieldsOf are the fields that a manager owns.
func fieldsOf(network *samplecrdv1.Network, manager string) string {
	var fields []string
	for _, m := range network.ManagedFields {
		if m.Manager == manager {
			fields = append(fields, m.FieldsV1.String())
		}
	}
	return strings.Join(fields, "\n")
}
