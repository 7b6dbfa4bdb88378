package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// pass is one look at one Network, and what is done about it.
type pass struct {
	*Controller
	network *samplecrdv1.Network // as last read or written
	client  *neutron.Client      // of the cloud it is in, once opened
	want    desired
	have    actual
	// wasAsDeclared: whatever differs now was changed in Neutron.
	wasAsDeclared bool
}

func newPass(c *Controller, network *samplecrdv1.Network) *pass {
	return &pass{Controller: c, network: network.DeepCopy(), wasAsDeclared: asDeclared(network, network.Generation)}
}

// run brings Neutron to what the Network declares, or lets it go, and says in
// the status how far it came.
func (p *pass) run(ctx context.Context) error {
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	logger := klog.FromContext(ctx)
	logger.Info("[Neutron] Try to process network", "resourceVersion", p.network.ResourceVersion, "generation", p.network.Generation)
	act := p.reconcile
	if p.network.DeletionTimestamp != nil {
		act = p.delete
	}
	return p.report(ctx, act(ctx))
}

// aside lets another pass have the turn of this one while it waits.
func (p *pass) aside(wait func()) {
	<-p.turns
	defer func() { p.turns <- struct{}{} }()
	wait()
}

func (p *pass) reconcile(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	var err error
	if p.want, err = newDesired(p.network, p.marker()); err != nil {
		return &failure{reason: samplecrdv1.ReasonInvalidConfiguration, message: err.Error()}
	}
	if err := p.holdSecret(ctx); err != nil {
		return err
	}
	if p.observesOnly() {
		return p.observe(ctx)
	}
	if p.reportsDrift() {
		return p.detectDrift(ctx)
	}
	if p.annotated(samplecrdv1.AnnotationPause) {
		return p.look(ctx)
	}
	if p.tried() || p.want.takenOver {
		err = p.find(ctx)
	} else {
		err = p.writeIntent(ctx, samplecrdv1.ReasonCreating)
	}
	if err != nil {
		return err
	}
	if err := p.carryOut(ctx); err != nil {
		return err
	}
	if err := p.checkActive(); err != nil {
		return err
	}
	p.removeSurplus(ctx)
	return nil
}

// carryOut does the first operation of a plan and plans again, until there is
// nothing left to do.
func (p *pass) carryOut(ctx context.Context) error {
	done := map[string]bool{}
	for {
		operations := plan(p.want, p.have)
		p.showPlan(ctx, operations)
		if len(operations) == 0 {
			return nil
		}
		next := operations[0]
		key := string(next.verb) + next.id + next.cidr
		if done[key] {
			return &failure{reason: samplecrdv1.ReasonTransientError, message: "Neutron accepted a change and did not keep it: " + next.String()}
		}
		if len(done) > 0 {
			// What was made is written down before more is made.
			if err := p.writeProgress(ctx, next); err != nil {
				return err
			}
		}
		done[key] = true
		if err := p.do(ctx, next); err != nil {
			return p.failed(ctx, err)
		}
		if p.wasAsDeclared {
			driftCorrections.WithLabelValues(next.verb.label()).Inc()
		}
	}
}

// do makes one call and folds the answer into what is there.
func (p *pass) do(ctx context.Context, o operation) error {
	klog.FromContext(ctx).Info("[Neutron] "+o.String(), "id", o.id)
	switch o.verb {
	case createNetwork:
		network, err := p.client.CreateNetwork(ctx, o.network)
		if err != nil {
			return err
		}
		p.have = actual{network: network}
	case updateNetwork:
		network, err := p.client.UpdateNetwork(ctx, o.id, o.revision, o.network)
		if err != nil {
			return err
		}
		p.have.network = network
	case createSubnet:
		subnet, err := p.client.CreateSubnet(ctx, o.id, o.subnet)
		if err != nil {
			return err
		}
		p.have.subnets = append(p.have.subnets, *subnet)
	case updateSubnet:
		subnet, err := p.client.UpdateSubnet(ctx, o.id, o.revision, o.subnet)
		if err != nil {
			return err
		}
		p.have.subnets[p.index(o.id)] = *subnet
	case deleteSubnet:
		if err := p.client.DeleteSubnet(ctx, o.id); err != nil && neutron.ClassOf(err) != neutron.NotFound {
			return err
		}
		i := p.index(o.id)
		p.have.subnets = slices.Delete(p.have.subnets, i, i+1)
	}
	return nil
}

