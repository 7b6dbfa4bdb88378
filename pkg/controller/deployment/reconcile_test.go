package deployment

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

const (
	invalid = `Warning InvalidNetworkAnnotation Read web: annotation samplecrd.k8s.io/network is %s: must be "true" or a CIDR, such as 10.20.0.0/16; to have no Network, remove it`
	exists  = "Warning NetworkExists Create web: Network web exists and does not belong to this Deployment: it is left as it is; delete it, or remove the annotation samplecrd.k8s.io/network"
)

// Each case is met twice, the second time with a cache that has not followed:
// what was told must not be told again.
func TestReconcile(t *testing.T) {
	tests := map[string]struct {
		deployment func(*appsv1.Deployment)
		network    *samplecrdv1.Network // nil for none
		others     []*samplecrdv1.Network
		wantWrites []string
		wantCIDR   string // of the Network in the end; empty for none
		wantEvents []string
	}{
		"true has the first block of the pool": {
			wantWrites: []string{"create"}, wantCIDR: "10.128.0.0/24",
			wantEvents: []string{"Normal NetworkCreated Create web: Network web is created with CIDR 10.128.0.0/24"},
		},
		"true passes by what others have in spec and status": {
			others: []*samplecrdv1.Network{
				newNetwork(calledNetwork("a"), withCIDR("10.128.0.77/28")),
				newNetwork(calledNetwork("b"), func(n *samplecrdv1.Network) { n.Spec.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: "10.128.1.0/24"}} }),
				newNetwork(calledNetwork("c"), func(n *samplecrdv1.Network) { n.Status.Subnets = []samplecrdv1.SubnetStatus{{CIDR: "10.128.2.0/25"}} }),
			},
			wantWrites: []string{"create"}, wantCIDR: "10.128.3.0/24",
			wantEvents: []string{"Normal NetworkCreated Create web: Network web is created with CIDR 10.128.3.0/24"},
		},
		"a CIDR is written masked": {
			deployment: asking("10.20.3.4/16"),
			wantWrites: []string{"create"}, wantCIDR: "10.20.0.0/16",
			wantEvents: []string{"Normal NetworkCreated Create web: Network web is created with CIDR 10.20.0.0/16"},
		},
		"an IPv6 CIDR": {
			deployment: asking("FD00:1::/64"),
			wantWrites: []string{"create"}, wantCIDR: "fd00:1::/64",
			wantEvents: []string{"Normal NetworkCreated Create web: Network web is created with CIDR fd00:1::/64"},
		},
		"true keeps the CIDR that is there": {
			network: newNetwork(), wantCIDR: "10.0.0.0/24",
		},
		"the same range in other words changes nothing": {
			deployment: asking("10.0.0.0/24"), network: newNetwork(withCIDR("10.0.0.9/24")), wantCIDR: "10.0.0.9/24",
		},
		"another CIDR changes spec.cidr": {
			deployment: asking("10.20.0.0/16"), network: newNetwork(),
			wantWrites: []string{"update"}, wantCIDR: "10.20.0.0/16",
			wantEvents: []string{"Normal NetworkUpdated Update web: the CIDR of Network web is changed from 10.0.0.0/24 to 10.20.0.0/16"},
		},
		"without the annotation what is ours is deleted": {
			deployment: notAsking, network: newNetwork(),
			wantWrites: []string{"delete"},
			wantEvents: []string{"Normal NetworkDeleted Delete web: Network web is deleted: the annotation samplecrd.k8s.io/network is gone"},
		},
		"without the annotation what is not ours stays": {
			deployment: notAsking, network: newNetwork(foreign), wantCIDR: "10.0.0.0/24",
		},
		"without the annotation there is nothing to do": {deployment: notAsking},
		"without the annotation a deletion is not asked twice": {
			deployment: notAsking, network: newNetwork(beingDeleted), wantCIDR: "10.0.0.0/24",
		},
		"false is no way to say it": {
			deployment: asking("false"), network: newNetwork(), wantCIDR: "10.0.0.0/24",
			wantEvents: []string{strings.ReplaceAll(invalid, "%s", `"false"`)},
		},
		"nothing is no CIDR": {
			deployment: asking(""), wantEvents: []string{strings.ReplaceAll(invalid, "%s", `""`)},
		},
		"an address is no CIDR": {
			deployment: asking("10.0.0.1"), wantEvents: []string{strings.ReplaceAll(invalid, "%s", `"10.0.0.1"`)},
		},
		"a long text is cut": {
			deployment: asking(strings.Repeat("x", 2000)),
			wantEvents: []string{strings.ReplaceAll(invalid, "%s", `"`+strings.Repeat("x", 64)+`"`)},
		},
		"a Network of a user is left alone": {
			network: newNetwork(foreign), wantCIDR: "10.0.0.0/24", wantEvents: []string{exists},
		},
		"and so it is where its CIDR would differ": {
			deployment: asking("10.20.0.0/16"), network: newNetwork(foreign), wantCIDR: "10.0.0.0/24", wantEvents: []string{exists},
		},
		"one owned by us that another controls is left alone": {
			network:  newNetwork(func(n *samplecrdv1.Network) { n.OwnerReferences[0].Controller = nil }),
			wantCIDR: "10.0.0.0/24", wantEvents: []string{exists},
		},
		"one of an earlier Deployment is left alone": {
			network: newNetwork(ofAnEarlierDeployment), wantCIDR: "10.0.0.0/24", wantEvents: []string{exists},
		},
		"one that is being deleted is waited for": {
			network: newNetwork(ofAnEarlierDeployment, beingDeleted), wantCIDR: "10.0.0.0/24",
		},
		"ours that is being deleted is not changed": {
			deployment: asking("10.20.0.0/16"), network: newNetwork(beingDeleted), wantCIDR: "10.0.0.0/24",
		},
		"a Deployment that is being deleted has no Network made": {
			deployment: func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, smallPool)
			d := newDeployment()
			if tc.deployment != nil {
				tc.deployment(d)
			}
			w.see(d)
			for _, n := range append(tc.others, tc.network) {
				if n != nil {
					w.see(n)
				}
			}
			if tc.network != nil {
				w.store(tc.network.DeepCopy())
			}
			if err := w.controller.sync(w.context(), testName); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantWrites, w.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			got := ""
			if n := w.network(testName.Namespace, testName.Name); n != nil {
				got = n.Spec.CIDR
			}
			if got != tc.wantCIDR {
				t.Errorf("the Network has CIDR %q, want %q", got, tc.wantCIDR)
			}
			_ = w.controller.sync(w.context(), testName)
			if diff := cmp.Diff(tc.wantEvents, w.recorder.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheNetworkGoesWithItsDeployment(t *testing.T) {
	w := newWorld(t, smallPool)
	w.see(newDeployment())
	if err := w.controller.sync(w.context(), testName); err != nil {
		t.Fatal(err)
	}
	want := newNetwork().OwnerReferences
	if diff := cmp.Diff(want, w.network(testName.Namespace, testName.Name).OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestOnlyTheCIDRIsOurs(t *testing.T) {
	w := newWorld(t, smallPool)
	n := newNetwork(func(n *samplecrdv1.Network) {
		n.Labels = map[string]string{"of": "a user"}
		n.Spec.DNSNameservers, n.Spec.MTU = []string{"10.9.9.9"}, new(int32(1300))
		n.Spec.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: "fd00::/64"}}
	})
	w.store(n.DeepCopy())
	w.see(n, newDeployment(asking("10.20.0.0/16")))
	if err := w.controller.sync(w.context(), testName); err != nil {
		t.Fatal(err)
	}
	want := n.DeepCopy()
	want.Spec.CIDR, want.ResourceVersion, want.Generation = "10.20.0.0/16", "1", 2
	if diff := cmp.Diff(want, w.network(testName.Namespace, testName.Name)); diff != "" {
		t.Errorf("the Network (-want +got):\n%s", diff)
	}
	if n.Spec.CIDR != "10.0.0.0/24" {
		t.Error("the cache is changed")
	}
}

func TestADeletionIsOfWhatWasSeen(t *testing.T) {
	w := newWorld(t, smallPool)
	n := newNetwork()
	w.store(n.DeepCopy())
	w.see(n, newDeployment(notAsking))
	if err := w.controller.sync(w.context(), testName); err != nil {
		t.Fatal(err)
	}
	got := w.clients.Actions()[0].(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
	want := &metav1.Preconditions{UID: &n.UID, ResourceVersion: &n.ResourceVersion}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("preconditions (-want +got):\n%s", diff)
	}
}

// fails has the API server answer the next request of that kind with an error,
// after doing it or not.
func (w *world) fails(verb string, err error, done bool) {
	once := true
	w.clients.PrependReactor(verb, "networks", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !once {
			return false, nil, nil
		}
		once = false
		if done {
			_, _, _ = w.create(a)
			w.store(a.(clienttesting.CreateAction).GetObject())
		}
		return true, nil, err
	})
}

