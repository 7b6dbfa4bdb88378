// Package registration makes the server known to kube-apiserver with nobody's
// help: it keeps a serving certificate in a Secret that all replicas share, and
// the APIServices whose caBundle verifies it.
//
// A certificate lasts 90 days and is replaced when a third of that is left.
// Two rules let no request fail while that happens, whoever does it:
//
//   - What a replica serves stays in caBundle.
//   - A replica serves another certificate only after every APIService has had
//     its CA for a minute. (One that just starts has no other.)
//
// Deleting the Secret has a new certificate made in the same way, at once. The
// CA of the old one leaves caBundle an hour after no replica needs it. No key of
// a CA is kept: each signs one certificate.
package registration

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/utils/clock"
)

const (
	// settle is how long caBundle is left to arrive at each kube-apiserver.
	settle = time.Minute
	// retire is how long a CA stays in caBundle after it was last of use here.
	retire = time.Hour
	// resync is how often all is compared with no event at all.
	resync = 5 * time.Minute
)

// Options say what is registered, and where it is reached.
type Options struct {
	// Versions are those that are served, the preferred one of each group first.
	Versions []schema.GroupVersion
	// ServiceNamespace, ServiceName and ServicePort are where kube-apiserver
	// reaches this server.
	ServiceNamespace, ServiceName string
	ServicePort                   int32
	// SecretName is the Secret, in ServiceNamespace, that holds the serving
	// certificate.
	SecretName string
}

// Registrar keeps the serving certificate and the APIServices. As the serving
// certificate of a server it is run by that server.
type Registrar struct {
	kube        kubernetes.Interface
	aggregator  clientset.Interface
	apiServices apiregistrationclient.APIServiceInterface
	clock       clock.WithTicker
	options     Options
	names       []string // of the certificate; the first is what kube-apiserver asks for

	mu        sync.Mutex // of what follows
	served    *pair      // only the loop writes it, and so reads it without mu
	listeners []dynamiccertificates.Listener

	// Of the one loop that runs:
	idle    map[string]time.Time // since when this replica needs a CA no longer
	bundle  string               // what all APIServices were last seen to have
	settled time.Time            // since when they have it
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Registrar{}
	_ dynamiccertificates.ControllerRunner       = &Registrar{}
)

// New reads the serving certificate, or makes it. It fails where that is not
// possible, as nothing could be served then; the APIServices can be missing
// a while, and are written when the server runs.
func New(ctx context.Context, kube kubernetes.Interface, aggregator clientset.Interface, options Options) (*Registrar, error) {
	return newRegistrar(ctx, kube, aggregator, options, clock.RealClock{})
}

func newRegistrar(ctx context.Context, kube kubernetes.Interface, aggregator clientset.Interface, options Options, clock clock.WithTicker) (*Registrar, error) {
	service := options.ServiceName + "." + options.ServiceNamespace
	r := &Registrar{
		kube:        kube,
		aggregator:  aggregator,
		apiServices: aggregator.ApiregistrationV1().APIServices(),
		clock:       clock,
		options:     options,
		names:       []string{service + ".svc", service + ".svc.cluster.local", service, options.ServiceName, "localhost"},
	}
	current, _, err := r.keepSecret(ctx)
	if err != nil {
		return nil, err
	}
	r.serve(current)
	return r, nil
}

// RunOnce compares everything once.
func (r *Registrar) RunOnce(ctx context.Context) error {
	_, err := r.sync(ctx)
	return err
}

// Run compares everything on each change, and every few minutes, until ctx ends.
func (r *Registrar) Run(ctx context.Context, _ int) {
	const all = "" // there is but one thing to do
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "registration", Clock: r.clock})
	secret := coreinformers.NewFilteredSecretInformer(r.kube, r.options.ServiceNamespace, 0, nil, named(r.options.SecretName))
	informers := append(apiServiceInformers(r.aggregator, 0, r.options.Versions), secret)
	var running sync.WaitGroup
	running.Go(func() {
		watched(ctx, informers, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { queue.Add(all) },
			UpdateFunc: func(any, any) { queue.Add(all) },
			DeleteFunc: func(any) { queue.Add(all) },
		})
		queue.ShutDown()
	})
	queue.Add(all)
	for {
		key, shutdown := queue.Get()
		if shutdown {
			break
		}
		if next, err := r.sync(ctx); err == nil {
			queue.Forget(key)
			queue.AddAfter(key, next)
		} else if ctx.Err() == nil {
			klog.ErrorS(err, "Registering this server failed; it is tried again")
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
	running.Wait()
}

// watched runs informers until ctx ends.
func watched(ctx context.Context, informers []cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	var running sync.WaitGroup
	for _, informer := range informers {
		if _, err := informer.AddEventHandler(handler); err != nil {
			klog.ErrorS(err, "Watching") // only of an informer that has been stopped
		}
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	running.Wait()
}

// sync brings Secret, APIServices and what is served one step on, and returns
// when to look again.
func (r *Registrar) sync(ctx context.Context) (next time.Duration, err error) {
	current, cas, err := r.keepSecret(ctx)
	if err != nil {
		return 0, err
	}
	if !r.served.good(r.names[0], r.clock.Now()) {
		r.serve(current) // no rule helps a certificate that nobody takes
	}
	bundle := string(encode(cas...))
	changed, err := r.keepAPIServices(ctx, []byte(bundle))
	if changed || bundle != r.bundle {
		r.bundle, r.settled = bundle, r.clock.Now()
	}
	if err != nil {
		return 0, err
	}
	if r.clock.Since(r.settled) >= settle {
		r.serve(current)
	}
	if !r.served.leaf.Equal(current.leaf) {
		return settle, nil
	}
	return resync, nil
}

// serve has new connections served with p.
func (r *Registrar) serve(p *pair) {
	r.mu.Lock()
	if r.served != nil && r.served.leaf.Equal(p.leaf) {
		r.mu.Unlock()
		return
	}
	r.served = p
	listeners := r.listeners
	r.mu.Unlock()
	klog.InfoS("Serving with another certificate", "serial", fmt.Sprintf("%x", p.leaf.SerialNumber), "notAfter", p.leaf.NotAfter)
	for _, listener := range listeners {
		listener.Enqueue()
	}
}

// Name tells logs where the certificate comes from.
func (r *Registrar) Name() string {
	return "secret/" + r.options.ServiceNamespace + "/" + r.options.SecretName
}

// CurrentCertKeyContent returns the serving certificate and its key as PEM.
func (r *Registrar) CurrentCertKeyContent() (certPEM, keyPEM []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served.certPEM, r.served.keyPEM
}

// AddListener has listener told of each change of the certificate.
func (r *Registrar) AddListener(listener dynamiccertificates.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, listener)
}
