package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

// tracing sends objects and shows what becomes of each.
type tracing struct {
	*program
	sender
	finder  *finder
	files   []string
	dryRun  string
	objects bool
	timeout time.Duration
	drawn   bool // a tree, from which the next keeps its distance
}

func newTraceCommand(p *program) *cobra.Command {
	o := &tracing{program: p}
	command := &cobra.Command{
		Use:   "trace -f FILE",
		Short: "Send objects and show their way through the server and the controller",
		Long: `Send objects and show their way through the server and the controller.

An object is created or, where it exists, updated; with --server-side it is
applied. The exit code is 1 where the server refused one.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file, folder, URL, or - for standard input")
	flags.StringVar(&o.dryRun, "dry-run", "none", "none, or server: the server does all but store the object")
	flags.BoolVar(&o.serverSide, "server-side", false, "apply the object")
	flags.BoolVar(&o.forceConflicts, "force-conflicts", false, "with --server-side: take fields from other managers")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the controller")
	addObjectsFlag(command, &o.objects)
	return command
}

func (o *tracing) complete() error {
	if len(o.files) == 0 {
		return errors.New("what to send must be given with -f")
	}
	switch o.dryRun {
	case "none":
	case "server":
		o.sender.dryRun = []string{metav1.DryRunAll}
	default:
		return fmt.Errorf("--dry-run %q must be none or server", o.dryRun)
	}
	if o.forceConflicts && !o.serverSide {
		return errors.New("--force-conflicts needs --server-side")
	}
	return nil
}

// run sends nothing where the way of it could not be shown.
func (o *tracing) run(ctx context.Context) (err error) {
	if o.finder, err = o.program.finder(); err != nil {
		return err
	}
	namespace, enforce, err := o.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	return resource.NewBuilder(o.flags).
		Unstructured().
		ContinueOnError().
		NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(enforce, &resource.FilenameOptions{Filenames: o.files}).
		Flatten().
		Do().
		Visit(func(info *resource.Info, err error) error {
			if err != nil {
				return err
			}
			return o.trace(ctx, info)
		})
}

func (o *tracing) trace(ctx context.Context, info *resource.Info) error {
	sent, err := o.send(ctx, info)
	if err != nil {
		return err
	}
	trace, err := o.finder.find(ctx, sent.auditID)
	if err != nil {
		fmt.Fprint(o.ErrOut, sent.warnings.String())
		if sent.refusal != nil {
			return fmt.Errorf("%s was refused: %w (%w)", info.ObjectName(), sent.refusal, err)
		}
		return fmt.Errorf("%s was accepted: %w", info.ObjectName(), err)
	}
	if o.drawn {
		fmt.Fprintln(o.Out)
	}
	o.drawn = true
	tree := o.tree(o.objects)
	tree.request(trace)
	switch {
	case sent.refusal != nil:
		return fmt.Errorf("%s was refused: %s", info.ObjectName(), answer(trace))
	case o.dryRun == "server":
		return nil
	case sent.unchanged:
		fmt.Fprintln(o.ErrOut, "nothing changed, so the controller has nothing to do")
		return nil
	}
	return o.await(ctx, tree, trace)
}

// await draws the passes of the controller as they come.
func (o *tracing) await(ctx context.Context, tree *tree, trace *v1alpha1.RequestTrace) error {
	waiting, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	settled := false
	err := o.finder.follow(waiting, trace, func(trace *v1alpha1.RequestTrace) bool {
		settled = tree.finishedPasses(trace)
		return settled
	})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case settled:
	case tree.drawn == 0:
		fmt.Fprintf(o.ErrOut, "no pass of the controller was seen on replica %s within %v: it may run elsewhere\n", trace.Replica, o.timeout)
	default:
		fmt.Fprintf(o.ErrOut, "the controller is not done within %v: kubectl pipeline show %s tells how it went on\n", o.timeout, trace.Name)
	}
	return nil
}
