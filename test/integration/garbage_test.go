package integration

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestGarbageInEtcdHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil       func(*samplecrdv1.Network)
		wantMessage string
	}{
		"a CIDR that is none": {
			spoil:       func(n *samplecrdv1.Network) { n.Spec.CIDR = "garbage" },
			wantMessage: "spec.cidr",
		},
		"a gateway that is none": {
			spoil:       func(n *samplecrdv1.Network) { n.Spec.Gateway = "\xff\x00" },
			wantMessage: "spec.gateway",
		},
		"a further subnet that is none": {
			spoil:       func(n *samplecrdv1.Network) { n.Spec.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: "10.0.0.0/99"}} },
			wantMessage: "spec.additionalSubnets[0].cidr",
		},
		"a pool that is none": {
			spoil: func(n *samplecrdv1.Network) {
				n.Spec.AllocationPools = []samplecrdv1.AllocationPool{{Start: "here", End: "there"}}
			},
			wantMessage: "spec.allocationPools[0].start",
		},
		"a name server that is none": {
			spoil:       func(n *samplecrdv1.Network) { n.Spec.DNSNameservers = []string{"example.com"} },
			wantMessage: "spec.dnsNameservers[0]",
		},
		"a route that is none": {
			spoil: func(n *samplecrdv1.Network) {
				n.Spec.HostRoutes = []samplecrdv1.HostRoute{{Destination: "nowhere", NextHop: "never"}}
			},
			wantMessage: "spec.hostRoutes[0].destination",
		},
		"a next hop that is none": {
			spoil: func(n *samplecrdv1.Network) {
				n.Spec.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.0.0.0/8", NextHop: "never"}}
			},
			wantMessage: "spec.hostRoutes[0].nextHop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared
			n := s.networks(t)
			n.create(newNetwork("good"))
			n.create(newNetwork("spoilt"))
			n.awaitReady("good")
			n.awaitReady("spoilt")
			watched, err := n.Watch(t.Context(), metav1.ListOptions{ResourceVersion: n.get("spoilt").ResourceVersion, FieldSelector: "metadata.name=spoilt"})
			if err != nil {
				t.Fatal(err)
			}
			defer watched.Stop()

			spoilt := decode(t, s.stored(t, n.key("spoilt")))
			tc.spoil(spoilt)
			spoilt.Generation++
			s.store(t, n.key("spoilt"), encode(t, spoilt, protobufType))

			if event := <-watched.ResultChan(); event.Type != watch.Modified {
				t.Errorf("got the event %s %v, want a change", event.Type, event.Object)
			}
			got := n.awaitReason("spoilt", samplecrdv1.ReasonInvalidConfiguration)
			if c := condition(got, samplecrdv1.ConditionReady); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, tc.wantMessage) {
				t.Errorf("got condition %+v, want False with %q", c, tc.wantMessage)
			}
			for _, version := range apiVersions {
				s.get(t, n.path(version, "spoilt"), nil)
				s.get(t, n.path(version), nil)
			}
			n.edit("good", func(network *samplecrdv1.Network) { network.Spec.DHCP = samplecrdv1.Disabled })
			n.awaitReady("good")

			n.edit("spoilt", func(network *samplecrdv1.Network) { network.Spec = newNetwork("").Spec })
			n.awaitReady("spoilt")
		})
	}
}

func TestGarbageInEtcdCanBeDeleted(t *testing.T) {
	t.Parallel()
	s := shared
	n := s.networks(t)
	n.create(newNetwork("spoilt"))
	spoilt := decode(t, s.stored(t, n.key(n.awaitReady("spoilt").Name)))
	spoilt.Spec.CIDR = "garbage"
	spoilt.Generation++
	s.store(t, n.key("spoilt"), encode(t, spoilt, protobufType))
	got := n.awaitReason("spoilt", samplecrdv1.ReasonInvalidConfiguration)
	n.delete("spoilt")
	n.awaitGone("spoilt")
	if network := s.look(t, "network", got.Status.NetworkID); network != nil {
		t.Errorf("the network of the deleted object is still in Neutron: %v", network)
	}
}

// A list is all or nothing, so bytes that are no object take the lists of
// their namespace away. Everything else goes on, and the administrator can be
// rid of them; it takes the watch cache up to half a minute to believe it.
func TestBytesInEtcdThatAreNoObjectCanBeDeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n := s.networks(t)
	n.create(newNetwork("good"))
	n.create(newNetwork("broken"))
	n.awaitReady("good")
	n.awaitReady("broken")
	s.store(t, n.key("broken"), []byte("k8s\x00 and nothing that follows from it"))

	for path, wantStatus := range map[string]int{
		n.path("v1", "good"):                         http.StatusOK,
		n.path("v2alpha1", "good"):                   http.StatusOK,
		n.path("v1", "broken"):                       http.StatusInternalServerError,
		n.path("v1"):                                 http.StatusInternalServerError,
		strings.Replace(n.path("v1"), "test", "", 1): http.StatusOK,
		"/readyz": http.StatusOK,
		"/livez":  http.StatusOK,
	} {
		got := s.send(t, request{method: http.MethodGet, path: path})
		if got.status != wantStatus {
			t.Errorf("GET %s: got HTTP %d %s, want HTTP %d", path, got.status, got.body, wantStatus)
		}
		if got.status == http.StatusInternalServerError && !strings.Contains(string(got.body), "/broken") {
			t.Errorf("GET %s: the answer does not name the object: %s", path, got.body)
		}
	}

	n.create(newNetwork("new"))
	if err := n.Delete(t.Context(), "broken", metav1.DeleteOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("got error %v from a deletion, want that the object can't be read", err)
	}
	if err := n.Delete(t.Context(), "broken", metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}); err != nil {
		t.Fatalf("deleting what can't be read: %v", err)
	}
	n.awaitReady("new")
	list, err := n.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 {
		t.Errorf("got %d Networks, want 2", len(list.Items))
	}
}
