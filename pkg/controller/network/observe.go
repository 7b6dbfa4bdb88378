package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

func (p *pass) marker() string { return ownerMarker(p.clusterID, p.network.UID) }

// tried tells whether the intent to make a network was ever written. Before
// that there can be none, and no search is needed.
func (p *pass) tried() bool { return p.network.Status.ProjectID != "" }

func (p *pass) observesOnly() bool {
	return p.network.Spec.ManagementPolicy == samplecrdv1.ManagementPolicyObserve
}

// open gets the client of the Network's cloud. It refuses to act with
// credentials that lead elsewhere than where the network was made: only there
// does "not found" mean gone.
func (p *pass) open(ctx context.Context) error {
	client, err := p.connect(ctx)
	if err == nil {
		p.client = client
		err = p.checkPlace()
	}
	if err != nil {
		// Whoever mends the Secret should not have to wait for the next resync.
		p.distrustSecret()
	}
	return err
}

func (p *pass) checkPlace() error {
	was := neutron.Place{ProjectID: p.network.Status.ProjectID, Region: p.network.Status.Region}
	if now := p.client.Place(); p.tried() && was != now {
		return &failure{
			reason: samplecrdv1.ReasonCredentialsUnavailable,
			message: fmt.Sprintf("the network is in project %q of region %q, and the credentials are for project %q of region %q",
				was.ProjectID, was.Region, now.ProjectID, now.Region),
		}
	}
	return nil
}

func (p *pass) annotated(annotation string) bool {
	return p.network.Annotations[annotation] == "true"
}

// look is a pass that may not write: it says whether what is there is as
// declared.
func (p *pass) look(ctx context.Context) error {
	paused := &failure{
		reason:  samplecrdv1.ReasonPaused,
		message: fmt.Sprintf("nothing is written to Neutron while the annotation %s is true", samplecrdv1.AnnotationPause),
	}
	id := p.network.Status.NetworkID
	if id == "" {
		return paused
	}
	if err := p.read(ctx, id); err != nil {
		return err
	}
	paused.ready = p.network.DeletionTimestamp == nil && p.checkOwned() == nil && p.checkActive() == nil && len(plan(p.want, p.have)) == 0
	return paused
}

// find reads what there is for a Network that was tried before, and makes sure
// that it is ours.
func (p *pass) find(ctx context.Context) error {
	if p.want.takenOver {
		if err := p.read(ctx, p.network.Spec.OpenStack.NetworkID); err != nil {
			return err
		}
		return p.takeOver(ctx)
	}
	if id := p.network.Status.NetworkID; id != "" {
		err := p.read(ctx, id)
		if err == nil {
			return p.checkOwned()
		}
		if neutron.ClassOf(causeOf(err)) != neutron.NotFound {
			return err
		}
		klog.FromContext(ctx).Info("[Neutron] The network is gone and will be made again", "id", id)
		if err := p.writeIntent(ctx, samplecrdv1.ReasonExternallyDeleted); err != nil {
			return err
		}
	}
	if err := p.search(ctx); err != nil {
		return err
	}
	if p.have.network == nil {
		return p.confirm(ctx)
	}
	return p.checkOwned()
}

// findToDelete is find for a Network that goes: what is gone is fine.
func (p *pass) findToDelete(ctx context.Context) error {
	id := p.network.Status.NetworkID
	if id == "" && p.want.takenOver {
		id = p.network.Spec.OpenStack.NetworkID
	}
	if id == "" {
		return p.search(ctx)
	}
	if err := p.read(ctx, id); err != nil {
		if neutron.ClassOf(causeOf(err)) == neutron.NotFound {
			p.have = actual{}
			return nil
		}
		return err
	}
	switch description := p.have.network.Description; {
	case p.want.owns(description), p.network.Spec.DeletionPolicy == samplecrdv1.DeletionPolicyRetain:
		return nil
	case p.want.takenOver:
		p.have = actual{} // never taken over: it belongs to another
		return nil
	default:
		return p.notOwned("network", p.have.network.ID, description)
	}
}

