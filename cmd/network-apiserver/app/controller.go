package app

import (
	"context"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/samplecrd/network-apiserver/pkg/controller"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// addControllers runs them while the server serves: they are waited for before
// the listener closes, so that their last status is written. fail ends the
// server.
func addControllers(ctx context.Context, server *genericapiserver.GenericAPIServer, o *Options, base base, factory informers.SharedInformerFactory, recorder *pipeline.Recorder, fail context.CancelCauseFunc) error {
	clients, err := newClients(server.LoopbackClientConfig)
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
	cluster, err := base.cluster()
	if err != nil {
		return err
	}
	controllers := &controller.Config{
		Clients:  clients,
		Networks: factory.Samplecrd().V1().Networks(),
		Cloud:    cloud,
		Network: network.Options{
			ClusterID:    clusterID,
			Workers:      o.Workers,
			ResyncPeriod: o.ResyncPeriod,
			Drift:        network.Drift(o.Drift),
			Pipeline:     recorder,
		},
		Cluster: cluster,
	}
	if err := controllers.Prepare(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	err = server.AddPostStartHook("start-controllers", func(genericapiserver.PostStartHookContext) error {
		running.Go(func() {
			if err := controllers.Run(ctx); err != nil {
				fail(err)
			}
		})
		return nil
	})
	if err != nil {
		stop()
		return err
	}
	return server.AddPreShutdownHook("stop-controllers", func() error {
		stop()
		running.Wait()
		return nil
	})
}
