package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

// TestSamePlace swaps the credentials for those of another project, where none
// of the networks is found. That does not mean that they are gone: nothing is
// written, and with the right credentials all is as before. A Network that is
// deleted meanwhile goes then, and not before.
func TestSamePlace(t *testing.T) {
	cloud, dir := newCloud(t), dataDir(t)
	s := cloud.start(t, dir, "demo")
	networks := newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
	for i := range cloud.networks {
		createNetwork(t, networks, fmt.Sprintf("net-%d", i))
	}
	createNetwork(t, networks, "leaving")
	want := statuses(converge(t, networks))
	s.stop(t)
	there := cloud.resources(t)

	s = cloud.start(t, dir, "other", "--resync-period", "1s")
	networks = newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
	s.kubectl(t, "delete", "network", "leaving", "--wait=false")
	place := want["leaving"]
	message := fmt.Sprintf("the network is in project %q of region %q, and the credentials are for project %q of region %q",
		place.ProjectID, place.Region, cloud.project(t, "other"), place.Region)
	waitForAll(t, networks, len(want), func(n samplecrdv1.Network) bool {
		return n.Status.ObservedGeneration == n.Generation && !slices.ContainsFunc(n.Status.Conditions, func(c metav1.Condition) bool {
			return c.Reason != samplecrdv1.ReasonCredentialsUnavailable || c.Message != message
		})
	})
	s.stop(t)
	if calls := neutronLog.FindAllString(s.log.String(), -1); calls != nil {
		t.Errorf("with the credentials of another project the controller went on to: %q", calls)
	}
	if diff := cmp.Diff(there, cloud.resources(t), anyOrder); diff != "" {
		t.Errorf("with the credentials of another project Neutron changed (-before +after):\n%s", diff)
	}

	s = cloud.start(t, dir, "demo")
	networks = newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
	s.kubectl(t, "wait", "--for=delete", "--timeout=60s", "network/leaving")
	delete(want, "leaving")
	if diff := cmp.Diff(want, statuses(converge(t, networks))); diff != "" {
		t.Errorf("with the credentials of before the Networks are (-before +after):\n%s", diff)
	}
	maps.DeleteFunc(there, func(id string, _ resource) bool { return id == place.NetworkID || id == place.Subnets[0].ID })
	if diff := cmp.Diff(there, cloud.resources(t), anyOrder); diff != "" {
		t.Errorf("with the credentials of before Neutron changed (-before +after):\n%s", diff)
	}
}

// neutronLog matches what the controller logs when it goes on from reading.
var neutronLog = regexp.MustCompile(`\[Neutron\] [^T].*`) // not: Try to process network

func createNetwork(t *testing.T, networks typedv1.NetworkInterface, name string) {
	t.Helper()
	_, err := networks.Create(t.Context(), &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/24"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// statuses returns by name what is known of Neutron.
func statuses(networks []samplecrdv1.Network) map[string]samplecrdv1.NetworkStatus {
	all := map[string]samplecrdv1.NetworkStatus{}
	for _, n := range networks {
		n.Status.Conditions = nil // with times
		all[n.Name] = n.Status
	}
	return all
}

// waitForAll waits until there are that many Networks and all are as wanted.
func waitForAll(t *testing.T, networks typedv1.NetworkInterface, count int, wanted func(samplecrdv1.Network) bool) {
	t.Helper()
	var list *samplecrdv1.NetworkList
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, convergeDeadline, true, func(ctx context.Context) (_ bool, err error) {
		if list, err = networks.List(ctx, metav1.ListOptions{}); err != nil {
			return false, err
		}
		return len(list.Items) == count && !slices.ContainsFunc(list.Items, func(n samplecrdv1.Network) bool { return !wanted(n) }), nil
	})
	if err != nil {
		for _, n := range list.Items {
			t.Logf("%s, generation %d: %+v", n.Name, n.Generation, n.Status)
		}
		t.Fatalf("not all of %d Networks are as wanted: %v", count, err)
	}
}
