package app

import (
	"context"
	"fmt"
	"io"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-apiserver/pkg/controller/cluster"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// clusterBase is what a server behind a kube-apiserver stands on: that, and an
// etcd of its own.
type clusterBase struct {
	*Options
	clusterClients *clusterClients
}

var _ base = &clusterBase{}

func newCluster(o *Options) (*clusterBase, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	clients, err := newClusterClients(config)
	if err != nil {
		return nil, err
	}
	return &clusterBase{o, clients}, nil
}

func (b *clusterBase) applyStorage(config *genericapiserver.Config) error {
	return applyStorage(config, *b.Etcd)
}

// applyServing asks the cluster who somebody is and what he may. Whom the front
// proxy names is believed to its certificate alone.
func (b *clusterBase) applyServing(config *genericapiserver.Config) error {
	if err := b.SecureServing.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return err
	}
	if err := b.Authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
		return fmt.Errorf("setting up authentication by the cluster: %w", err)
	}
	if err := b.Authorization.ApplyTo(&config.Authorization); err != nil {
		return fmt.Errorf("setting up authorization by the cluster: %w", err)
	}
	return nil
}

func (b *clusterBase) clients() (*clusterClients, error) { return b.clusterClients, nil }

func (b *clusterBase) clusterID(ctx context.Context) (string, error) {
	if b.ClusterID != "" {
		return b.ClusterID, nil
	}
	return cluster.ID(ctx, b.clusterClients.kube)
}

func (b *clusterBase) cloud() (*neutron.Cloud, error) { return operatorsCloud(b.Options), nil }

func (b *clusterBase) ready(io.Writer) error {
	klog.Info("network-apiserver is ready")
	return nil
}

func (b *clusterBase) context(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}

func (b *clusterBase) close() {}

// operatorsCloud is one to which nothing is said before it is needed: the
// server serves whether or not OpenStack answers.
func operatorsCloud(o *Options) *neutron.Cloud {
	return neutron.NewCloud(neutron.CloudOptions{Name: o.OSCloud, WrapTransport: network.CountRequests})
}
