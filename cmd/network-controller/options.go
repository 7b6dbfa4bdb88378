package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

const usage = `Usage:
  network-controller [flags]            make Networks real in Neutron, until it is told to stop
  network-controller orphans [flags]    list the networks in Neutron that bear a marker of this cluster and have no Network

Flags:
`

// options are the values of the command line.
type options struct {
	kubeconfig, master string
	cloud              string
	clusterID          string
	drift              string
	resyncPeriod       time.Duration
	workers            int
}

// parse reads flags with one dash or two, klog's among them.
func parse(args []string, output io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("network-controller", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		fmt.Fprint(output, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says where the API is; without it and -master, that of the cluster this runs in")
	flags.StringVar(&o.master, "master", "", "`URL` of the API, in the place of the kubeconfig's")
	flags.StringVar(&o.cloud, "os-cloud", "", "`name` of the cloud in clouds.yaml to make networks in; the file is looked for as OpenStack's own client does")
	flags.StringVar(&o.clusterID, "cluster-id", "", "`part` of the owner marker in Neutron that tells clusters apart, at most 63 characters; of a standalone server its file cluster-id holds it")
	flags.StringVar(&o.drift, "drift", string(network.DriftCorrect), "what to do about a network that someone changes in Neutron: Correct or Report")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 10*time.Minute, "how often all Networks are compared with Neutron, give or take a tenth; at least 1s")
	flags.IntVar(&o.workers, "concurrent-network-syncs", 8, "`number` of Networks to work on at once")
	klog.InitFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.validate()
}

// validate returns all that is wrong with the values, each with its flag.
func (o *options) validate() error {
	var errs []error
	if o.cloud == "" {
		errs = append(errs, errors.New("-os-cloud must be given"))
	}
	if o.clusterID == "" {
		errs = append(errs, errors.New("-cluster-id must be given"))
	}
	for _, problem := range utilvalidation.IsValidLabelValue(o.clusterID) {
		errs = append(errs, fmt.Errorf("-cluster-id %q: %s", o.clusterID, problem))
	}
	if drift := network.Drift(o.drift); drift != network.DriftCorrect && drift != network.DriftReport {
		errs = append(errs, fmt.Errorf("-drift %q must be %s or %s", o.drift, network.DriftCorrect, network.DriftReport))
	}
	if o.resyncPeriod < time.Second {
		errs = append(errs, fmt.Errorf("-resync-period %v must be at least 1s", o.resyncPeriod))
	}
	if o.workers < 1 {
		errs = append(errs, fmt.Errorf("-concurrent-network-syncs %d must be at least 1", o.workers))
	}
	return errors.Join(errs...)
}

// config speaks protobuf, and bounds nothing by itself: the server does.
func (o *options) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the API: %w", err)
	}
	config = rest.AddUserAgent(config, "network-controller")
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1
	return config, nil
}

func (o *options) clients() (versioned.Interface, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the API: %w", err)
	}
	return clients, nil
}

// secrets returns the client of the Secrets that Networks name.
func (o *options) secrets() (corev1client.SecretsGetter, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of Secrets: %w", err)
	}
	return client, nil
}

func (o *options) newCloud() *neutron.Cloud {
	return neutron.NewCloud(neutron.CloudOptions{Name: o.cloud, WrapTransport: network.CountRequests})
}
