package network

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// TestNamespaceDeletion has all but the Network deleted first, and the process
// start again.
func TestNamespaceDeletion(t *testing.T) {
	w := newCredentialsWorld(t)
	w.create(newNetwork(withCredentials("lab")))
	w.settle()
	w.deleteNamespace()
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.note("Neutron is asked to delete")
		}
		return false
	})
	w.withCluster()
	w.settle()
	moveGateway(w)
	w.settle() // what it serves, it serves to the end
	w.delete()
	w.settle()
	want := []string{"Neutron is asked to delete", "secrets lab let go", "rolebindings network-apiserver-credentials let go", "the object goes"}
	if diff := cmp.Diff(want, w.diary); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if w.get() != nil || w.getSecret("lab") != nil || w.getBinding() != nil {
		t.Errorf("left are Network %v, Secret %v and RoleBinding %v", w.get(), w.getSecret("lab"), w.getBinding())
	}
}

// TestRevocation has the owner of a living namespace take the RoleBinding away.
func TestRevocation(t *testing.T) {
	w := newCredentialsWorld(t)
	for _, name := range []string{"staying", "leaving"} {
		w.create(newNetwork(withCredentials("lab"), named(name)))
		if err := w.passOver(name); err != nil {
			t.Fatal(err)
		}
		w.refresh(name)
	}
	w.unbind()
	w.deleteNamed("leaving")
	if err := w.passOver("leaving"); err != nil || w.getBinding() == nil {
		t.Errorf("a Network that goes ends with %v, and with the RoleBinding %v: it was to go first", err, w.getBinding())
	}
	w.refreshGone("leaving")
	if queued, err := w.look(); err != nil || queued != 1 {
		t.Errorf("%d queued (%v), want 1", queued, err)
	}
	want := state{yes, yes, samplecrdv1.ReasonCredentialsUnavailable, `the controller may not get and patch Secret "lab": ` +
		`in namespace "default" the RoleBinding "network-apiserver-credentials" of ClusterRole "network-apiserver:credentials" to its service account is missing`}
	for range 2 {
		if err := w.passOver("staying"); err == nil {
			t.Error("without the right a pass ends well")
		}
		if w.getBinding() != nil {
			t.Fatal("the RoleBinding stays, which its owner deleted")
		}
		n, err := w.storedAs("staying")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, stateOf(t, n)); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
	w.bind()
	if err := w.passOver("staying"); err != nil || !w.holdsBinding() {
		t.Errorf("bound again, the pass ends with %v, and the RoleBinding is held: %t", err, w.holdsBinding())
	}
}

// TestRoleBindingOfAnotherName gives the right as well, and nothing keeps it.
func TestRoleBindingOfAnotherName(t *testing.T) {
	newUnkept := func() *world {
		w := newCredentialsWorld(t)
		w.unbind()
		w.kube.elsewhere = true
		w.create(newNetwork(withCredentials("lab")))
		w.settle()
		return w
	}
	deleteNamespace := func(w *world) {
		w.deleteNamespace()
		w.kube.elsewhere = false
		w.delete()
	}

	w := newUnkept()
	w.bind()
	if queued, err := w.look(); err != nil || queued != 1 {
		t.Errorf("with that name as well %d are queued (%v), want 1", queued, err)
	}
	w.settle()
	if !w.holdsBinding() {
		t.Error("the resync does not hold the RoleBinding")
	}

	w = newUnkept()
	deleteNamespace(w)
	w.settle()
	if w.get() != nil || !w.holds("lab") {
		t.Errorf("without the right to, the Secret is let go, or waited for by\n%s", conditions(w.get()))
	}

	w = newUnkept()
	deleteNamespace(w)
	w.withCluster()
	if err := w.pass(); err == nil || w.get() == nil {
		t.Errorf("a Network goes that nobody could delete in Neutron (%v)", err)
	}

	w = newUnkept()
	w.kube.elsewhere = false
	w.delete()
	if err := w.pass(); err == nil || w.get() == nil {
		t.Errorf("in a namespace that stays, a Network goes without its Secret (%v)", err)
	}
	w.bind()
	w.settle()
	if w.get() != nil || w.holds("lab") {
		t.Errorf("bound again, the Secret is held: %t, by\n%s", w.holds("lab"), conditions(w.get()))
	}
}

func TestAbandonedWithoutABinding(t *testing.T) {
	w := newCredentialsWorld(t)
	w.create(newNetwork(withCredentials("lab")))
	w.settle()
	w.kube.forbidden = true
	w.withCluster()
	w.delete()
	if err := w.pass(); err == nil {
		t.Error("a Network that can't be reached goes")
	}
	w.edit(annotated(samplecrdv1.AnnotationAbandon, "true"))
	w.settle()
	if w.get() != nil {
		t.Errorf("the Network is still there:\n%s", conditions(w.get()))
	}
}
