package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// failure is why a pass ended short of what is declared. Its message goes into
// the status: it must not differ between two tries.
type failure struct {
	reason  string
	message string
	cause   error
	ready   bool // for all that: of a pass that may not write
}

func (f *failure) Error() string { return f.reason + ": " + f.message }
func (f *failure) Unwrap() error { return f.cause }

func causeOf(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.cause
	}
	return nil
}

// reasonOf names a class of errors of Neutron in the words of the conditions.
// NotFound in the middle of a pass is passing: the next pass reads what is gone.
func reasonOf(class neutron.Class) string {
	switch class {
	case neutron.Invalid:
		return samplecrdv1.ReasonInvalidConfiguration
	case neutron.Forbidden:
		return samplecrdv1.ReasonForbidden
	case neutron.Unauthorized:
		return samplecrdv1.ReasonCredentialsUnavailable
	case neutron.QuotaExceeded:
		return samplecrdv1.ReasonQuotaExceeded
	case neutron.InUse:
		return samplecrdv1.ReasonInUse
	case neutron.Conflict:
		return samplecrdv1.ReasonConflict
	}
	return samplecrdv1.ReasonTransientError
}

// needsPerson tells the reasons that nobody but a person can do away with.
func needsPerson(reason string) bool {
	switch reason {
	case samplecrdv1.ReasonInvalidConfiguration, samplecrdv1.ReasonForbidden, samplecrdv1.ReasonNotOwned, samplecrdv1.ReasonNotFound, samplecrdv1.ReasonDriftDetected:
		return true
	}
	return false
}

// report writes how the pass ended. What failed on the way to the API server
// itself can't be written there and is returned as it is.
func (p *pass) report(ctx context.Context, err error) error {
	f, failed := errors.AsType[*failure](err)
	if err != nil && !failed || ctx.Err() != nil {
		return err
	}
	if err == nil && p.network.DeletionTimestamp != nil {
		return nil
	}
	status := p.observed()
	ready, progressing, reason, message := metav1.ConditionTrue, metav1.ConditionFalse, samplecrdv1.ReasonSuccess, "the network is as declared"
	if failed {
		ready, progressing, reason, message = metav1.ConditionFalse, metav1.ConditionTrue, f.reason, f.message
		switch {
		case f.reason == samplecrdv1.ReasonPaused:
			progressing = metav1.ConditionFalse
			if f.ready {
				ready = metav1.ConditionTrue
			}
		case needsPerson(f.reason):
			progressing = metav1.ConditionFalse
		case f.reason != samplecrdv1.ReasonCreating && meta.IsStatusConditionTrue(status.Conditions, samplecrdv1.ConditionReady):
			ready = metav1.ConditionTrue
		}
	}
	if p.reportsDrift() && progressing == metav1.ConditionTrue {
		// What is only read can't be read now: that it was as declared must not
		// be forgotten, or the next pass would write.
		setCondition(status, samplecrdv1.ConditionProgressing, progressing, reason, message, p.network.Generation)
	} else {
		p.setConditions(status, ready, progressing, reason, message)
	}
	if writeErr := p.writeStatus(ctx, status); writeErr != nil {
		if failed {
			klog.FromContext(ctx).Error(err, "The pass failed, and its status can't be written")
		}
		return writeErr
	}
	if reason == samplecrdv1.ReasonPaused {
		return nil // the change of the annotation starts the next pass
	}
	return err
}

// writeIntent says that a network is about to be made, and where, before the
// first POST. The write is the fence: with a stale object it fails, and
// nothing is made.
func (p *pass) writeIntent(ctx context.Context, reason string) error {
	status := p.network.Status.DeepCopy()
	status.ProjectID, status.Region = p.client.Place().ProjectID, p.client.Place().Region
	status.NetworkID, status.Subnets, status.MTU, status.Provider = "", nil, nil, nil
	message := "the network is about to be made"
	switch reason {
	case samplecrdv1.ReasonExternallyDeleted:
		message = "the network was deleted in Neutron and is made again"
	case samplecrdv1.ReasonUpdating:
		message = "the network is about to be taken over"
	}
	p.setConditions(status, metav1.ConditionFalse, metav1.ConditionTrue, reason, message)
	return p.writeStatus(ctx, status)
}

// writeGone says that nothing of ours is left in Neutron.
func (p *pass) writeGone(ctx context.Context) error {
	p.have = actual{}
	status := p.network.Status.DeepCopy()
	status.NetworkID, status.ProjectID, status.Region = "", "", ""
	status.Subnets, status.MTU, status.Provider = nil, nil, nil
	return p.writeStatus(ctx, status)
}

// writeProgress writes down what was made so far, and what comes next.
func (p *pass) writeProgress(ctx context.Context, next operation) error {
	status := p.observed()
	ready, reason := metav1.ConditionFalse, samplecrdv1.ReasonCreating
	if c := meta.FindStatusCondition(status.Conditions, samplecrdv1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
		ready, reason = metav1.ConditionTrue, samplecrdv1.ReasonUpdating
	} else if c != nil && c.Reason == samplecrdv1.ReasonExternallyDeleted {
		reason = c.Reason
	}
	p.setConditions(status, ready, metav1.ConditionTrue, reason, "next: "+next.String())
	return p.writeStatus(ctx, status)
}

