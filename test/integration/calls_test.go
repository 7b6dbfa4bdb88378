package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

const (
	// many is the number of Networks in a well-filled project.
	many = 1000
	// pageSize is what pkg/neutron asks for at once. After a full page comes
	// another one, be it empty.
	pageSize = 1000
)

// TestCallsOfAResync counts what it costs that all is as declared: at a start
// and later. Not in parallel: the environment tells where clouds.yaml is.
func TestCallsOfAResync(t *testing.T) {
	f := newFront(t)
	s := f.fill(t)
	before := s.networks(t).versions()
	if len(before) != many {
		t.Fatalf("got %d Networks, want %d", len(before), many)
	}

	f.take()
	s = s.restart(t, append(f.flags(t), "--resync-period", "1s")...)
	const resyncs = 2
	f.await(t, resyncs+1, beginsResync)
	var resync int
	var calls [1 + resyncs + 1][]call // before the first, of each, and of one that has only begun
	for _, c := range f.take() {
		if beginsResync(c) {
			resync++
		}
		calls[min(resync, resyncs+1)] = append(calls[min(resync, resyncs+1)], c)
	}
	if len(calls[0]) > 0 {
		t.Errorf("got calls before the first resync: %v", calls[0])
	}
	for resync, calls := range calls[1 : resyncs+1] {
		t.Logf("resync %d after the start, of %d Networks: %d calls: %v", resync+1, many, len(calls), calls)
		// As many subnets as networks, and one more page of each.
		if most := 2 * ((many+pageSize-1)/pageSize + 1); len(calls) > most {
			t.Errorf("got %d calls, want at most %d", len(calls), most)
		}
		for _, c := range calls {
			if c.method != http.MethodGet {
				t.Errorf("got %v, want no write", c)
			}
		}
	}
	if diff := cmp.Diff(before, s.networks(t).versions()); diff != "" {
		t.Errorf("resource versions (-before +after):\n%s", diff)
	}
}

// beginsResync tells the first page of its first list.
func beginsResync(c call) bool {
	return c.method == http.MethodGet && c.path == "networks" && !c.query.Has("marker") && !c.query.Has("description")
}

// fill makes many Networks that are as declared, and returns a server that has
// them and no controller.
func (f *front) fill(t testing.TB) *server {
	t.Helper()
	s := newServer(t, f.flags(t)...)
	s.networks(t).create(newNetwork(nameOf(0)))
	one := s.networks(t).awaitReady(nameOf(0))
	s = s.restart(t, "--controller=false")
	s.neutron = f.url
	s.multiply(t, one)
	return s
}

// multiply makes of one Network as many as there shall be, in the stores of
// both sides: the controller would take minutes with the race detector. Whether
// they are as it would have left them, a resync tells.
func (s *server) multiply(t testing.TB, one *samplecrdv1.Network) {
	t.Helper()
	copies, networks, subnets := make([]*samplecrdv1.Network, many-1), make([]object, many-1), make([]object, many-1)
	marker := s.look(t, "network", one.Status.NetworkID).text("description")
	for i := range copies {
		n := one.DeepCopy()
		n.Name, n.UID = nameOf(i+1), types.UID(uuid.NewString())
		copies[i] = n
		networks[i] = object{"name": n.Name, "description": strings.Replace(marker, string(one.UID), string(n.UID), 1)}
	}
	networks = s.makeAll(t, "network", networks)
	for i, n := range networks {
		subnets[i] = object{
			"network_id": n.id(), "name": n["name"], "description": n["description"],
			"cidr": one.Spec.CIDR, "gateway_ip": one.Spec.Gateway, "ip_version": 4,
		}
	}
	subnets = s.makeAll(t, "subnet", subnets)
	etcd, key := s.etcd(t), s.networks(t).key
	for i, n := range copies {
		n.Status.NetworkID = networks[i].id()
		n.Status.Provider.SegmentationID = new(int32(networks[i]["provider:segmentation_id"].(float64)))
		n.Status.Subnets[0].ID = subnets[i].id()
		if _, err := etcd.Put(t.Context(), key(n.Name), string(encode(t, n, protobufType))); err != nil {
			t.Fatal(err)
		}
	}
}

func nameOf(i int) string { return fmt.Sprintf("network-%04d", i) }
