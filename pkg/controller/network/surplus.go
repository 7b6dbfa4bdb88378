package network

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// surplusAge is how long a copy is left alone: whoever made it may be at it
// still. It counts from the first sight, so no clock but our own is trusted.
const surplusAge = 10 * time.Minute

// surplus remembers the networks that bear the marker of a Network which has
// another one. Two leaders can make them, where a lease ends unseen.
type surplus struct {
	mu   sync.Mutex
	seen map[found]sighting
}

// found is a network in Neutron: an id means nothing without its site.
type found struct {
	where where
	id    string
}

type sighting struct {
	owner types.UID
	since time.Time
}

// of returns the copies of the network of the owner that are old enough to go.
func (s *surplus) of(owner types.UID, now time.Time) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for copied, sighted := range s.seen {
		if sighted.owner == owner && now.Sub(sighted.since) >= surplusAge {
			ids = append(ids, copied.id)
		}
	}
	return ids
}

// noteSurplus compares with the last resync, and queues the Networks of which
// a copy is old enough. A site speaks of its own Networks alone, and one that
// could not be listed says nothing.
func (c *Controller) noteSurplus(ctx context.Context, sites map[where]*site) {
	c.surplus.mu.Lock()
	defer c.surplus.mu.Unlock()
	seen := map[found]sighting{}
	for copied, sighted := range c.surplus.seen {
		if s := sites[copied.where]; s != nil && s.err != nil {
			seen[copied] = sighted
		}
	}
	for where, s := range sites {
		byMarker := map[string]*samplecrdv1.Network{}
		for _, n := range s.owners {
			if n.Status.NetworkID != "" {
				byMarker[ownerMarker(c.clusterID, n.UID)] = n
			}
		}
		for _, n := range s.there.all {
			owner := byMarker[n.Description]
			if owner == nil || owner.Status.NetworkID == n.ID {
				continue
			}
			copied := found{where, n.ID}
			sighted, known := c.surplus.seen[copied]
			if !known {
				sighted = sighting{owner.UID, c.clock.Now()}
				klog.FromContext(ctx).Info("[Neutron] A second network bears the marker", "network", klog.KObj(owner), "id", n.ID, "first", owner.Status.NetworkID)
			}
			seen[copied] = sighted
			if c.clock.Since(sighted.since) >= surplusAge {
				c.enqueue(owner, "more than one network")
			}
		}
	}
	c.surplus.seen = seen
}

// removeSurplus deletes what is beyond the one network of a pass that found it
// as declared. Where it can't, the network is as declared all the same.
func (p *pass) removeSurplus(ctx context.Context) {
	for _, id := range p.surplus.of(p.network.UID, p.clock.Now()) {
		if err := p.removeCopy(ctx, id); err != nil && neutron.ClassOf(err) != neutron.NotFound {
			klog.FromContext(ctx).Error(err, "[Neutron] A second network bears the marker and can't be deleted", "id", id)
		}
	}
}

// removeCopy reads everything anew: nothing is deleted on the word of a cache.
func (p *pass) removeCopy(ctx context.Context, id string) error {
	live, err := p.clients.SamplecrdV1().Networks(p.network.Namespace).Get(ctx, p.network.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Network %s: %w", klog.KObj(p.network), err)
	}
	if live.UID != p.network.UID || live.Status.NetworkID != p.have.network.ID || live.Status.NetworkID == id {
		return errors.New("the Network has changed")
	}
	network, err := p.client.GetNetwork(ctx, id)
	if err != nil {
		return err
	}
	subnets, err := p.client.ListSubnets(ctx, neutron.SubnetFilter{NetworkID: id})
	if err != nil {
		return err
	}
	if network.Description != p.want.marker {
		return p.notOwned("network", id, network.Description)
	}
	for _, s := range subnets {
		if s.Description != p.want.marker {
			return p.notOwned("subnet", s.ID, s.Description)
		}
	}
	klog.FromContext(ctx).Info("[Neutron] Deleting the second network that bears the marker", "id", id, "first", live.Status.NetworkID)
	return p.client.DeleteNetwork(ctx, id)
}
