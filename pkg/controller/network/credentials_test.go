package network

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// The users are their own passwords.
const (
	blueUser  = "hunter2-blue"
	redUser   = "hunter2-red"
	passwords = "hunter2"
)

// newCredentialsWorld has a Secret "lab" that leads to project blue.
func newCredentialsWorld(t tb) *world {
	w := newWorld(t)
	w.withCluster()
	w.putSecret("lab", w.cloudsYAML(blueUser, "blue"))
	return w
}

// ofNeutron leaves out what was asked of the identity service.
func ofNeutron(requests []string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return strings.HasSuffix(r, " ") })
}

// tokens counts those that were asked for.
func tokens(requests []string) (count int) {
	for _, r := range requests {
		if r == "POST " {
			count++
		}
	}
	return count
}

func TestNetworkWithCredentials(t *testing.T) {
	w := newCredentialsWorld(t)
	log := w.logged(t)
	w.create(newNetwork(withCredentials("lab")))
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v2.0/") && !w.holds("lab") {
			t.Error("a Secret is used that does not bear the finalizer")
		}
		return false
	})
	requests, writes := w.traffic(w.settle)
	if diff := cmp.Diff([]string{"POST networks", "POST subnets"}, ofNeutron(requests)); diff != "" || tokens(requests) != 1 {
		t.Errorf("%d tokens, and requests (-want +got):\n%s", tokens(requests), diff)
	}
	if diff := cmp.Diff([]string{"status", "status", "status", "status"}, writes); diff != "" {
		t.Errorf("writes: who holds, intent, progress, success (-want +got):\n%s", diff)
	}
	n := w.get()
	if diff := cmp.Diff(succeeds, stateOf(t, n)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if n.Status.ProjectID != "blue" || !slices.Equal(n.Status.HeldSecrets, []string{"lab"}) {
		t.Errorf("project %q with Secrets %q held, want blue with lab", n.Status.ProjectID, n.Status.HeldSecrets)
	}
	if len(w.networks()) != 0 {
		t.Errorf("in the operator's project: %+v", w.networks())
	}
	want := []string{"get secrets", "get rolebindings", "patch rolebindings", "patch secrets"}
	if diff := cmp.Diff(want, w.asked()); diff != "" {
		t.Errorf("asked of the cluster (-want +got):\n%s", diff)
	}
	if !w.holdsBinding() {
		t.Error("the RoleBinding may go before the Secret")
	}

	requests, writes = w.traffic(w.settle)
	if tokens(requests) != 0 || len(writes) > 0 || len(w.asked()) > 0 {
		t.Errorf("a quiet pass writes %v, requests %v and looks at the cluster", writes, requests)
	}
	w.delete()
	requests, _ = w.traffic(w.settle)
	if diff := cmp.Diff([]string{"GET networks", "GET subnets", "DELETE networks"}, ofNeutron(requests)); diff != "" {
		t.Errorf("requests of the deletion (-want +got):\n%s", diff)
	}
	if w.get() != nil || w.holds("lab") || w.holdsBinding() {
		t.Errorf("left are the Network %v, or the finalizer of the Secret (%t) or the RoleBinding (%t)", w.get(), w.holds("lab"), w.holdsBinding())
	}
	if strings.Contains(log(), passwords) {
		t.Errorf("the log holds the password:\n%s", log())
	}
}