func TestWhatTheAPIServerSays(t *testing.T) {
	group := networksResource.GroupResource()
	terminating := apierrors.NewForbidden(group, "web", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	created := "Normal NetworkCreated Create web: Network web is created with CIDR 10.128.0.0/24"
	tests := map[string]struct {
		err         error
		done        bool
		wantRetries int
		wantPromise bool // while it is not known what came of it
		wantEvents  []string
	}{
		"invalid": {
			err: apierrors.NewInvalid(samplecrdv1.SchemeGroupVersion.WithKind("Network").GroupKind(), "web", nil), wantRetries: 1,
			wantEvents: []string{`Warning NetworkRefused Write web: creating Network default/web: Network.samplecrd.k8s.io "web" is invalid`, created},
		},
		"a quota": {
			err: apierrors.NewForbidden(group, "web", errors.New("exceeded quota")), wantRetries: 1,
			wantEvents: []string{`Warning NetworkRefused Write web: creating Network default/web: networks.samplecrd.k8s.io "web" is forbidden: exceeded quota`, created},
		},
		"a webhook": {
			err: apierrors.NewBadRequest("denied"), wantRetries: 1,
			wantEvents: []string{"Warning NetworkRefused Write web: creating Network default/web: denied", created},
		},
		"a namespace that goes":             {err: terminating, wantEvents: []string{created}},
		"no answer, and nothing was done":   {err: errors.New("connection lost"), wantRetries: 1, wantPromise: true, wantEvents: []string{created}},
		"no answer, and it was done":        {err: errors.New("connection lost"), done: true, wantRetries: 1, wantPromise: true},
		"someone has made it in the middle": {err: apierrors.NewAlreadyExists(group, "web"), wantRetries: 1, wantPromise: true, wantEvents: []string{created}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, smallPool)
			w.see(newDeployment())
			w.fails("create", tc.err, tc.done)
			w.controller.queue.Add(testName)
			w.controller.processNext(w.context())
			if got := w.controller.queue.NumRequeues(testName); got != tc.wantRetries {
				t.Errorf("%d retries, want %d", got, tc.wantRetries)
			}
			if got := len(w.controller.pool.promised) == 1; got != tc.wantPromise {
				t.Errorf("the range is promised: %t, want %t", got, tc.wantPromise)
			}
			// The cache may not have it yet, nor a worker meet what it has made.
			_ = w.controller.sync(w.context(), testName)
			if got := w.cidrs(); len(got) != 1 {
				t.Fatalf("Networks are %v, want one", got)
			}
			w.see(w.network(testName.Namespace, testName.Name))
			if err := w.controller.sync(w.context(), testName); err != nil {
				t.Error(err)
			}
			if got := w.controller.pool.promised; len(got) != 0 {
				t.Errorf("promises are left: %v", got)
			}
			if diff := cmp.Diff(tc.wantEvents, w.recorder.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPanicEndsThePassAlone(t *testing.T) {
	w := newWorld(t, smallPool)
	w.see(newDeployment())
	once := true
	w.clients.PrependReactor("create", "networks", func(clienttesting.Action) (bool, runtime.Object, error) {
		if once {
			once = false
			panic("garbage")
		}
		return false, nil, nil
	})
	if err := w.controller.sync(w.context(), testName); err == nil || !strings.Contains(err.Error(), "garbage") {
		t.Errorf("error is %v, want the panic", err)
	}
	if err := w.controller.sync(w.context(), testName); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// A problem is told again where it is another, of another Deployment, or came
// back; not while it stays.
func TestEventsAreOfChanges(t *testing.T) {
	w := newWorld(t, smallPool)
	for i, step := range []struct {
		deployment *appsv1.Deployment
		want       int
	}{
		{newDeployment(asking("no")), 1},
		{newDeployment(asking("no")), 0},
		{newDeployment(asking("never")), 1},
		{newDeployment(asking("never"), func(d *appsv1.Deployment) { d.UID = "another" }), 1},
		{newDeployment(notAsking), 0},
		{newDeployment(asking("never")), 1},
	} {
		w.see(step.deployment)
		if err := w.controller.sync(w.context(), testName); err != nil {
			t.Fatal(err)
		}
		if got := w.recorder.take(); len(got) != step.want {
			t.Errorf("step %d: events %v, want %d", i, got, step.want)
		}
	}
	w.controller.events.warn(newDeployment(), networkRefused, strings.Repeat("ü", maxNote))
	if _, note, _ := strings.Cut(w.recorder.take()[0], ": "); len(note) != maxNote {
		t.Errorf("a note of %d bytes, want %d", len(note), maxNote)
	}
}
