package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

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
	clients, err := o.clients()
	if err != nil {
		return err
	}
	secrets, err := o.secrets()
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	controller, err := network.NewController(ctx, clients, factory.Samplecrd().V1().Networks(), o.newCloud(), network.Options{
		ClusterID:    o.clusterID,
		Workers:      o.workers,
		ResyncPeriod: o.resyncPeriod,
		Drift:        network.Drift(o.drift),
		Secrets:      secrets,
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	controller.Run(ctx)
	factory.Shutdown()
	return nil
}

func listOrphans(ctx context.Context, o *options, stdout io.Writer) error {
	clients, err := o.clients()
	if err != nil {
		return err
	}
	orphans, err := network.Orphans(ctx, clients, o.newCloud(), o.clusterID)
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
