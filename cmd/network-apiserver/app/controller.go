package app

import (
	"context"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/samplecrd/network-apiserver/pkg/controller/cluster"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
)

// addController runs the controller while the server serves: it is waited for
// before the listener closes, so that its last status is written. fail ends the
// server.
func addController(ctx context.Context, server *genericapiserver.GenericAPIServer, o *Options, base base, factory informers.SharedInformerFactory, fail context.CancelCauseFunc) error {
	clients, err := newClients(server.LoopbackClientConfig)
	if err != nil {
		return err
	}
	kube, err := base.clients()
	if err != nil {
		return err
	}
	cloud, err := base.cloud()
	if err != nil {
		return err
	}
	clusterID, err := base.clusterID(ctx)
	if err != nil {
		return err
	}
	options := network.Options{
		ClusterID:    clusterID,
		Workers:      o.Workers,
		ResyncPeriod: o.ResyncPeriod,
		Drift:        network.Drift(o.Drift),
	}
	stopRecording := func() {}
	if !o.Standalone {
		if options.Recorder, stopRecording, err = cluster.NewRecorder(ctx, kube.kube.EventsV1(), scheme.Scheme); err != nil {
			return err
		}
	}
	networks := factory.Samplecrd().V1().Networks()
	networks.Informer() // asked for before the factory is started; the controller is made later
	work := func(ctx context.Context) error {
		controller, err := network.NewController(ctx, clients, networks, cloud, options)
		if err != nil {
			return err
		}
		controller.Run(ctx)
		return nil
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	err = server.AddPostStartHook("start-network-controller", func(genericapiserver.PostStartHookContext) error {
		running.Go(func() {
			if err := cluster.Lead(ctx, kube.kube, o.LeaderElection, work); err != nil {
				fail(err)
			}
		})
		return nil
	})
	if err != nil {
		stop()
		return err
	}
	return server.AddPreShutdownHook("stop-network-controller", func() error {
		stop()
		running.Wait()
		stopRecording()
		return nil
	})
}
