package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// Orphan is a network in Neutron with a marker of this cluster whose Network is
// not there. Nothing deletes it: that is for a person to decide.
type Orphan struct {
	ID, Name, Marker string
}

// Orphans returns those in the cloud, in the order of their names. The error is
// that of a list, of which half an answer would call everything an orphan.
func Orphans(ctx context.Context, clients clientset.Interface, cloud *neutron.Cloud, clusterID string) ([]Orphan, error) {
	client, err := cloud.Client(ctx)
	if err != nil {
		return nil, err
	}
	// What is made after the first list is in none, and what is deleted before
	// the second is gone in the end: neither is an orphan.
	networks, err := client.ListNetworks(ctx, neutron.NetworkFilter{})
	if err != nil {
		return nil, err
	}
	stored, err := clients.SamplecrdV1().Networks(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Networks: %w", err)
	}
	owners := make([]*samplecrdv1.Network, len(stored.Items))
	for i := range stored.Items {
		owners[i] = &stored.Items[i]
	}
	var orphans []Orphan
	for _, o := range orphansAmong(networks, owners, clusterID) {
		_, err := client.GetNetwork(ctx, o.ID)
		if neutron.ClassOf(err) == neutron.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		orphans = append(orphans, o)
	}
	return orphans, nil
}

func orphansAmong(networks []neutron.Network, owners []*samplecrdv1.Network, clusterID string) []Orphan {
	owned := map[string]bool{}
	for _, n := range owners {
		owned[ownerMarker(clusterID, n.UID)] = true
	}
	var orphans []Orphan
	for _, n := range networks {
		if marker := markerIn(n.Description); strings.HasPrefix(marker, ownerMarker(clusterID, types.UID(""))) && !owned[marker] {
			orphans = append(orphans, Orphan{n.ID, n.Name, marker})
		}
	}
	slices.SortFunc(orphans, func(a, b Orphan) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return orphans
}

// suspects are the networks that had no Network at the last resync; true for
// those that had none before it either.
type suspects map[where]map[string]bool

// reportOrphans tells of those that were there at the last resync too: one that
// is met for the first time may belong to a Network that was deleted just now.
func (c *Controller) reportOrphans(ctx context.Context, owners []*samplecrdv1.Network, sites map[where]*site) {
	seen := suspects{}
	orphans := 0
	for where, s := range sites {
		seen[where] = map[string]bool{}
		if s.err != nil {
			seen[where] = c.suspects[where]
		}
		for _, o := range orphansAmong(s.there.all, owners, c.clusterID) {
			_, again := c.suspects[where][o.ID]
			seen[where][o.ID] = again
			if again {
				klog.FromContext(ctx).Info("[Neutron] A network of ours has no Network", "id", o.ID, "name", o.Name, "marker", o.Marker)
			}
		}
		for _, again := range seen[where] {
			if again {
				orphans++
			}
		}
	}
	c.suspects = seen
	orphanNetworks.Set(float64(orphans))
}