// TestCredentialsUnavailable has Networks that have made nothing. They say what
// to do, go at once, and get on by themselves once it is done.
func TestCredentialsUnavailable(t *testing.T) {
	put := func(text func(w *world) string) func(*world) {
		return func(w *world) { w.putSecret("lab", text(w)) }
	}
	changed := func(old, with string) func(*world) {
		return put(func(w *world) string {
			return strings.Replace(w.cloudsYAML(blueUser, "blue"), old, with, 1)
		})
	}
	const openLab = `Secret "lab": open cloud "LAB": `
	tests := map[string]struct {
		hinder func(*world)
		want   string
	}{
		"no Secret":      {func(w *world) { w.deleteSecret("lab") }, `Secret "lab" is not there`},
		"no clouds.yaml": {func(w *world) { w.editSecret("lab", func(s *corev1.Secret) { s.Data = nil }) }, `Secret "lab" has no key clouds.yaml`},
		"no binding": {func(w *world) { w.kube.forbidden = true }, `the controller may not get and patch Secret "lab": ` +
			`in namespace "default" the RoleBinding "network-apiserver-credentials" of ClusterRole "network-apiserver:credentials" to its service account is missing`},
		"no such cloud":            {changed("LAB", "PROD"), openLab + `cloud "LAB" is not in clouds.yaml, which has "PROD"`},
		"TLS that is not verified": {changed("auth:", "verify: false, auth:"), openLab + "clouds.LAB.verify must be true: put the CA into the key cacert beside clouds.yaml"},
		"no YAML":                  {put(func(*world) string { return "{" + blueUser }), openLab + "clouds.yaml is not YAML, at line 1"},
		"a CA that is none": {func(w *world) {
			w.editSecret("lab", func(s *corev1.Secret) { s.Data["cacert"] = []byte(blueUser) })
		}, openLab + "cacert holds no certificate in PEM"},
		"a wrong password": {changed("password: "+blueUser, "password: "+redUser), openLab + "HTTP 401 Unauthorized"},
		"no region":        {changed(testRegion, "West"), openLab + `region "West" has no endpoint for the network service`},
		"a Secret that is being deleted": {func(w *world) {
			w.editSecret("lab", func(s *corev1.Secret) { s.Finalizers = []string{"example.com/other"} })
			w.deleteSecret("lab")
		}, `Secret "lab" is being deleted, and serves only what was made with it`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newCredentialsWorld(t)
			log := w.logged(t)
			tc.hinder(w)
			w.create(newNetwork(withCredentials("lab")))
			for range 2 {
				requests, _ := w.traffic(func() {
					if err := w.pass(); err == nil {
						t.Error("the pass ends well")
					}
				})
				if len(ofNeutron(requests)) > 0 {
					t.Errorf("requests to Neutron: %v", requests)
				}
				want := state{no, yes, samplecrdv1.ReasonCredentialsUnavailable, tc.want}
				if diff := cmp.Diff(want, stateOf(t, w.get())); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			}
			if _, writes := w.traffic(func() { _ = w.pass() }); len(writes) > 0 {
				t.Errorf("another pass writes %v", writes)
			}
			if s := w.getSecret("lab"); s != nil && slices.Contains(s.Finalizers, samplecrdv1.CredentialsFinalizer) {
				t.Error("a Secret that serves nothing is held")
			}
			if strings.Contains(log(), passwords) {
				t.Errorf("the log holds the password:\n%s", log())
			}

			w.kube.forbidden = false
			if s := w.getSecret("lab"); s != nil {
				if err := w.kube.Tracker().Delete(secretsResource, s.Namespace, s.Name); err != nil {
					t.Fatal(err)
				}
			}
			w.putSecret("lab", w.cloudsYAML(blueUser, "blue"))
			w.settle()
			if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
				t.Errorf("conditions once it is mended (-want +got):\n%s", diff)
			}

			w = newCredentialsWorld(t)
			tc.hinder(w)
			w.create(newNetwork(withCredentials("lab")))
			_ = w.pass()
			w.delete()
			w.kube.ClearActions()
			if err := w.pass(); err != nil || w.get() != nil || len(w.asked()) > 0 {
				t.Errorf("the Network goes with %v and requests to the cluster, want none:\n%s", err, conditions(w.get()))
			}
		})
	}
}

