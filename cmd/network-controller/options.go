package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentbaseconfig "k8s.io/component-base/config"
	componentbaseoptions "k8s.io/component-base/config/options"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-apiserver/pkg/controller"
	"github.com/samplecrd/network-apiserver/pkg/controller/deployment"
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
	deploymentCIDRPool string
	leaderElection     componentbaseconfig.LeaderElectionConfiguration
}

// parse reads flags with one dash or two, klog's among them.
func parse(args []string, output io.Writer) (*options, error) {
	o := &options{leaderElection: controller.NewLeaderElection()}
	flags := flag.NewFlagSet("network-controller", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		fmt.Fprint(output, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says where the API is; without it and -master, that of the cluster this runs in")
	flags.StringVar(&o.master, "master", "", "`URL` of the API, in the place of the kubeconfig's")
	flags.StringVar(&o.cloud, "os-cloud", "", "`name` of the cloud in clouds.yaml to make networks in; the file is looked for as OpenStack's own client does")
	flags.StringVar(&o.clusterID, "cluster-id", "", "`part` of the owner marker in Neutron that tells clusters apart, at most 63 characters; default: the UID of namespace kube-system. Of a standalone server its file cluster-id holds it")
	flags.StringVar(&o.drift, "drift", string(network.DriftCorrect), "what to do about a network that someone changes in Neutron: Correct or Report")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 10*time.Minute, "how often all Networks are compared with Neutron, give or take a tenth; at least 1s")
	flags.IntVar(&o.workers, "concurrent-network-syncs", 8, "`number` of Networks to work on at once")
	flags.StringVar(&o.deploymentCIDRPool, "deployment-cidr-pool", controller.DeploymentCIDRPool, "`CIDR` from which Deployments that ask for a Network get theirs, a /24 each (IPv6: a /64)")
	leaderElection := pflag.NewFlagSet("", pflag.ContinueOnError)
	componentbaseoptions.BindLeaderElectionFlags(&o.leaderElection, leaderElection)
	leaderElection.VisitAll(func(f *pflag.Flag) { flags.Var(f.Value, f.Name, f.Usage) })
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
	for _, problem := range utilvalidation.IsValidLabelValue(o.clusterID) {
		errs = append(errs, fmt.Errorf("-cluster-id %q: %s", o.clusterID, problem))
	}
	if drift := network.Drift(o.drift); drift != network.DriftCorrect && drift != network.DriftReport {
		errs = append(errs, fmt.Errorf("-drift %q must be %s or %s", o.drift, network.DriftCorrect, network.DriftReport))
	}
	if _, err := deployment.ParsePool(o.deploymentCIDRPool); err != nil {
		errs = append(errs, fmt.Errorf("-deployment-cidr-pool: %w", err))
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

// clients are those of Networks, and of the rest of the cluster.
func (o *options) clients() (versioned.Interface, kubernetes.Interface, error) {
	config, err := o.config()
	if err != nil {
		return nil, nil, err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client of Networks: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client of the cluster: %w", err)
	}
	return clients, kube, nil
}

func (o *options) newCloud() *neutron.Cloud {
	return neutron.NewCloud(neutron.CloudOptions{Name: o.cloud, WrapTransport: network.Transport})
}
