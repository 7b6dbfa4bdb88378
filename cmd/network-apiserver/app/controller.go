package app

import (
	"context"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// The networks of a standalone server belong to a project of their own in the
// simulator. A request without a token is an administrator's, and sees them.
const (
	simulatorProject = "standalone"
	simulatorRegion  = "RegionOne"
	simulatorToken   = "it:network-apiserver:" + simulatorProject + ":admin"
)

// addController runs the controller while the server serves: it is waited for
// before the listener closes, so that its last status is written.
func addController(server *genericapiserver.GenericAPIServer, o *Options, base *standaloneBase, factory informers.SharedInformerFactory) error {
	clients, err := newClients(server.LoopbackClientConfig)
	if err != nil {
		return err
	}
	cloud, err := newCloud(o, base)
	if err != nil {
		return err
	}
	controller, err := network.NewController(context.Background(), clients, factory.Samplecrd().V1().Networks(), cloud, network.Options{
		ClusterID:    base.clusterID,
		Workers:      o.Workers,
		ResyncPeriod: o.ResyncPeriod,
		Drift:        network.Drift(o.Drift),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	err = server.AddPostStartHook("start-network-controller", func(genericapiserver.PostStartHookContext) error {
		running.Go(func() { controller.Run(ctx) })
		return nil
	})
	if err != nil {
		stop()
		return err
	}
	return server.AddPreShutdownHook("stop-network-controller", func() error {
		stop()
		running.Wait()
		return nil
	})
}

// newCloud returns the operator's cloud, to which nothing is said before it is
// needed: the server serves whether or not OpenStack answers.
func newCloud(o *Options, base *standaloneBase) (*neutron.Cloud, error) {
	if o.OSCloud != "" {
		return neutron.NewCloud(neutron.CloudOptions{Name: o.OSCloud, WrapTransport: network.CountRequests}), nil
	}
	client, err := neutron.New(neutron.Options{
		Endpoint:  base.neutronURL(),
		Token:     simulatorToken,
		ProjectID: simulatorProject,
		Region:    simulatorRegion,

		WrapTransport: network.CountRequests,
	})
	if err != nil {
		return nil, err
	}
	return neutron.NewStaticCloud(client), nil
}
