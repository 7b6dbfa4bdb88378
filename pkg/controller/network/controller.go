// Package network makes each Network real in Neutron and keeps it so.
//
// It is level-triggered: a pass observes what is there, plans what is missing,
// does one operation at a time, and writes down what it found. A crash between
// two operations is the same as a new pass.
package network

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-apiserver/pkg/generated/listers/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

const (
	// firstRetry and lastRetry bound the time between two tries of a Network
	// that failed; it doubles each time.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Controller brings Neutron to what the Networks declare.
type Controller struct {
	clients   clientset.Interface
	networks  listers.NetworkLister
	synced    cache.InformerSynced
	queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	cloud     *neutron.Cloud
	clusterID string

	resyncPeriod time.Duration
	suspects     map[string]bool // ids that had no Network at the last resync
}

// Options of a Controller.
type Options struct {
	// ClusterID is the part of the owner marker that tells clusters apart: 1 to
	// 63 characters, as a label value.
	ClusterID string
	// ResyncPeriod is how often everything is compared with Neutron. Above 0.
	ResyncPeriod time.Duration
}

// NewController returns a controller that makes networks in the cloud. The
// error is that of the informer.
func NewController(ctx context.Context, clients clientset.Interface, informer informers.NetworkInformer, cloud *neutron.Cloud, o Options) (*Controller, error) {
	c := &Controller{
		clients:  clients,
		networks: informer.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "networks"},
		),
		cloud:        cloud,
		clusterID:    o.ClusterID,
		resyncPeriod: o.ResyncPeriod,
	}
	klog.FromContext(ctx).Info("Setting up event handlers")
	registration, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			// Of what was settled before the start the first resync finds out
			// by lists whether it still is.
			if n, ok := obj.(*samplecrdv1.Network); ok && isInInitialList && settled(n) {
				return
			}
			c.enqueue(obj)
		},
		UpdateFunc: func(oldObj, newObj any) {
			if asksForWork(oldObj.(*samplecrdv1.Network), newObj.(*samplecrdv1.Network)) {
				c.enqueue(newObj)
			}
		},
		// A deletion needs no handler: the finalizer makes it an update first.
	})
	if err != nil {
		return nil, fmt.Errorf("adding the handler of Networks: %w", err)
	}
	// Of the handler, not the informer alone: then all that was there at the
	// start has been seen.
	c.synced = registration.HasSynced
	return c, nil
}

// asksForWork tells a change that someone made from our own status, which must
// not start the next pass. A relist (same version) asks for nothing either.
func asksForWork(oldNetwork, newNetwork *samplecrdv1.Network) bool {
	return oldNetwork.UID != newNetwork.UID ||
		oldNetwork.Generation != newNetwork.Generation ||
		!equality.Semantic.DeepEqual(oldNetwork.Annotations, newNetwork.Annotations) ||
		!equality.Semantic.DeepEqual(oldNetwork.Finalizers, newNetwork.Finalizers) ||
		!equality.Semantic.DeepEqual(oldNetwork.DeletionTimestamp, newNetwork.DeletionTimestamp)
}

func (c *Controller) enqueue(obj any) {
	name, err := cache.ObjectToName(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("naming an object of the informer: %w", err))
		return
	}
	c.queue.Add(name)
}

// Run works on that many Networks at once until ctx ends, and returns when the
// last pass is over. The informer must be started by the caller.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()

	logger.Info("Starting Network control loop")
	logger.Info("Waiting for informer caches to sync")
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	logger.Info("Starting workers", "count", workers)
	for range workers {
		running.Go(func() {
			for c.processNext(ctx) {
			}
		})
	}
	logger.Info("Started workers")
	running.Go(func() { c.keepInSync(ctx) })
	<-ctx.Done()
	logger.Info("Shutting down workers")
}

func (c *Controller) processNext(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "network", name)
	err := c.sync(klog.NewContext(ctx, logger), name)
	switch {
	case err == nil:
		c.queue.Forget(name)
		logger.Info("Successfully synced")
	case ctx.Err() != nil:
	case apierrors.IsConflict(err):
		// The object changed under us: nothing is wrong, read it again.
		logger.V(2).Info("Reading again", "reason", err.Error())
		c.queue.AddRateLimited(name)
	default:
		logger.Error(err, "Will try again", "tries", c.queue.NumRequeues(name)+1)
		c.queue.AddRateLimited(name)
	}
	return true
}

// sync makes one pass over one Network. A panic, whatever Neutron or etcd
// hold, ends the pass and not the process.
func (c *Controller) sync(ctx context.Context, name cache.ObjectName) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in the pass over %s: %v\n%s", name, r, debug.Stack())
		}
	}()
	network, err := c.networks.Networks(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Network %s: %w", name, err)
	}
	return newPass(c, network).run(ctx)
}
