package network

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

func TestResyncListsEachSiteOnce(t *testing.T) {
	w := newCredentialsWorld(t)
	w.putSecret("same-place", w.cloudsYAML(redUser, "blue"))
	w.putSecret("red", w.cloudsYAML(redUser, "red"))
	for i, secret := range []string{"lab", "lab", "same-place", "red"} {
		name := fmt.Sprintf("n%d", i)
		w.create(newNetwork(withCredentials(secret), named(name)))
		if err := w.passOver(name); err != nil {
			t.Fatal(err)
		}
		w.refresh(name)
	}
	w.kube.ClearActions()
	var queued int
	var err error
	requests, writes := w.traffic(func() { queued, err = w.look() })
	if err != nil || queued != 0 || len(writes) > 0 || tokens(requests) > 0 {
		t.Errorf("%d queued (%v), %v written, requests %v", queued, err, writes, requests)
	}
	// The sites are blue, red, and the operator's.
	want := []string{"GET networks", "GET networks", "GET networks", "GET subnets", "GET subnets", "GET subnets"}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(ofNeutron(requests)))); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	asked := []string{"get rolebindings", "get secrets", "get secrets", "get secrets"}
	if diff := cmp.Diff(asked, slices.Sorted(slices.Values(w.asked()))); diff != "" {
		t.Errorf("asked of the cluster (-want +got):\n%s", diff)
	}
}

// refreshGone takes a Network out of the cache.
func (w *world) refreshGone(name string) {
	w.t.Helper()
	if err := w.indexer.Delete(newNetwork(named(name))); err != nil {
		w.t.Fatal(err)
	}
}

// refresh brings the cache up to date with one more Network.
func (w *world) refresh(name string) {
	w.t.Helper()
	n, err := w.storedAs(name)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.indexer.Update(n); err != nil {
		w.t.Fatal(err)
	}
}

// createLost makes a Network of which somebody then deletes what it has in
// Neutron.
func (w *world) createLost(name, secret string) {
	w.create(newNetwork(withCredentials(secret), named(name)))
	if err := w.passOver(name); err != nil {
		w.t.Fatal(err)
	}
	w.refresh(name)
	n, err := w.storedAs(name)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.admin.DeleteNetwork(w.t.Context(), n.Status.NetworkID); err != nil {
		w.t.Fatal(err)
	}
}

// TestACloudThatFailsTouchesNoOther deletes every network, and has one cloud not
// tell of it.
func TestACloudThatFailsTouchesNoOther(t *testing.T) {
	w := newCredentialsWorld(t)
	w.putSecret("red", w.cloudsYAML(redUser, "red"))
	for name, secret := range map[string]string{"in-blue": "lab", "in-red": "red"} {
		w.createLost(name, secret)
	}
	w.cloud.answerWith(func(rw http.ResponseWriter, r *http.Request) bool {
		fails := strings.Contains(r.Header.Get("X-Auth-Token"), ":red:")
		if fails {
			answer(http.StatusInternalServerError, "")(rw, r, nil)
		}
		return fails
	})
	queued, err := w.look()
	if err != nil || queued != 1 {
		t.Fatalf("%d queued (%v), want 1 and no error: what others wrote sets no pace", queued, err)
	}
	if name, _ := w.controller.queue.Get(); name.Name != "in-blue" {
		t.Errorf("queued is %s, want in-blue", name)
	}
}

func TestResyncMendsTheFinalizer(t *testing.T) {
	w := newCredentialsWorld(t)
	w.create(newNetwork(withCredentials("lab")))
	w.settle()
	w.editSecret("lab", func(s *corev1.Secret) { s.Finalizers = []string{"example.com/other"} })
	if queued, err := w.look(); err != nil || queued != 1 {
		t.Errorf("%d queued (%v), want 1", queued, err)
	}
	if w.holds("lab") {
		t.Error("the resync itself adds the finalizer: it may be that of a Network that goes just now")
	}
	w.settle()
	if got := w.getSecret("lab").Finalizers; !slices.Equal(got, []string{"example.com/other", samplecrdv1.CredentialsFinalizer}) {
		t.Errorf("finalizers %q, want ours beside the other", got)
	}
	w.delete()
	w.settle()
	if got := w.getSecret("lab").Finalizers; !slices.Equal(got, []string{"example.com/other"}) {
		t.Errorf("finalizers %q, want the other alone", got)
	}
}

// TestAStrangerTellsOfOursInVain has a foreign cloud that shows a network with
// the marker of a Network of the operator's.
func TestAStrangerTellsOfOursInVain(t *testing.T) {
	w := newCredentialsWorld(t)
	w.create(newNetwork())
	w.settle()
	w.create(newNetwork(withCredentials("lab"), named("second")))
	if err := w.passOver("second"); err != nil {
		t.Fatal(err)
	}
	w.refresh("second")
	blue := w.client(func(o *neutron.Options) { o.Token, o.ProjectID = "it:x:blue:member", "blue" })
	if _, err := blue.CreateNetwork(t.Context(), neutron.NetworkAttributes{Description: new(testMarker)}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.clock.SetTime(w.clock.Now().Add(2 * surplusAge))
		if queued, err := w.look(); err != nil || queued != 0 {
			t.Errorf("%d queued (%v), want none", queued, err)
		}
	}
	if len(w.controller.surplus.seen) > 0 {
		t.Errorf("a stranger's network counts as a copy of ours: %v", w.controller.surplus.seen)
	}
}

// TestOrphansOfASite has one in a foreign cloud, which at times can't be listed.
func TestOrphansOfASite(t *testing.T) {
	w := newCredentialsWorld(t)
	w.create(newNetwork(withCredentials("lab")))
	w.settle()
	blue := w.client(func(o *neutron.Options) { o.Token, o.ProjectID = "it:x:blue:member", "blue" })
	orphan := ownerMarker(testCluster, "11111111-2222-3333-4444-555555555555")
	if _, err := blue.CreateNetwork(t.Context(), neutron.NetworkAttributes{Description: &orphan}); err != nil {
		t.Fatal(err)
	}
	look := func(want float64) {
		t.Helper()
		if _, err := w.look(); err != nil {
			t.Fatal(err)
		}
		if got := metric(t, "network_controller_orphans"); got != want {
			t.Errorf("the metric says %v orphans, want %v", got, want)
		}
	}
	look(0)
	look(1)
	w.cloud.answerWith(func(rw http.ResponseWriter, r *http.Request) bool {
		fails := strings.Contains(r.Header.Get("X-Auth-Token"), ":blue:")
		if fails {
			answer(http.StatusInternalServerError, "")(rw, r, nil)
		}
		return fails
	})
	look(1) // nothing new is known of it
	repair(w)
	look(1)
}

// TestASiteIsListedByWhoeverCan has two users of one project, of whom one is
// refused.
func TestASiteIsListedByWhoeverCan(t *testing.T) {
	for _, refused := range []string{blueUser, redUser} {
		w := newCredentialsWorld(t)
		w.putSecret("same-place", w.cloudsYAML(redUser, "blue"))
		for name, secret := range map[string]string{"a": "lab", "b": "same-place"} {
			w.createLost(name, secret)
		}
		w.cloud.answerWith(func(rw http.ResponseWriter, r *http.Request) bool {
			fails := strings.Contains(r.Header.Get("X-Auth-Token"), refused)
			if fails {
				answer(http.StatusForbidden, "")(rw, r, nil)
			}
			return fails
		})
		if queued, err := w.look(); err != nil || queued != 2 {
			t.Errorf("with %s refused %d are queued (%v), want both", refused, queued, err)
		}
	}
}
