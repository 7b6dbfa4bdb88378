// Package controller runs the controllers: in a cluster in the one replica that
// holds the Lease, else alone.
package controller

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	componentbaseconfig "k8s.io/component-base/config"

	"github.com/samplecrd/network-apiserver/pkg/controller/deployment"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// name is that of the controllers in Events, and of their Lease.
const name = "network-controller"

// DeploymentCIDRPool is the default of where Deployments get their CIDRs from.
const DeploymentCIDRPool = "10.128.0.0/9"

// Config says what the controllers work on.
type Config struct {
	// Clients write Networks.
	Clients versioned.Interface
	// Networks is started by the caller, after Prepare.
	Networks informers.NetworkInformer
	// Cloud is where Networks without credentials of their own are made.
	Cloud *neutron.Cloud
	// Network is told by Run what there is of a cluster.
	Network network.Options
	// Cluster is what there is of a cluster beside the Networks. nil: nothing.
	Cluster *Cluster
}

// Cluster is what the controllers need of a cluster.
type Cluster struct {
	Clients kubernetes.Interface
	// Deployments get Networks where they ask for one. Started as Networks are.
	Deployments appsinformers.DeploymentInformer
	// CIDRPool is where the CIDRs of those come from.
	CIDRPool netip.Prefix
	// LeaderElection is about the Lease of the one that works.
	LeaderElection componentbaseconfig.LeaderElectionConfiguration
}

// Prepare asks for the informers, so that they are started with their factory:
// the controllers are made later, each time this process comes to hold the Lease.
func (c *Config) Prepare() error {
	c.Networks.Informer()
	if c.Cluster == nil {
		return nil
	}
	// Of a Deployment it is who it is that counts.
	return c.Cluster.Deployments.Informer().SetTransform(func(obj any) (any, error) {
		if d, ok := obj.(*appsv1.Deployment); ok {
			return &appsv1.Deployment{TypeMeta: d.TypeMeta, ObjectMeta: d.ObjectMeta}, nil
		}
		return obj, nil
	})
}

// Run works until ctx ends, and returns when the last pass is over.
func (c *Config) Run(ctx context.Context) error {
	if c.Cluster == nil {
		networks, err := network.NewController(ctx, c.Clients, c.Networks, c.Cloud, c.Network)
		if err != nil {
			return err
		}
		networks.Run(ctx)
		return nil
	}
	// Events of the last passes are still sent.
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	broadcaster := events.NewBroadcaster(eventSink{&events.EventSinkImpl{Interface: c.Cluster.Clients.EventsV1()}})
	if err := broadcaster.StartRecordingToSinkWithContext(recording); err != nil {
		return fmt.Errorf("starting to record Events: %w", err)
	}
	defer broadcaster.Shutdown()
	return lead(ctx, c.Cluster.Clients, c.Cluster.LeaderElection, func(ctx context.Context) error {
		return c.work(ctx, broadcaster)
	})
}

// work makes the controllers of one term and runs them until ctx ends.
func (c *Config) work(ctx context.Context, broadcaster events.EventBroadcaster) error {
	options := c.Network
	options.Cluster = c.Cluster.Clients
	options.Recorder = broadcaster.NewRecorder(scheme.Scheme, name)
	networks, err := network.NewController(ctx, c.Clients, c.Networks, c.Cloud, options)
	if err != nil {
		return err
	}
	deployments, err := deployment.NewController(ctx, c.Clients, c.Networks, c.Cluster.Deployments, deployment.Options{
		CIDRPool: c.Cluster.CIDRPool,
		Recorder: broadcaster.NewRecorder(kubescheme.Scheme, name),
	})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { deployments.Run(ctx, deploymentWorkers) })
	networks.Run(ctx)
	running.Wait()
	return nil
}

// deploymentWorkers are few: all they do is to write a Network now and then.
const deploymentWorkers = 2
