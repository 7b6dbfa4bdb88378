package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// watcher reads the events of one watch.
type watcher struct {
	watch.Interface
	t testing.TB
}

func (n networks) watch(options metav1.ListOptions) watcher {
	n.t.Helper()
	w, err := n.Watch(n.t.Context(), options)
	if err != nil {
		n.t.Fatalf("watching: %v", err)
	}
	n.t.Cleanup(w.Stop)
	return watcher{w, n.t}
}

func (w watcher) next() watch.Event {
	w.t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			w.t.Fatal("the watch ended")
		}
		return event
	case <-time.After(patience):
		w.t.Fatal("no event came")
		return watch.Event{}
	}
}

// wants reads events and compares each as TYPE NAME.
func (w watcher) wants(want ...string) {
	w.t.Helper()
	got := make([]string, len(want))
	for i := range want {
		event := w.next()
		got[i] = string(event.Type)
		if accessor, err := meta.Accessor(event.Object); err == nil && accessor.GetName() != "" {
			got[i] += " " + accessor.GetName()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAWatchGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--controller=false")
	n := s.networks(t)
	n.create(newNetwork("before"))
	since := n.create(newNetwork("last")).ResourceVersion
	n.create(newNetwork("after"))
	n.edit("before", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)) })
	n.edit("after", func(n *samplecrdv1.Network) { n.Finalizers = nil })
	n.delete("last")
	w := n.watch(metav1.ListOptions{ResourceVersion: since})
	// The deletion begins: the finalizer keeps the object. What changed nothing is no event.
	w.wants("ADDED after", "MODIFIED before", "MODIFIED last")
	n.edit("last", func(n *samplecrdv1.Network) { n.Finalizers = nil })
	w.wants("DELETED last")
}

func TestAWatchBeginsWithAllThereIs(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--controller=false")
	n := s.networks(t)
	n.create(newNetwork("a"))
	n.create(newNetwork("b"))
	options := metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	}
	w := n.watch(options)
	w.wants("ADDED a", "ADDED b")
	bookmark := w.next()
	checkInitialEventsEnd(t, bookmark)
	accessor, err := meta.Accessor(bookmark.Object)
	if err != nil {
		t.Fatal(err)
	}
	if accessor.GetResourceVersion() != n.get("b").ResourceVersion {
		t.Errorf("got a bookmark at %s, want the newest version %s", accessor.GetResourceVersion(), n.get("b").ResourceVersion)
	}
	n.create(newNetwork("c"))
	w.wants("ADDED c")

	other, err := s.clients.SamplecrdV2alpha1().Networks(namespaceOf(t)).Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Stop()
	inV2 := watcher{other, t}
	inV2.wants("ADDED a", "ADDED b", "ADDED c")
	checkInitialEventsEnd(t, inV2.next())
}

func checkInitialEventsEnd(t *testing.T, event watch.Event) {
	t.Helper()
	accessor, err := meta.Accessor(event.Object)
	if err != nil {
		t.Fatalf("got event %v: %v", event, err)
	}
	if event.Type != watch.Bookmark || accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("got event %v, want the bookmark that ends the initial events", event)
	}
}

func TestAWatchSendsBookmarks(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	since := n.create(newNetwork("one")).ResourceVersion
	w := n.watch(metav1.ListOptions{ResourceVersion: since, AllowWatchBookmarks: true, TimeoutSeconds: new(int64(4)), FieldSelector: "metadata.name=none"})
	w.wants("BOOKMARK")
}

func TestAWatchSelects(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	since := n.create(newNetwork("one", func(n *samplecrdv1.Network) { n.Labels = map[string]string{"a": "b"} })).ResourceVersion
	id := n.awaitReady("one").Status.NetworkID
	n.create(newNetwork("two"))
	n.awaitReady("two")

	byName := n.watch(metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=two"})
	byName.wants("ADDED two")
	byID := n.watch(metav1.ListOptions{ResourceVersion: since, FieldSelector: "status.networkID=" + id})
	byID.wants("ADDED one") // when the id became known
	byCIDR := n.watch(metav1.ListOptions{ResourceVersion: "0", FieldSelector: "spec.cidr=10.1.0.0/16"})
	byLabel := n.watch(metav1.ListOptions{ResourceVersion: "0", LabelSelector: "a=b"})
	byLabel.wants("ADDED one")
	n.edit("one", func(n *samplecrdv1.Network) { n.Labels = nil })
	byLabel.wants("DELETED one")
	n.edit("two", func(n *samplecrdv1.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/16", "" })
	byCIDR.wants("ADDED two")
}

func TestVersionsThatAreForgotten(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--controller=false")
	n := s.networks(t)
	old := n.create(newNetwork("0")).ResourceVersion
	for i := 1; i < 5; i++ {
		n.create(newNetwork(fmt.Sprint(i)))
	}
	page, err := n.List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	n.create(newNetwork("5"))
	last := n.create(newNetwork("6"))

	// A page goes on at the version it began with, as long as it is kept.
	rest, err := n.List(t.Context(), metav1.ListOptions{Limit: 500, Continue: page.Continue})
	if err != nil || len(rest.Items) != 3 {
		t.Errorf("got %d Networks and error %v behind the first page, want 3", len(rest.Items), err)
	}
	response, err := s.etcd(t).Get(t.Context(), etcdPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.etcd(t).Compact(t.Context(), response.Header.Revision); err != nil {
		t.Fatal(err)
	}
	// The cache of the first server still remembers what etcd has forgotten.
	s = s.restart(t, "--controller=false")
	n = s.networks(t)
	for name, do := range map[string]func() error{
		"a page of a list": func() error {
			_, err := n.List(t.Context(), metav1.ListOptions{Limit: 500, Continue: page.Continue})
			return err
		},
		"a list of a version": func() error {
			_, err := n.List(t.Context(), metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			return err
		},
		"a watch": func() error {
			w, err := n.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
			if err != nil {
				return err
			}
			defer w.Stop()
			return apierrors.FromObject(watcher{w, t}.next().Object)
		},
	} {
		if err := do(); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			t.Errorf("%s: got error %v, want 410", name, err)
		}
	}
	w := n.watch(metav1.ListOptions{ResourceVersion: last.ResourceVersion})
	n.create(newNetwork("7"))
	w.wants("ADDED 7")
}