func TestSwappedSecret(t *testing.T) {
	w := newCredentialsWorld(t)
	w.create(newNetwork(withCredentials("lab")))
	w.settle()
	w.putSecret("lab", w.cloudsYAML(redUser, "red"))
	moved := state{yes, yes, samplecrdv1.ReasonCredentialsUnavailable,
		`the network is in project "blue" of region "RegionOne", and the credentials are for project "red" of region "RegionOne"`}
	requests, _ := w.traffic(func() {
		if queued, err := w.look(); err != nil || queued != 1 {
			t.Errorf("the resync queues %d (%v), want 1", queued, err)
		}
		_ = w.pass()
		if diff := cmp.Diff(moved, stateOf(t, w.get())); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		moveGateway(w)
		_ = w.pass()
		w.edit(withSpec(func(s *samplecrdv1.NetworkSpec) { s.Gateway = "" }))
		_ = w.pass()
	})
	if got := writesIn(ofNeutron(requests)); len(got) > 0 {
		t.Errorf("writes to Neutron, of either project: %v", got)
	}
	w.putSecret("lab", w.cloudsYAML(blueUser, "blue"))
	w.settle()
	if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions after swapping back (-want +got):\n%s", diff)
	}

	w.putSecret("lab", w.cloudsYAML(redUser, "red"))
	if _, err := w.look(); err != nil {
		t.Fatal(err)
	}
	w.delete()
	requests, _ = w.traffic(func() { _ = w.pass(); _ = w.pass() })
	if got := writesIn(ofNeutron(requests)); len(got) > 0 || w.get() == nil || !w.holds("lab") {
		t.Errorf("a deletion in the wrong project writes %v, and leaves the Network %v", got, w.get())
	}
	w.putSecret("lab", w.cloudsYAML(blueUser, "blue"))
	w.settle()
	if w.get() != nil || w.holds("lab") {
		t.Errorf("left after the deletion:\n%s", conditions(w.get()))
	}
}

