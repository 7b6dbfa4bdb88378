//go:build !openstack

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

// TestCrashAtEveryStep kills the controller before and after each of its
// outside effects - each call that writes to Neutron, each write of a status,
// the removal of the finalizer - and starts it again: what comes out must be
// the same every time.
func TestCrashAtEveryStep(t *testing.T) {
	chapters := map[string]struct {
		before, change func(*testing.T, typedv1.NetworkInterface, string)
	}{
		"create": {change: createTwoSubnets()},
		"change": {before: createTwoSubnets(), change: patchNetwork(`{"spec": {"cidr": "10.7.0.0/24", "mtu": 1400,
			"additionalSubnets": [{"cidr": "fd00:1::/64"}, {"cidr": "10.8.0.0/24", "gateway": "None"}]}}`)},
		"retain": {before: createTwoSubnets(retain), change: deleteNetwork},
		"delete": {before: createTwoSubnets(), change: deleteNetwork},
	}
	for name, chapter := range chapters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrashWorld(t)
			var undisturbed []string
			run := func(name string, at int, when moment) {
				if chapter.before != nil {
					chapter.before(t, w.networks, name)
					w.converge(t, name)
				}
				w.gate.arm(at, when)
				chapter.change(t, w.networks, name)
				if at > 0 {
					w.restart(t, name)
				}
				w.converge(t, name)
				got := w.neutron(t, name)
				if at == 0 {
					undisturbed = got
				} else if diff := gocmp.Diff(undisturbed, got); diff != "" {
					t.Errorf("killed %s effect %d, Neutron has (-without +with):\n%s", when, at, diff)
				}
			}
			// The comparison at the start of the controller may look at what is
			// just being made, and so have an effect of its own.
			run("first", 0, before)
			run("undisturbed", 0, before)
			effects := w.gate.effects()
			t.Logf("effects: %s", strings.Join(effects, ", "))
			for i := range effects {
				for _, when := range []moment{before, after} {
					run(fmt.Sprintf("net-%d-%s", i+1, when), i+1, when)
				}
			}
		})
	}
}

func createTwoSubnets(tweaks ...func(*samplecrdv1.NetworkSpec)) func(*testing.T, typedv1.NetworkInterface, string) {
	return func(t *testing.T, networks typedv1.NetworkInterface, name string) {
		t.Helper()
		n := &samplecrdv1.Network{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: samplecrdv1.NetworkSpec{
				Subnet:            samplecrdv1.Subnet{CIDR: "10.0.0.0/24"},
				AdditionalSubnets: []samplecrdv1.Subnet{{CIDR: "fd00:1::/64"}},
			},
		}
		for _, tweak := range tweaks {
			tweak(&n.Spec)
		}
		if _, err := networks.Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func retain(s *samplecrdv1.NetworkSpec) { s.DeletionPolicy = samplecrdv1.DeletionPolicyRetain }

func patchNetwork(patch string) func(*testing.T, typedv1.NetworkInterface, string) {
	return func(t *testing.T, networks typedv1.NetworkInterface, name string) {
		t.Helper()
		if _, err := networks.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func deleteNetwork(t *testing.T, networks typedv1.NetworkInterface, name string) {
	t.Helper()
	if err := networks.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// moment is when, around an effect, the controller is killed.
type moment string

const (
	before moment = "before"
	after  moment = "after"
)

// gate is what each effect of the controller passes on its way out.
type gate struct {
	mu     sync.Mutex
	passed []string
	at     int // the effect that counts, from 1; 0: none
	when   moment
	kill   func()
}

func (g *gate) arm(at int, when moment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed, g.at, g.when = nil, at, when
}

func (g *gate) effects() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.passed)
}

// guard lets next have what only reads. One effect at a time: what comes after
// a kill is of a process that is no more.
func (g *gate) guard(server string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/auth/tokens") {
			next.ServeHTTP(w, r)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.passed = append(g.passed, server+" "+r.Method)
		strikes := len(g.passed) == g.at
		if strikes && g.when == before {
			g.kill()
			panic(http.ErrAbortHandler)
		}
		if !strikes {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
		g.kill()
		panic(http.ErrAbortHandler)
	})
}

// crashWorld is an API server and a Neutron that stay, and the controller
// between them, which does not.
type crashWorld struct {
	gate       *gate
	networks   typedv1.NetworkInterface
	neutronURL string
	start      func() *exec.Cmd
	controller *exec.Cmd
	log        *output
	killed     chan struct{} // one for each kill
}

func newCrashWorld(t *testing.T) *crashWorld {
	t.Helper()
	w := &crashWorld{gate: &gate{}, log: &output{}, killed: make(chan struct{}, 1)}

	api := start(t, dataDir(t), "--controller=false")
	w.networks = newClients(t, api).SamplecrdV1().Networks(metav1.NamespaceDefault)
	config, err := clientcmd.BuildConfigFromFlags("", api.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(api.apiURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // a watch
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	front := httptest.NewServer(w.gate.guard("API", proxy))
	t.Cleanup(front.Close)

	openStack, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	neutron := httptest.NewServer(w.gate.guard("Neutron", openStack))
	t.Cleanup(func() {
		neutron.Close()
		if err := openStack.Close(); err != nil {
			t.Error(err)
		}
	})
	w.neutronURL = neutron.URL
	clouds := writeClouds(t, neutron.URL)

	w.start = func() *exec.Cmd {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), "network-controller",
			"-master", front.URL, "-os-cloud", osCloud, "-cluster-id", testCluster)
		command.Env, command.Stderr = []string{"OS_CLIENT_CONFIG_FILE=" + clouds}, w.log
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		return command
	}
	w.controller = w.start()
	w.gate.kill = func() {
		_ = w.controller.Process.Kill()
		_ = w.controller.Wait()
		w.killed <- struct{}{}
	}
	t.Cleanup(func() {
		_ = w.controller.Process.Kill()
		_ = w.controller.Wait()
		if t.Failed() {
			t.Logf("network-controller:\n%s", w.log)
		}
	})
	return w
}

// restart starts the controller again, once it was killed.
func (w *crashWorld) restart(t *testing.T, name string) {
	t.Helper()
	w.await(t, name, func(context.Context) bool {
		select {
		case <-w.killed:
			return true
		default:
			return false
		}
	})
	w.gate.arm(0, before)
	w.controller = w.start()
}

func (w *crashWorld) converge(t *testing.T, name string) {
	t.Helper()
	w.await(t, name, func(ctx context.Context) bool { return w.converged(ctx, name) })
}

func (w *crashWorld) converged(ctx context.Context, name string) bool {
	n, err := w.networks.Get(ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && !unsettled(*n)
}

func (w *crashWorld) await(t *testing.T, name string, reached func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, convergeDeadline, true, func(ctx context.Context) (bool, error) {
		return reached(ctx), nil
	})
	if err != nil {
		n, _ := w.networks.Get(t.Context(), name, metav1.GetOptions{})
		t.Fatalf("%s does not come to an end: %v\n%+v", name, err, n)
	}
}

// neutron tells what there is of that name, without what differs in each run:
// ids, revisions and the UID in the marker.
func (w *crashWorld) neutron(t *testing.T, name string) []string {
	t.Helper()
	found := []string{}
	there := takeInventory(t, w.neutronURL)
	for _, o := range slices.Concat(there.networks, there.subnets) {
		if o.Name == name {
			found = append(found, fmt.Sprintf("%s gateway=%s mtu=%d ours=%t", cmp.Or(o.CIDR, "network"), o.Gateway, o.MTU, o.ours()))
		}
	}
	slices.Sort(found)
	return found
}
