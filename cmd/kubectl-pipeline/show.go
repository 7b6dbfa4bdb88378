package main

import "github.com/spf13/cobra"

func newShowCommand(p *program) *cobra.Command {
	var objects bool
	command := &cobra.Command{
		Use:   "show ID",
		Short: "Show the trace of that name or audit ID",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			finder, err := p.finder()
			if err != nil {
				return err
			}
			trace, err := finder.find(command.Context(), args[0])
			if err != nil {
				return err
			}
			trace = finder.withPasses(command.Context(), trace)
			tree := p.tree(objects)
			tree.request(trace)
			tree.passes(trace)
			return nil
		},
	}
	addObjectsFlag(command, &objects)
	return command
}

func addObjectsFlag(command *cobra.Command, objects *bool) {
	command.Flags().BoolVar(objects, "objects", false, "show whole objects where a stage made one")
}