// search finds a network by its marker. A failed search is an error: it must
// never read as "there is none".
func (p *pass) search(ctx context.Context) error {
	networks, err := p.client.ListNetworks(ctx, neutron.NetworkFilter{Description: p.want.marker})
	if err != nil {
		return p.failed(ctx, err)
	}
	if len(networks) == 0 {
		p.have = actual{}
		return nil
	}
	// Should two leaders ever have made two, every pass must choose the same.
	first := slices.MinFunc(networks, func(a, b neutron.Network) int { return cmp.Compare(a.ID, b.ID) })
	if len(networks) > 1 {
		klog.FromContext(ctx).Info("[Neutron] More than one network bears the marker", "marker", p.want.marker, "chosen", first.ID)
	}
	return p.readSubnets(ctx, &first)
}

func (p *pass) read(ctx context.Context, id string) error {
	network, err := p.client.GetNetwork(ctx, id)
	if err != nil {
		f := p.failed(ctx, err)
		if neutron.ClassOf(err) == neutron.NotFound {
			f.reason = samplecrdv1.ReasonNotFound
		}
		return f
	}
	return p.readSubnets(ctx, network)
}

func (p *pass) readSubnets(ctx context.Context, network *neutron.Network) error {
	subnets, err := p.client.ListSubnets(ctx, neutron.SubnetFilter{NetworkID: network.ID})
	if err != nil {
		return p.failed(ctx, err)
	}
	p.have = actual{network: network, subnets: subnets}
	return nil
}

// checkOwned refuses to touch what does not bear our marker: the network, and
// a subnet of it in the place of one that is wanted.
func (p *pass) checkOwned() error {
	if n := p.have.network; !p.want.owns(n.Description) {
		return p.notOwned("network", n.ID, n.Description)
	}
	for _, w := range p.want.subnets {
		if s := find(p.have.subnets, w.cidr); s != nil && !p.want.owns(s.Description) {
			return p.notOwned("subnet", s.ID, s.Description)
		}
	}
	return nil
}

// takeOver writes the intent to, where nothing speaks against it.
func (p *pass) takeOver(ctx context.Context) error {
	if err := p.checkTakeable(); err != nil || p.tried() {
		return err
	}
	return p.writeIntent(ctx, samplecrdv1.ReasonUpdating)
}

// checkTakeable refuses what belongs to another Network, and what has no room
// for the marker.
func (p *pass) checkTakeable() error {
	if err := p.checkFree("network", p.have.network.ID, p.have.network.Description); err != nil {
		return err
	}
	for _, w := range p.want.subnets {
		if s := find(p.have.subnets, w.cidr); s != nil {
			if err := p.checkFree("subnet", s.ID, s.Description); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pass) checkFree(kind, id, description string) error {
	if marked(description, p.want.marker) {
		return nil
	}
	if other := markerIn(description); other != "" && other != p.want.from {
		return &failure{
			reason: samplecrdv1.ReasonNotOwned,
			message: fmt.Sprintf("%s %s belongs to another owner, with the marker %q in its description; to take it over from there, annotate this Network with %s=%s",
				kind, id, other, samplecrdv1.AnnotationTakeOverFrom, other),
		}
	}
	if tooLong(mark(description, p.want.marker, p.want.from)) {
		return &failure{
			reason: samplecrdv1.ReasonInvalidConfiguration,
			message: fmt.Sprintf("the description of %s %s has no room for the marker %q: with it, it would have more than %d characters",
				kind, id, p.want.marker, maxDescription),
		}
	}
	return nil
}

// notOwned names the exact text that makes it ours again.
func (p *pass) notOwned(kind, id, description string) error {
	return &failure{
		reason: samplecrdv1.ReasonNotOwned,
		message: fmt.Sprintf("%s %s does not bear the marker of this Network: its description is %q; if it is ours, set it to %q",
			kind, id, description, p.want.marker),
	}
}

// checkActive is the last question: does the network serve?
func (p *pass) checkActive() error {
	if status := p.have.network.Status; status != "ACTIVE" {
		return &failure{reason: samplecrdv1.ReasonCreating, message: fmt.Sprintf("the network is there and Neutron says it is %s", status)}
	}
	return nil
}
