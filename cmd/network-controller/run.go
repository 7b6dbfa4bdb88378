package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-apiserver/pkg/controller"
	"github.com/samplecrd/network-apiserver/pkg/controller/deployment"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	act := control
	if len(args) > 0 && args[0] == "orphans" {
		act, args = listOrphans, args[1:]
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return act(ctx, o, stdout)
}

// control works until ctx ends.
func control(ctx context.Context, o *options, _ io.Writer) error {
	clients, kube, err := o.clients()
	if err != nil {
		return err
	}
	inCluster, err := waitForAPI(ctx, kube.Discovery())
	if err != nil {
		return nil // it was told to stop before there was an API
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	kubeFactory := kubeinformers.NewSharedInformerFactory(kube, 0)
	controllers := &controller.Config{
		Clients:  clients,
		Networks: factory.Samplecrd().V1().Networks(),
		Cloud:    o.newCloud(),
		Network: network.Options{
			ClusterID:    o.clusterID,
			Workers:      o.workers,
			ResyncPeriod: o.resyncPeriod,
			Drift:        network.Drift(o.drift),
		},
	}
	if controllers.Network.ClusterID, err = o.marker(ctx, kube); err != nil {
		return err
	}
	if inCluster {
		pool, err := deployment.ParsePool(o.deploymentCIDRPool)
		if err != nil {
			return err
		}
		controllers.Cluster = &controller.Cluster{
			Clients:        kube,
			Deployments:    kubeFactory.Apps().V1().Deployments(),
			CIDRPool:       pool,
			LeaderElection: o.leaderElection,
		}
	}
	if err := controllers.Prepare(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	kubeFactory.Start(ctx.Done())
	defer kubeFactory.Shutdown()
	defer factory.Shutdown()
	defer stop() // what is shut down ends by it, after an error too
	return controllers.Run(ctx)
}

// waitForAPI returns when there is an API server, and whether it is that of a
// cluster: a standalone server has neither Leases nor Deployments. The error
// says that ctx ended first.
func waitForAPI(ctx context.Context, api discovery.ServerGroupsInterface) (inCluster bool, err error) {
	logger := klog.FromContext(ctx)
	var told string
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		groups, err := api.ServerGroups()
		if err != nil {
			// Once, and not each second.
			if message := err.Error(); message != told {
				logger.Info("Waiting for the API server", "reason", message)
				told = message
			}
			return false, nil
		}
		inCluster = slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == coordinationv1.GroupName })
		return true, nil
	})
	return inCluster, err
}

// marker returns the cluster ID that is part of it.
func (o *options) marker(ctx context.Context, kube kubernetes.Interface) (string, error) {
	if o.clusterID != "" {
		return o.clusterID, nil
	}
	id, err := controller.ClusterID(ctx, kube)
	if err != nil {
		return "", fmt.Errorf("%w; give it with -cluster-id: a standalone server has it in its file cluster-id", err)
	}
	return id, nil
}

func listOrphans(ctx context.Context, o *options, stdout io.Writer) error {
	clients, kube, err := o.clients()
	if err != nil {
		return err
	}
	clusterID, err := o.marker(ctx, kube)
	if err != nil {
		return err
	}
	orphans, err := network.Orphans(ctx, clients, o.newCloud(), clusterID)
	if err != nil {
		return fmt.Errorf("looking for orphans: %w", err)
	}
	if len(orphans) == 0 {
		_, err = fmt.Fprintln(stdout, "No orphans found.")
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tMARKER")
	for _, orphan := range orphans {
		fmt.Fprintf(table, "%s\t%s\t%s\n", orphan.ID, orphan.Name, orphan.Marker)
	}
	return table.Flush()
}
