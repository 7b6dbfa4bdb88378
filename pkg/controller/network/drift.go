package network

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// retryResync is when a resync that failed is tried again, if not sooner.
const retryResync = 30 * time.Second

// inventory is what there is in the project, from lists alone.
type inventory struct {
	all      []neutron.Network
	networks map[string]neutron.Network  // by id
	subnets  map[string][]neutron.Subnet // by the id of their network
}

// keepInSync compares everything at once and then every period, give or take a
// tenth, so that many controllers do not ask at one time.
func (c *Controller) keepInSync(ctx context.Context) {
	for {
		delay := wait.Jitter(c.resyncPeriod*9/10, 0.2)
		if err := c.resync(ctx); err != nil && ctx.Err() == nil {
			delay = min(delay, retryResync)
			klog.FromContext(ctx).Error(err, "Comparing with Neutron failed and is tried again; nothing was changed", "after", delay)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// resync compares the Networks with what there is, and queues those that
// differ. A failed list says nothing about any of them. The error is that of the
// operator's cloud: what others wrote into a Secret must not set the pace.
func (c *Controller) resync(ctx context.Context) error {
	networks, err := c.networks.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing Networks: %w", err)
	}
	c.secrets.renew()
	ways := c.findWays(ctx, networks)
	sites := c.takeInventories(ctx, ways)
	// The Networks come after the lists: of what the lists hold, each Network
	// that was made meanwhile is known, and its network is no orphan.
	if networks, err = c.networks.List(labels.Everything()); err != nil {
		return fmt.Errorf("listing Networks: %w", err)
	}
	queued := 0
	for _, n := range networks {
		if way := ways[sourceOf(n)]; way != nil && c.needsPass(n, way) {
			c.enqueue(n, "differs from Neutron")
			queued++
		}
	}
	klog.FromContext(ctx).V(2).Info("Compared with Neutron", "networks", len(networks), "sites", len(sites), "differ", queued)
	c.reportOrphans(ctx, networks, sites)
	c.noteSurplus(ctx, sites)
	return ways[source{}].failed()
}

// needsPass tells whether a resync found anything that a pass has to see to.
// Along the way it counts the Network to its site.
func (c *Controller) needsPass(n *samplecrdv1.Network, w *way) bool {
	if w.err != nil {
		return credentialsRef(n) != nil && w.unusable()
	}
	if w.site.err != nil {
		return false
	}
	w.site.owners = append(w.site.owners, n)
	return w.unheld || c.differs(w.client, n, w.site.there)
}

func takeInventory(ctx context.Context, client *neutron.Client) (inventory, error) {
	networks, err := client.ListNetworks(ctx, neutron.NetworkFilter{})
	if err != nil {
		return inventory{}, err
	}
	subnets, err := client.ListSubnets(ctx, neutron.SubnetFilter{})
	if err != nil {
		return inventory{}, err
	}
	there := inventory{all: networks, networks: map[string]neutron.Network{}, subnets: map[string][]neutron.Subnet{}}
	for _, n := range networks {
		there.networks[n.ID] = n
	}
	for _, s := range subnets {
		there.subnets[s.NetworkID] = append(there.subnets[s.NetworkID], s)
	}
	return there, nil
}

// asDeclared tells that a pass has found everything as declared, with the spec
// of that generation; what was found since is drift.
func asDeclared(n *samplecrdv1.Network, generation int64) bool {
	c := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionReady)
	return c != nil && c.ObservedGeneration == generation &&
		(c.Reason == samplecrdv1.ReasonSuccess || c.Reason == samplecrdv1.ReasonDriftDetected)
}

// reportsDrift tells that nothing may be written: what differs is drift.
func (p *pass) reportsDrift() bool {
	return p.drift == DriftReport && p.wasAsDeclared && p.network.DeletionTimestamp == nil
}

// detectDrift says what it would take to make the network as declared again.
func (p *pass) detectDrift(ctx context.Context) error {
	drifted := func(what string) error {
		return &failure{reason: samplecrdv1.ReasonDriftDetected, message: "changed in Neutron, and left so by --drift=Report: " + what}
	}
	err := p.read(ctx, p.network.Status.NetworkID)
	if neutron.ClassOf(causeOf(err)) == neutron.NotFound {
		return drifted(fmt.Sprintf("network %s is gone", p.network.Status.NetworkID))
	}
	if err != nil {
		return err
	}
	check := p.checkOwned
	if p.want.takenOver {
		check = p.checkTakeable
	}
	if f, foreign := errors.AsType[*failure](check()); foreign {
		return drifted(f.message)
	}
	if operations := plan(p.want, p.have); len(operations) > 0 {
		texts := make([]string, len(operations))
		for i, o := range operations {
			texts[i] = o.String()
		}
		return drifted("as declared after " + strings.Join(texts, ", "))
	}
	return p.checkActive()
}

// settled tells that the last pass found everything as declared, and that
// nobody has declared anything since.
func settled(n *samplecrdv1.Network) bool {
	c := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionProgressing)
	return n.DeletionTimestamp == nil && n.Status.ObservedGeneration == n.Generation &&
		c != nil && c.Status == metav1.ConditionFalse && c.Reason == samplecrdv1.ReasonSuccess
}

// differs tells whether a pass would find anything to do or to say.
func (c *Controller) differs(client *neutron.Client, n *samplecrdv1.Network, there inventory) bool {
	network, ok := there.networks[n.Status.NetworkID]
	if !ok || !settled(n) {
		return true
	}
	p := &pass{Controller: c, network: n, client: client}
	var err error
	if p.want, err = newDesired(n, p.marker()); err != nil {
		return true
	}
	p.have = actual{network: &network, subnets: there.subnets[network.ID]}
	if p.checkActive() != nil || !equality.Semantic.DeepEqual(*p.observed(), n.Status) {
		return true
	}
	return !p.observesOnly() && (p.checkOwned() != nil || len(plan(p.want, p.have)) > 0)
}