// TestRefusedTokenReadsTheSecretAgain changes the password in both places.
func TestRefusedTokenReadsTheSecretAgain(t *testing.T) {
	w := newCredentialsWorld(t)
	w.create(newNetwork(withCredentials("lab")))
	w.settle()
	w.kube.ClearActions()
	w.cloud.answerWith(func(rw http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		old := strings.Contains(r.Header.Get("X-Auth-Token"), blueUser) || bytes.Contains(body, []byte(blueUser))
		if old {
			answer(http.StatusUnauthorized, `{"error": {"code": 401}}`)(rw, r, nil)
		}
		return old
	})
	if err := w.pass(); err == nil {
		t.Fatal("a pass with a refused token ends well")
	}
	if got := stateOf(t, w.get()); got.Reason != samplecrdv1.ReasonCredentialsUnavailable || got.Ready != yes {
		t.Errorf("conditions %+v, want CredentialsUnavailable and still ready", got)
	}
	if got := w.asked(); len(got) > 0 {
		t.Errorf("before the refusal the Secret is read: %v", got)
	}
	w.putSecret("lab", w.cloudsYAML(redUser, "blue"))
	w.settle()
	if got := w.asked(); !slices.Equal(got, []string{"get secrets", "get rolebindings"}) {
		t.Errorf("after the refusal the cluster was asked for %q, want the Secret and the RoleBinding", got)
	}
	if diff := cmp.Diff(succeeds, stateOf(t, w.get())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestTwoNetworksShareASecret(t *testing.T) {
	w := newCredentialsWorld(t)
	w.putSecret("copy", w.cloudsYAML(blueUser, "blue"))
	w.create(newNetwork(withCredentials("lab")))
	w.create(newNetwork(withCredentials("lab"), named("second")))
	w.create(newNetwork(withCredentials("copy"), named("third")))
	requests, _ := w.traffic(func() {
		w.settle()
		for _, name := range []string{"second", "third"} {
			if err := w.passOver(name); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := tokens(requests); got != 1 {
		t.Errorf("%d tokens for Secrets with the same content, want 1", got)
	}
	asked := []string{"get secrets", "get rolebindings", "patch rolebindings", "patch secrets", "get secrets", "patch secrets"}
	if diff := cmp.Diff(asked, w.asked()); diff != "" {
		t.Errorf("asked of the cluster (-want +got):\n%s", diff)
	}
	w.delete()
	w.settle()
	if !w.holds("lab") {
		t.Error("the Secret is let go with the first of two Networks")
	}
	w.deleteNamed("second")
	if err := w.passOver("second"); err != nil {
		t.Fatal(err)
	}
	if w.holds("lab") || !w.holds("copy") || !w.holdsBinding() {
		t.Errorf("lab is held: %t, copy: %t, the RoleBinding: %t; want copy and that", w.holds("lab"), w.holds("copy"), w.holdsBinding())
	}
	w.deleteNamed("third")
	if err := w.passOver("third"); err != nil || w.holdsBinding() {
		t.Errorf("the last Network goes with %v, and leaves the RoleBinding held: %t", err, w.holdsBinding())
	}
}

func (w *world) deleteNamed(name string) {
	w.t.Helper()
	n, err := w.storedAs(name)
	if err != nil {
		w.t.Fatal(err)
	}
	n.DeletionTimestamp = &n.CreationTimestamp
	n.Generation++
	if err := w.clients.Tracker().Update(networksResource, n, n.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

// TestNetworksThatGoAtOneTime has many workers, each with a cache that still
// shows the others.
func TestNetworksThatGoAtOneTime(t *testing.T) {
	w := newCredentialsWorld(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		w.create(newNetwork(withCredentials("lab"), named(name)))
		if err := w.passOver(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		w.deleteNamed(name)
	}
	// Nobody may ask who holds the Secret between the question of another and
	// what he writes for it; those who ask are given time to meet.
	var asking atomic.Int32
	w.clients.PrependReactor("list", "networks", func(clienttesting.Action) (bool, kruntime.Object, error) {
		if asking.Add(1) > 1 {
			t.Error("two ask at one time who holds the Secret")
		}
		for range 10000 {
			runtime.Gosched()
		}
		return false, nil, nil
	})
	w.clients.PrependReactor("update", "networks", func(action clienttesting.Action) (bool, kruntime.Object, error) {
		n := action.(clienttesting.UpdateAction).GetObject().(*samplecrdv1.Network)
		if action.GetSubresource() == "status" && len(n.Status.HeldSecrets) == 0 {
			asking.Add(-1)
		}
		return false, nil, nil
	})
	var running sync.WaitGroup
	for _, name := range names {
		running.Go(func() {
			if err := w.passOver(name); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if w.holds("lab") || w.holdsBinding() {
		t.Errorf("held by nobody, the Secret bears the finalizer: %t, and the RoleBinding: %t", w.holds("lab"), w.holdsBinding())
	}
	for _, name := range names {
		if _, err := w.storedAs(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// credentialScenarios end with the Secrets that wantHeld names held, and no
// other; with nil the Network and what it made are gone.
var credentialScenarios = map[string]struct {
	start, act func(*world)
	wantHeld   []string
}{
	"create": {
		act:      func(w *world) { w.create(newNetwork(withCredentials("lab"))) },
		wantHeld: []string{"lab"},
	},
	"refer to another Secret": {
		start:    func(w *world) { w.create(newNetwork(withCredentials("lab"))); w.settle() },
		act:      func(w *world) { w.edit(withCredentials("other")) },
		wantHeld: []string{"other"},
	},
	"delete": {
		start: func(w *world) { w.create(newNetwork(withCredentials("lab"))); w.settle() },
		act:   (*world).delete,
	},
	"delete after a change that no pass has seen": {
		start: func(w *world) { w.create(newNetwork(withCredentials("lab"))); w.settle() },
		act:   func(w *world) { w.edit(withCredentials("other")); w.delete() },
	},
	"delete with the Secret": {
		start: func(w *world) { w.create(newNetwork(withCredentials("lab"))); w.settle() },
		act:   func(w *world) { w.deleteSecret("lab"); w.delete() },
	},
	"delete with the namespace": {
		start: func(w *world) { w.create(newNetwork(withCredentials("lab"))); w.settle() },
		act:   func(w *world) { w.deleteNamespace(); w.delete() },
	},
	"delete what is retained": {
		start: func(w *world) { w.create(newNetwork(withCredentials("lab"), withSpec(retained))); w.settle() },
		act:   (*world).delete,
	},
}

// TestCredentialsSurviveOneFailureAnywhere fails each write to the Network, the
// Secret or the RoleBinding, or ends the process there or at a request to a cloud; and has each pass
// made by a process that knows nothing.
func TestCredentialsSurviveOneFailureAnywhere(t *testing.T) {
	for name, s := range credentialScenarios {
		for _, kind := range []string{"a write refused", "a write whose answer is lost", "a crash before", "a crash after"} {
			f := faults[kind]
			t.Run(name+" with "+kind, func(t *testing.T) {
				t.Parallel()
				for nth := 1; ; nth++ {
					w := newCredentialsWorld(t)
					w.putSecret("other", w.cloudsYAML(redUser, "blue"))
					if s.start != nil {
						s.start(w)
					}
					s.act(w)
					w.arm(nth, f)
					var err error
					for range 10 {
						w.withCluster()
						if err = w.pass(); err == nil {
							break
						}
					}
					fired := w.disarm()
					if err != nil {
						t.Fatalf("with effect %d failed it does not settle: %v", nth, err)
					}
					w.checkHeld(t, s.wantHeld, strings.HasSuffix(name, "retained"))
					if t.Failed() {
						t.Fatalf("with effect %d failed", nth)
					}
					if !fired {
						t.Logf("%d effects", nth-1)
						break
					}
				}
			})
		}
	}
}

// TestNothingStaysHeldAfterACrash has a Network deleted before a pass goes on
// where the last one was cut off.
func TestNothingStaysHeldAfterACrash(t *testing.T) {
	for _, kind := range []string{"a crash before", "a crash after"} {
		for nth, fired := 1, true; fired; nth++ {
			w := newCredentialsWorld(t)
			w.create(newNetwork(withCredentials("lab")))
			w.arm(nth, faults[kind])
			_ = w.pass()
			fired = w.disarm()
			w.delete()
			for range 10 {
				w.withCluster()
				if w.pass() == nil {
					break
				}
			}
			w.checkHeld(t, nil, false)
			if t.Failed() {
				t.Fatalf("with %s effect %d", kind, nth)
			}
		}
	}
}

func (w *world) checkHeld(t *testing.T, want []string, retained bool) {
	t.Helper()
	for _, name := range []string{"lab", "other"} {
		if got := w.holds(name); got != slices.Contains(want, name) {
			t.Errorf("Secret %s is held: %t", name, got)
		}
	}
	if got := w.holdsBinding(); got != (len(want) > 0) {
		t.Errorf("the RoleBinding is held: %t", got)
	}
	client := w.client(func(o *neutron.Options) { o.Token, o.ProjectID = "it:x:blue:member", "blue" })
	networks, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{})
	if err != nil {
		t.Fatal(err)
	}
	n := w.get()
	if want == nil {
		if n != nil || len(networks) > 0 != retained {
			t.Errorf("left in Neutron are %+v and\n%s", networks, conditions(n))
		}
		return
	}
	if diff := cmp.Diff(succeeds, stateOf(t, n)); diff != "" || len(networks) != 1 || !slices.Equal(n.Status.HeldSecrets, want) {
		t.Errorf("%d networks, %q held, and conditions (-want +got):\n%s", len(networks), n.Status.HeldSecrets, diff)
	}
}
