package deployment

import (
	"context"
	"fmt"
	"net/netip"
	"runtime/debug"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// sync makes one pass over one name. A panic ends the pass and not the process.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in the pass over %s: %v\n%s", name, r, debug.Stack())
		}
	}()
	network, err := c.networks.Networks(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		network, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("reading Network %s: %w", name, err)
	}
	deployment, err := c.deployments.Deployments(name.Namespace).Get(name.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	if err != nil || deployment.DeletionTimestamp != nil {
		c.release(name, network)
		c.events.forget(name)
		return nil
	}
	return c.reconcile(ctx, deployment, network)
}

// reconcile makes at most one write, the answer to which starts the next pass.
// network is nil where there is none.
func (c *Controller) reconcile(ctx context.Context, deployment *appsv1.Deployment, network *samplecrdv1.Network) error {
	name := cache.MetaObjectToName(deployment)
	ours := network != nil && metav1.IsControlledBy(network, deployment)
	text, asked := deployment.Annotations[samplecrdv1.AnnotationNetwork]
	if !asked && !ours {
		c.release(name, network)
		c.events.forget(name)
		return nil
	}
	cidr, err := parseAnnotation(text)
	switch {
	case asked && err != nil:
		c.release(name, network)
		c.events.warn(deployment, invalidAnnotation, err.Error())
		return nil
	case network == nil:
		return c.create(ctx, deployment, cidr)
	case network.DeletionTimestamp != nil:
		klog.FromContext(ctx).Info("Waiting for the Network to go")
		return nil
	case !ours:
		c.pool.settle(name)
		c.events.warn(deployment, networkExists, fmt.Sprintf(
			"Network %s exists and does not belong to this Deployment: it is left as it is; delete it, or remove the annotation %s", name.Name, samplecrdv1.AnnotationNetwork))
		return nil
	case !asked:
		return c.remove(ctx, deployment, network)
	case cidr.IsValid() && !isRange(network.Spec.CIDR, cidr):
		return c.update(ctx, deployment, network, cidr)
	}
	c.settle(name)
	klog.FromContext(ctx).Info("Successfully synced")
	return nil
}

// settle ends what was remembered of a name: the cache has what came of it.
func (c *Controller) settle(name cache.ObjectName) {
	c.pool.settle(name)
	c.events.forget(name)
}

// release ends promises to a name that has no use for them. Where the cache has
// no Network, one that was made may still be on its way.
func (c *Controller) release(name cache.ObjectName, network *samplecrdv1.Network) {
	if network == nil {
		if wait := c.pool.stillPromised(name); wait > 0 {
			c.queue.AddAfter(name, wait)
			return
		}
	}
	c.pool.settle(name)
}

// parseAnnotation returns the range that is asked for, host bits masked, or none
// where one is to be chosen. Whether it may be a subnet the API server decides.
func parseAnnotation(text string) (netip.Prefix, error) {
	if text == "true" {
		return netip.Prefix{}, nil
	}
	cidr, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf(`annotation %s is %.64q: must be "true" or a CIDR, such as 10.20.0.0/16; to have no Network, remove it`, samplecrdv1.AnnotationNetwork, text)
	}
	return cidr.Masked(), nil
}

// isRange compares masked: both may be written with host bits.
func isRange(text string, cidr netip.Prefix) bool {
	r, err := netip.ParsePrefix(text)
	return err == nil && r.Masked() == cidr
}

func (c *Controller) create(ctx context.Context, deployment *appsv1.Deployment, cidr netip.Prefix) error {
	name := cache.MetaObjectToName(deployment)
	if cidr.IsValid() {
		c.pool.promise(name, cidr)
	} else {
		var err error
		if cidr, err = c.pool.take(name); err != nil {
			c.events.warn(deployment, poolExhausted, err.Error())
			return err
		}
	}
	network := &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: cidr.String()}},
	}
	_, err := c.clients.SamplecrdV1().Networks(name.Namespace).Create(ctx, network, metav1.CreateOptions{})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		c.settle(name) // the Deployment goes too
		return nil
	case err != nil:
		return c.failed(deployment, fmt.Errorf("creating Network %s: %w", name, err))
	}
	klog.FromContext(ctx).Info("Created the Network", "cidr", cidr)
	c.events.tell(deployment, networkCreated, fmt.Sprintf("Network %s is created with CIDR %s", name.Name, cidr))
	return nil
}

func (c *Controller) update(ctx context.Context, deployment *appsv1.Deployment, network *samplecrdv1.Network, cidr netip.Prefix) error {
	name := cache.MetaObjectToName(deployment)
	c.pool.promise(name, cidr)
	changed := network.DeepCopy()
	changed.Spec.CIDR = cidr.String()
	if _, err := c.clients.SamplecrdV1().Networks(name.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return c.failed(deployment, fmt.Errorf("updating Network %s: %w", name, err))
	}
	klog.FromContext(ctx).Info("Changed the CIDR of the Network", "from", network.Spec.CIDR, "to", cidr)
	c.events.tell(deployment, networkUpdated, fmt.Sprintf("the CIDR of Network %s is changed from %s to %s", name.Name, network.Spec.CIDR, cidr))
	return nil
}

// remove deletes exactly what was looked at: a Network that was let go of
// meanwhile is not ours any more.
func (c *Controller) remove(ctx context.Context, deployment *appsv1.Deployment, network *samplecrdv1.Network) error {
	name := cache.MetaObjectToName(deployment)
	err := c.clients.SamplecrdV1().Networks(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &network.UID, ResourceVersion: &network.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return c.failed(deployment, fmt.Errorf("deleting Network %s: %w", name, err))
	}
	c.pool.settle(name) // the cache was up to date, or it would have been refused
	klog.FromContext(ctx).Info("Deleted the Network")
	c.events.tell(deployment, networkDeleted, fmt.Sprintf("Network %s is deleted: the annotation %s is gone", name.Name, samplecrdv1.AnnotationNetwork))
	return nil
}

// failed says so where the API server has understood and refused, which a policy
// or a quota may do that is changed later. Whatever else went wrong may have been
// done all the same, so its range stays promised.
func (c *Controller) failed(deployment *appsv1.Deployment, err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		c.pool.settle(cache.MetaObjectToName(deployment))
		c.events.warn(deployment, networkRefused, err.Error())
	}
	return err
}
