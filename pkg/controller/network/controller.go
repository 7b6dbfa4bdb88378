// Package network makes each Network real in Neutron and keeps it so.
//
// It is level-triggered: a pass observes what is there, plans what is missing,
// does one operation at a time, and writes down what it found. A crash between
// two operations is the same as a new pass.
package network

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-apiserver/pkg/generated/listers/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

const (
	// firstRetry and lastRetry bound the time between two tries of a Network
	// that failed; it doubles each time.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Minute
	// quotaRetry is the least between two tries at a quota: others have to make
	// room first, and each try costs Neutron a count.
	quotaRetry = 30 * time.Second
)

// Drift is what to do about a network that was as declared and is not any
// more, with nobody having changed the Network.
type Drift string

const (
	// DriftCorrect makes the network as declared again.
	DriftCorrect Drift = "Correct"
	// DriftReport leaves it as it is and says so in the conditions, until the
	// spec changes.
	DriftReport Drift = "Report"
)

// Controller brings Neutron to what the Networks declare.
type Controller struct {
	clients   clientset.Interface
	networks  listers.NetworkLister
	synced    cache.InformerSynced // of the handler
	ignore    func() error         // takes the handler away
	queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	backoff   workqueue.TypedRateLimiter[cache.ObjectName] // that of the queue
	cloud     *neutron.Cloud                               // of Networks that name no credentials
	secrets   *secrets
	clusterID string
	drift     Drift
	recorder  events.EventRecorder
	pipeline  *pipeline.Recorder

	// turns holds one for each pass that is not just waiting for the API server.
	turns        chan struct{}
	resyncPeriod time.Duration
	clock        clock.PassiveClock
	suspects     suspects
	surplus      surplus
}

// Options of a Controller.
type Options struct {
	// ClusterID is the part of the owner marker that tells clusters apart: 1 to
	// 63 characters, as a label value.
	ClusterID string
	// Workers is the number of Networks that are worked on at once, and so of
	// calls to Neutron. Above 0.
	Workers int
	// ResyncPeriod is how often everything is compared with Neutron. Above 0.
	ResyncPeriod time.Duration
	// Drift is what to do about what is found to differ. Default DriftCorrect.
	Drift Drift
	// Recorder is told when the reason of the conditions changes. nil: nobody is.
	Recorder events.EventRecorder
	// Cluster has the Secrets with the credentials that Networks name. Nil where
	// there is none: such Networks then wait with CredentialsUnavailable.
	Cluster kubernetes.Interface
	// Pipeline is shown what the passes do. nil: nobody is.
	Pipeline *pipeline.Recorder
}

// NewController returns a controller that makes networks in the cloud. The
// error is that of the informer.
func NewController(ctx context.Context, clients clientset.Interface, informer informers.NetworkInformer, cloud *neutron.Cloud, o Options) (*Controller, error) {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)
	c := &Controller{
		clients:  clients,
		networks: informer.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(backoff,
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "networks"}),
		backoff:      backoff,
		cloud:        cloud,
		secrets:      newSecrets(o.Cluster),
		clusterID:    o.ClusterID,
		drift:        o.Drift,
		recorder:     o.Recorder,
		pipeline:     o.Pipeline,
		turns:        make(chan struct{}, o.Workers),
		resyncPeriod: o.ResyncPeriod,
		clock:        clock.RealClock{},
	}
	countNetworks(c.networks)
	klog.FromContext(ctx).Info("Setting up event handlers")
	registration, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			// Of what was settled before the start the first resync finds out
			// by lists whether it still is.
			if n, ok := obj.(*samplecrdv1.Network); ok && isInInitialList && settled(n) {
				return
			}
			c.enqueue(obj, "added")
		},
		UpdateFunc: func(oldObj, newObj any) {
			if asksForWork(oldObj.(*samplecrdv1.Network), newObj.(*samplecrdv1.Network)) {
				c.enqueue(newObj, "modified")
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
	c.ignore = func() error { return informer.Informer().RemoveEventHandler(registration) }
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

func (c *Controller) enqueue(obj any, why string) {
	name, err := cache.ObjectToName(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("naming an object of the informer: %w", err))
		return
	}
	c.pipeline.Enqueued(name, why)
	c.queue.Add(name)
}

// passesPerTurn is how many passes share the turn of one worker: what one waits
// for the API server in making a network, another uses to speak to Neutron.
const passesPerTurn = 2

// Run works until ctx ends, and returns when the last pass is over; that is the
// end of this controller. The informer must be started by the caller.
func (c *Controller) Run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	defer func() {
		if err := c.ignore(); err != nil {
			logger.Error(err, "Removing the handler of Networks")
		}
	}()

	logger.Info("Starting Network control loop")
	logger.Info("Waiting for informer caches to sync")
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	logger.Info("Starting workers", "count", cap(c.turns))
	for range cap(c.turns) * passesPerTurn {
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
	f, failed := errors.AsType[*failure](err)
	switch {
	case err == nil:
		c.queue.Forget(name)
		logger.Info("Successfully synced")
	case ctx.Err() != nil:
	case failed && needsPerson(f.reason):
		// Nothing would change until a person has changed something.
		c.queue.Forget(name)
		logger.Info("Waiting for the next resync or a change", "reason", f.Error())
	case apierrors.IsConflict(err):
		// The object changed under us: nothing is wrong, read it again.
		logger.V(2).Info("Reading again", "reason", err.Error())
		c.pipeline.Enqueued(name, "conflict")
		c.queue.AddRateLimited(name)
	default:
		delay := max(c.backoff.When(name), atLeast(err))
		logger.Error(err, "Will try again", "tries", c.queue.NumRequeues(name), "after", delay)
		c.pipeline.Enqueued(name, fmt.Sprintf("try again after %v", delay))
		c.queue.AddAfter(name, delay)
	}
	return true
}

// atLeast is how long to wait at the least after a failure.
func atLeast(err error) time.Duration {
	var wait time.Duration
	if f, ok := errors.AsType[*failure](err); ok && f.reason == samplecrdv1.ReasonQuotaExceeded {
		wait = quotaRetry
	}
	if e, ok := errors.AsType[*neutron.Error](err); ok {
		wait = max(wait, e.RetryAfter)
	}
	return wait
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
		c.pipeline.Gone(name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Network %s: %w", name, err)
	}
	ctx, shown := c.pipeline.StartPass(ctx, network)
	p := newPass(c, network)
	defer func() { shown.End(p.result(err)) }()
	return p.run(ctx)
}
