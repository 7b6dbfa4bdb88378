package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/page"
)

func newPageCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "page",
		Short: "Serve a page that shows requests as they come, until it is stopped",
		Long: `Serve a page that shows requests as they come, until it is stopped.

It listens on loopback alone, and whoever has its URL has the rights of this
kubeconfig with it: to read traces, and to send dry runs.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			finder, err := p.finder()
			if err != nil {
				return err
			}
			config, err := p.flags.ToRESTConfig()
			if err != nil {
				return err
			}
			served, err := page.New(page.Options{
				Config: config,
				Find: func(ctx context.Context, name string) (*v1alpha1.RequestTrace, error) {
					trace, err := finder.find(ctx, name)
					if err != nil {
						return nil, err
					}
					return finder.withPasses(ctx, trace), nil
				},
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(p.Out, served.URL())
			return served.Serve(command.Context())
		},
	}
}
