package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

var errNotServed = errors.New("the server records no requests: start it with --pipeline-traces=256")

// program is what all commands stand on.
type program struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	color string
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	p := &program{
		IOStreams: streams,
		flags:     genericclioptions.NewConfigFlags(true).WithWrapConfigFn(wrapConfig),
	}
	command := &cobra.Command{
		Use:           "kubectl-pipeline",
		Short:         "Show the way of a request for a Network through the server",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pipeline"},
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			switch p.color {
			case "auto", "always", "never":
				return nil
			}
			return fmt.Errorf("--color %q must be auto, always or never", p.color)
		},
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	p.flags.AddFlags(command.PersistentFlags())
	command.PersistentFlags().StringVar(&p.color, "color", "auto", "auto, always or never; auto is for terminals, unless NO_COLOR is set")
	command.AddCommand(newTraceCommand(p), newShowCommand(p), newFollowCommand(p), newPageCommand(p))
	return command
}

// wrapConfig allows no HTTP/2, which would put all requests on one connection:
// so those sent one after the other keep to one replica, and those sent at once
// can reach others. The traces tell who asked.
func wrapConfig(config *rest.Config) *rest.Config {
	config.NextProtos = []string{"http/1.1"}
	config.QPS = -1
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	return config
}

// finder returns errNotServed where there are no traces to find.
func (p *program) finder() (*finder, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of traces: %w", err)
	}
	_, err = clients.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return nil, errNotServed
	}
	if err != nil {
		return nil, fmt.Errorf("looking whether traces are served: %w", err)
	}
	return &finder{
		traces:   clients.PipelineV1alpha1().RequestTraces(),
		backoff:  wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 5},
		patience: 5 * time.Second,
	}, nil
}

// painter colours what goes to Out.
func (p *program) painter() painter {
	return painter{color: p.color == "always" || p.color == "auto" && printers.AllowsColorOutput(p.Out)}
}

func (p *program) tree(objects bool) *tree {
	t := &tree{out: p.Out, painter: p.painter(), width: 100, objects: objects}
	if file, ok := p.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			t.width = max(width, 60)
		}
	}
	return t
}
