// Package deployment gives a Deployment that asks for it a Network.
//
// The annotation samplecrd.k8s.io/network asks, and the Network has the name
// and the namespace of the Deployment, which is its controller: garbage
// collection takes it along. A pass makes what is there as it is asked for:
//
//	annotation    Network of the name       what is done
//	"true"        none                      made, with the first free range of the pool
//	a CIDR        none                      made with it
//	"true"        ours                      nothing: it keeps the CIDR that it has
//	a CIDR        ours                      spec.cidr is changed, if it is another range
//	absent        ours                      deleted
//	anything else any                       Warning InvalidNetworkAnnotation
//	"true", CIDR  not ours                  Warning NetworkExists: it is left alone
//	"true", CIDR  one that is being deleted it is waited for
//	"true"        none, and no range free   Warning CIDRPoolExhausted, until one is
//
// Ours is what has the UID of this Deployment as its controller. That of an
// earlier Deployment of the same name is not: the garbage collector removes it,
// and the next pass makes a new one. Of what is ours only spec.cidr is written,
// all else is the user's. While a Deployment is being deleted nothing is done.
//
// Plain create and update suffice, and each is safe with a stale cache: a create
// can't take over a Network that someone made meanwhile, as server-side apply
// would, and an update or a deletion bears the version that it was decided on.
package deployment

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-apiserver/pkg/generated/listers/samplecrd/v1"
)

// firstRetry and lastRetry bound the time between two tries for a Deployment;
// it doubles each time.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Controller gives Deployments their Networks.
type Controller struct {
	clients     clientset.Interface
	networks    listers.NetworkLister
	deployments appslisters.DeploymentLister
	synced      []cache.InformerSynced // of the handlers
	ignore      []func() error         // take them away
	// queue holds names that a Deployment and its Network have in common.
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	pool   *pool
	events *announcer
}

// Options of a Controller.
type Options struct {
	// CIDRPool is where CIDRs are taken from, as ParsePool returns it.
	CIDRPool netip.Prefix
	// Recorder takes the Events of Deployments. Required.
	Recorder events.EventRecorder
}

// NewController returns a controller that makes Networks with the clients. The
// error is that of an informer.
func NewController(ctx context.Context, clients clientset.Interface, networks informers.NetworkInformer, deployments appsinformers.DeploymentInformer, o Options) (*Controller, error) {
	c := &Controller{
		clients:     clients,
		networks:    networks.Lister(),
		deployments: deployments.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "deployments"}),
		events: newAnnouncer(o.Recorder),
	}
	var err error
	if c.pool, err = newPool(o.CIDRPool, networks.Informer(), c.queue.Add); err != nil {
		return nil, fmt.Errorf("indexing the subnets of Networks: %w", err)
	}
	klog.FromContext(ctx).Info("Setting up event handlers")
	for kind, watched := range map[string]struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		"Deployments": {deployments.Informer(), c.deploymentHandler()},
		"Networks":    {networks.Informer(), c.networkHandler()},
	} {
		registration, err := watched.informer.AddEventHandler(watched.handler)
		if err != nil {
			return nil, fmt.Errorf("adding the handler of %s: %w", kind, err)
		}
		c.synced = append(c.synced, registration.HasSynced)
		c.ignore = append(c.ignore, func() error { return watched.informer.RemoveEventHandler(registration) })
	}
	return c, nil
}

// deploymentHandler has no eye for a Deployment that never asked: one that no
// longer asks is found by its Network.
func (c *Controller) deploymentHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if _, asks := obj.(*appsv1.Deployment).Annotations[samplecrdv1.AnnotationNetwork]; asks {
				c.enqueue(obj)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			if asksAnew(oldObj.(*appsv1.Deployment), newObj.(*appsv1.Deployment)) {
				c.enqueue(newObj)
			}
		},
		DeleteFunc: c.enqueue,
	}
}

func asksAnew(oldDeployment, newDeployment *appsv1.Deployment) bool {
	oldText, oldAsks := oldDeployment.Annotations[samplecrdv1.AnnotationNetwork]
	newText, newAsks := newDeployment.Annotations[samplecrdv1.AnnotationNetwork]
	return oldText != newText || oldAsks != newAsks ||
		newAsks && (oldDeployment.UID != newDeployment.UID ||
			!equality.Semantic.DeepEqual(oldDeployment.DeletionTimestamp, newDeployment.DeletionTimestamp))
}

func (c *Controller) networkHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue,
		UpdateFunc: func(oldObj, newObj any) {
			oldNetwork, newNetwork := oldObj.(*samplecrdv1.Network), newObj.(*samplecrdv1.Network)
			if matters(oldNetwork, newNetwork) {
				c.enqueue(newObj)
			}
			kept := ranges(newNetwork)
			if slices.ContainsFunc(ranges(oldNetwork), func(r netip.Prefix) bool { return !slices.Contains(kept, r) }) {
				c.pool.wake()
			}
		},
		DeleteFunc: func(obj any) {
			c.enqueue(obj)
			c.pool.wake()
		},
	}
}

// matters tells a change that may need an answer from one of the status, which
// is the most frequent.
func matters(oldNetwork, newNetwork *samplecrdv1.Network) bool {
	return oldNetwork.UID != newNetwork.UID ||
		oldNetwork.Generation != newNetwork.Generation ||
		!equality.Semantic.DeepEqual(oldNetwork.OwnerReferences, newNetwork.OwnerReferences) ||
		!equality.Semantic.DeepEqual(oldNetwork.DeletionTimestamp, newNetwork.DeletionTimestamp)
}

func (c *Controller) enqueue(obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("naming an object of the informer: %w", err))
		return
	}
	c.queue.Add(name)
}

// Run works on that many Deployments at once until ctx ends, and returns when
// the last pass is over; that is the end of this controller. The informers must
// be started by the caller.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	defer func() {
		for _, ignore := range c.ignore {
			if err := ignore(); err != nil {
				logger.Error(err, "Removing a handler")
			}
		}
	}()

	logger.Info("Starting Deployment control loop")
	logger.Info("Waiting for informer caches to sync")
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
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
	<-ctx.Done()
	logger.Info("Shutting down workers")
}

func (c *Controller) processNext(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "deployment", name)
	err := c.sync(klog.NewContext(ctx, logger), name)
	switch {
	case err == nil:
		c.queue.Forget(name)
	case ctx.Err() != nil:
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		// The cache is behind: nothing is wrong, read it again.
		logger.V(2).Info("Reading again", "reason", err.Error())
		c.queue.AddRateLimited(name)
	default:
		logger.Error(err, "Will try again", "tries", c.queue.NumRequeues(name))
		c.queue.AddRateLimited(name)
	}
	return true
}