func (p *pass) index(subnetID string) int {
	return slices.IndexFunc(p.have.subnets, func(s neutron.Subnet) bool { return s.ID == subnetID })
}

// observe only reads; but what was managed until now still has our marker,
// and is let go.
func (p *pass) observe(ctx context.Context) error {
	if err := p.read(ctx, p.network.Spec.OpenStack.NetworkID); err != nil {
		return err
	}
	if err := p.release(ctx); err != nil {
		return err
	}
	return p.checkActive()
}

// delete lets the network go, then the object: the finalizer is the last thing
// to be removed.
func (p *pass) delete(ctx context.Context) error {
	if !slices.Contains(p.network.Finalizers, samplecrdv1.NeutronFinalizer) {
		return nil
	}
	if !p.tried() || p.annotated(samplecrdv1.AnnotationAbandon) {
		return p.leave(ctx)
	}
	if p.observesOnly() {
		return p.forget(ctx)
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	if p.annotated(samplecrdv1.AnnotationPause) {
		return p.look(ctx)
	}
	p.want = desired{marker: p.marker(), takenOver: p.network.Spec.OpenStack != nil && p.network.Spec.OpenStack.NetworkID != ""}
	if err := p.findToDelete(ctx); err != nil {
		return err
	}
	if p.have.network == nil {
		p.show(ctx, "let the object go")
		return p.leave(ctx)
	}
	letGo, message := p.deleteNetwork, "the network is about to be deleted"
	switch policy := p.network.Spec.DeletionPolicy; policy {
	case samplecrdv1.DeletionPolicyDelete:
	case samplecrdv1.DeletionPolicyRetain:
		letGo, message = p.release, "the network is about to be released"
	default:
		return &failure{
			reason:  samplecrdv1.ReasonInvalidConfiguration,
			message: checkWord("spec.deletionPolicy", policy, samplecrdv1.DeletionPolicyDelete, samplecrdv1.DeletionPolicyRetain).Error(),
		}
	}
	p.show(ctx, message)
	if err := p.writeDeleting(ctx, message); err != nil {
		return err
	}
	if err := letGo(ctx); err != nil {
		return err
	}
	return p.leave(ctx)
}

// forget ends an observation. Only one that no pass has seen may have left our
// marker there, of a time as Managed. Nothing waits for that: where Neutron
// can't be reached, the marker is reported as an orphan's.
func (p *pass) forget(ctx context.Context) error {
	if beforeDeletion := p.network.Generation - 1; asDeclared(p.network, beforeDeletion) {
		return p.leave(ctx)
	}
	p.want = desired{marker: p.marker(), takenOver: true}
	err := p.open(ctx)
	if err == nil {
		err = p.observe(ctx)
	}
	if err != nil {
		klog.FromContext(ctx).Info("[Neutron] No longer observed, and not seen a last time", "reason", err.Error())
	}
	return p.leave(ctx)
}

// deleteNetwork takes the subnets along: Neutron deletes all of it or refuses.
func (p *pass) deleteNetwork(ctx context.Context) error {
	for _, s := range p.have.subnets {
		if !p.want.owns(s.Description) {
			return p.notOwned("subnet", s.ID, s.Description)
		}
	}
	klog.FromContext(ctx).Info("[Neutron] Deleting network", "id", p.have.network.ID)
	if err := p.client.DeleteNetwork(ctx, p.have.network.ID); err != nil && neutron.ClassOf(err) != neutron.NotFound {
		return p.failed(ctx, err)
	}
	return nil
}

// release takes our marker off and leaves the network as it is. The network
// goes last, but may be the one without a marker if someone edited it.
func (p *pass) release(ctx context.Context) error {
	marker := p.want.marker
	without := func(description string) *string {
		if description == marker {
			return new("")
		}
		return new(unmark(description, marker))
	}
	for i, s := range p.have.subnets {
		if !marked(s.Description, marker) {
			continue
		}
		klog.FromContext(ctx).Info("[Neutron] Releasing subnet", "id", s.ID)
		released, err := p.client.UpdateSubnet(ctx, s.ID, s.Revision, neutron.SubnetAttributes{Description: without(s.Description)})
		if err != nil {
			return p.failed(ctx, err)
		}
		p.have.subnets[i] = *released
	}
	if !marked(p.have.network.Description, marker) {
		return nil
	}
	klog.FromContext(ctx).Info("[Neutron] Releasing network", "id", p.have.network.ID)
	// Each change of a subnet raised the revision of the network.
	network, err := p.client.GetNetwork(ctx, p.have.network.ID)
	if err != nil {
		return p.failed(ctx, err)
	}
	network, err = p.client.UpdateNetwork(ctx, network.ID, network.Revision, neutron.NetworkAttributes{Description: without(network.Description)})
	if err != nil {
		return p.failed(ctx, err)
	}
	p.have.network = network
	return nil
}

// leave lets the Secrets go, then the object. By then the status says that
// nothing is left in Neutron: whoever goes on after a crash needs no
// credentials, which may be gone.
func (p *pass) leave(ctx context.Context) error {
	if len(p.network.Status.HeldSecrets) > 0 {
		if err := p.writeGone(ctx); err != nil {
			return err
		}
		if err := p.letSecretsGo(ctx, ""); err != nil {
			if _, failed := errors.AsType[*failure](err); !failed || !p.annotated(samplecrdv1.AnnotationAbandon) {
				return err
			}
			klog.FromContext(ctx).Info("A Secret keeps its finalizer", "finalizer", samplecrdv1.CredentialsFinalizer, "reason", err.Error())
		}
	}
	return p.removeFinalizer(ctx)
}

func (p *pass) removeFinalizer(ctx context.Context) error {
	p.network.Finalizers = slices.DeleteFunc(p.network.Finalizers, func(f string) bool { return f == samplecrdv1.NeutronFinalizer })
	_, err := p.clients.SamplecrdV1().Networks(p.network.Namespace).Update(ctx, p.network, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the finalizer of Network %s: %w", klog.KObj(p.network), err)
	}
	return nil
}

// failed puts an error of Neutron into the words of the conditions.
func (p *pass) failed(ctx context.Context, err error) *failure {
	f := &failure{reason: reasonOf(neutron.ClassOf(err)), message: err.Error(), cause: err}
	if f.reason == samplecrdv1.ReasonCredentialsUnavailable {
		p.distrustSecret()
	}
	if f.reason == samplecrdv1.ReasonInUse && p.have.network != nil {
		ports, listErr := p.client.ListPorts(ctx, p.have.network.ID)
		if listErr == nil {
			f.message += portsInUse(ports)
		}
	}
	return f
}

// deletedAlong are the owners of ports that Neutron deletes with their network:
// those of its agents, and the one that OVN has on each network.
var deletedAlong = []string{"network:dhcp", "network:distributed", "network:floatingip_agent_gateway"}

// maxPorts is how many of the ports that hold a network a message names.
const maxPorts = 5

func portsInUse(ports []neutron.Port) string {
	ports = slices.DeleteFunc(ports, func(p neutron.Port) bool { return slices.Contains(deletedAlong, p.DeviceOwner) })
	if len(ports) == 0 {
		return ""
	}
	slices.SortFunc(ports, func(a, b neutron.Port) int { return cmp.Compare(a.ID, b.ID) })
	text := "; ports on the network:"
	for i, port := range ports {
		if i == maxPorts {
			return text + " and more"
		}
		if i > 0 {
			text += ","
		}
		text += " " + port.ID
		if port.DeviceOwner != "" {
			text += " (" + port.DeviceOwner + ")"
		}
	}
	return text
}