func (p *pass) writeDeleting(ctx context.Context, message string) error {
	status := p.observed()
	if c := meta.FindStatusCondition(status.Conditions, samplecrdv1.ConditionProgressing); c != nil && c.ObservedGeneration == p.network.Generation {
		return nil // said already, or there is worse to tell
	}
	p.setConditions(status, metav1.ConditionFalse, metav1.ConditionTrue, samplecrdv1.ReasonDeleting, message)
	return p.writeStatus(ctx, status)
}

func (p *pass) setConditions(status *samplecrdv1.NetworkStatus, ready, progressing metav1.ConditionStatus, reason, message string) {
	status.ObservedGeneration = p.network.Generation
	setCondition(status, samplecrdv1.ConditionReady, ready, reason, message, p.network.Generation)
	setCondition(status, samplecrdv1.ConditionProgressing, progressing, reason, message, p.network.Generation)
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(b.Type, a.Type) })
}

func setCondition(status *samplecrdv1.NetworkStatus, conditionType string, value metav1.ConditionStatus, reason, message string, generation int64) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: conditionType, Status: value, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// writeStatus writes what changed, with the version the pass is based on.
func (p *pass) writeStatus(ctx context.Context, status *samplecrdv1.NetworkStatus) error {
	if equality.Semantic.DeepEqual(*status, p.network.Status) {
		return nil
	}
	return p.putStatus(ctx, status)
}

// confirm makes sure that the object is the newest where a search found nothing
// and so a network is about to be made: the object may be gone, and its network
// with it. The API server compares the version and writes nothing.
func (p *pass) confirm(ctx context.Context) error { return p.putStatus(ctx, &p.network.Status) }

func (p *pass) putStatus(ctx context.Context, status *samplecrdv1.NetworkStatus) error {
	network := p.network.DeepCopy()
	network.Status = *status
	var written *samplecrdv1.Network
	var err error
	p.aside(func() {
		written, err = p.clients.SamplecrdV1().Networks(network.Namespace).UpdateStatus(ctx, network, metav1.UpdateOptions{})
	})
	if err != nil {
		return fmt.Errorf("writing the status of Network %s: %w", klog.KObj(network), err)
	}
	p.announce(p.network.Status.Conditions, written.Status.Conditions)
	p.network = written
	return nil
}

// maxNote is what an Event holds, in bytes.
const maxNote = 1024

// announce sends an Event where the reason is another than before.
func (p *pass) announce(before, after []metav1.Condition) {
	was, is := meta.FindStatusCondition(before, samplecrdv1.ConditionProgressing), meta.FindStatusCondition(after, samplecrdv1.ConditionProgressing)
	if p.recorder == nil || is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	eventType := corev1.EventTypeWarning
	switch is.Reason {
	case samplecrdv1.ReasonSuccess, samplecrdv1.ReasonCreating, samplecrdv1.ReasonUpdating, samplecrdv1.ReasonDeleting, samplecrdv1.ReasonPaused:
		eventType = corev1.EventTypeNormal
	}
	note := is.Message
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-3], "") + "..."
	}
	p.recorder.Eventf(p.network, nil, eventType, is.Reason, "Reconcile", "%s", note)
}

// observed returns the status with what is there in Neutron. A pass that did
// not get to see it leaves what was known.
func (p *pass) observed() *samplecrdv1.NetworkStatus {
	status := p.network.Status.DeepCopy()
	n := p.have.network
	if n == nil {
		return status
	}
	status.NetworkID = n.ID
	status.ProjectID, status.Region = p.client.Place().ProjectID, p.client.Place().Region
	status.MTU = expressible(n.MTU)
	status.Provider = nil
	if n.Provider != nil {
		status.Provider = &samplecrdv1.Provider{NetworkType: n.Provider.NetworkType, PhysicalNetwork: n.Provider.PhysicalNetwork}
		if id := n.Provider.SegmentationID; id != 0 {
			status.Provider.SegmentationID = expressible(id)
		}
	}
	status.Subnets = nil
	for _, s := range p.inOrder() {
		status.Subnets = append(status.Subnets, samplecrdv1.SubnetStatus{
			CIDR: s.CIDR, ID: s.ID, Gateway: s.Gateway, AllocationPools: poolStatus(s.AllocationPools),
		})
	}
	return status
}

// expressible leaves out what the field can't hold: the key of a GRE network
// may have 32 bits.
func expressible(n int) *int32 {
	if n < 0 || n > math.MaxInt32 {
		return nil
	}
	return new(int32(n))
}

// inOrder returns the subnets as the spec has them, then the others.
func (p *pass) inOrder() []neutron.Subnet {
	place := func(s neutron.Subnet) int {
		i := slices.IndexFunc(p.want.subnets, func(w desiredSubnet) bool { return same(w.cidr, s.CIDR) })
		if i < 0 {
			return len(p.want.subnets)
		}
		return i
	}
	subnets := slices.Clone(p.have.subnets)
	slices.SortFunc(subnets, func(a, b neutron.Subnet) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.ID, b.ID))
	})
	return subnets
}

// poolStatus puts the pools in order, which Neutron does not keep.
func poolStatus(pools []neutron.AllocationPool) []samplecrdv1.AllocationPool {
	var out []samplecrdv1.AllocationPool
	for _, p := range pools {
		out = append(out, samplecrdv1.AllocationPool(p))
	}
	slices.SortFunc(out, func(a, b samplecrdv1.AllocationPool) int {
		x, _ := netip.ParseAddr(a.Start)
		y, _ := netip.ParseAddr(b.Start)
		return x.Compare(y)
	})
	return out
}
