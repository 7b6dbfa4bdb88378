package app

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	cliflag "k8s.io/component-base/cli/flag"
	componentbaseconfig "k8s.io/component-base/config"
	componentbaseoptions "k8s.io/component-base/config/options"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/apiserver"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/cidrpolicy"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/controllerwarning"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/defaultcredentials"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/privilegedfields"
	"github.com/samplecrd/network-apiserver/pkg/controller"
	"github.com/samplecrd/network-apiserver/pkg/controller/deployment"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
)

// Options are the values of the command line.
type Options struct {
	// Standalone runs etcd and a Neutron simulator inside the process.
	Standalone bool
	// DataDir holds all state of a standalone server.
	DataDir string
	// SimulatorAddress is where the Neutron simulator listens, HOST:PORT.
	SimulatorAddress string
	// OSCloud is the cloud of clouds.yaml to make networks in; empty: the simulator.
	OSCloud string
	// Controller makes Networks real in Neutron.
	Controller bool
	// Workers is the number of Networks the controller works on at once.
	Workers int
	// ResyncPeriod is how often all Networks are compared with Neutron.
	ResyncPeriod time.Duration
	// Drift is what to do about a network that was changed in Neutron.
	Drift string
	// DeploymentCIDRPool is where the CIDRs of Networks for Deployments come from.
	DeploymentCIDRPool string
	// RegisterAPIService makes the server keep its own serving certificate and
	// its APIServices.
	RegisterAPIService bool
	// ServiceNamespace, ServiceName and ServicePort are where kube-apiserver
	// reaches the server.
	ServiceNamespace, ServiceName string
	ServicePort                   int32
	// LeaderElection is that of the controller in a cluster.
	LeaderElection componentbaseconfig.LeaderElectionConfiguration
	// ClusterID is the part of the owner marker that tells clusters apart.
	ClusterID string
	// PipelineTraces is how many requests are kept to show what happened to them;
	// 0: none. Below 0: what is usual.
	PipelineTraces int

	ServerRun      *genericoptions.ServerRunOptions
	Etcd           *genericoptions.EtcdOptions
	SecureServing  *genericoptions.SecureServingOptions
	CoreAPI        *genericoptions.CoreAPIOptions
	Authentication *genericoptions.DelegatingAuthenticationOptions
	Authorization  *genericoptions.DelegatingAuthorizationOptions
	Audit          *genericoptions.AuditOptions
	Features       *genericoptions.FeatureOptions
	Admission      *genericoptions.AdmissionOptions
	APIEnablement  *genericoptions.APIEnablementOptions
	Traces         *genericoptions.TracingOptions
	Metrics        *metrics.Options
	Logs           *logs.Options
}

const (
	// standaloneTraces is how many requests a standalone server keeps.
	standaloneTraces = 256
	// maxTraces is the most: a list of them is one answer.
	maxTraces = 4096
)

// pluginOrder is that of kube-apiserver: our own stand where built-in ones do,
// and what is counted last was allowed by all others.
var pluginOrder = []string{
	lifecycle.PluginName, defaultcredentials.PluginName, mutatingadmissionpolicy.PluginName, mutatingwebhook.PluginName,
	cidrpolicy.PluginName, privilegedfields.PluginName,
	validatingadmissionpolicy.PluginName, validatingwebhook.PluginName, resourcequota.PluginName,
	controllerwarning.PluginName,
}

// clusterPlugins are those that need a cluster to ask.
var clusterPlugins = slices.DeleteFunc(slices.Clone(pluginOrder), func(name string) bool { return name == cidrpolicy.PluginName })

// NewOptions returns the defaults.
func NewOptions() *Options {
	o := &Options{
		SimulatorAddress:   "127.0.0.1:0",
		Controller:         true,
		Workers:            8,
		ResyncPeriod:       10 * time.Minute,
		Drift:              string(network.DriftCorrect),
		DeploymentCIDRPool: controller.DeploymentCIDRPool,
		ServiceNamespace:   controller.OwnNamespace(),
		ServiceName:        "network-apiserver",
		ServicePort:        443,
		LeaderElection:     controller.NewLeaderElection(),
		PipelineTraces:     -1,

		ServerRun:      genericoptions.NewServerRunOptions(),
		Etcd:           genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(etcdPrefix, nil)),
		SecureServing:  genericoptions.NewSecureServingOptions(),
		CoreAPI:        genericoptions.NewCoreAPIOptions(),
		Authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
		Audit:          genericoptions.NewAuditOptions(),
		Features:       genericoptions.NewFeatureOptions(),
		Admission:      genericoptions.NewAdmissionOptions(),
		APIEnablement:  genericoptions.NewAPIEnablementOptions(),
		Traces:         genericoptions.NewTracingOptions(),
		Metrics:        metrics.NewOptions(),
		Logs:           logs.NewOptions(),
	}
	o.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	o.SecureServing.BindPort = 6443
	// A watch never ends by itself, and the controller's own is always open:
	// without a bound each stop would take a minute.
	o.ServerRun.ShutdownWatchTerminationGracePeriod = time.Second
	// Priority and fairness keeps its configuration in a cluster.
	o.Features.EnablePriorityAndFairness = false
	cidrpolicy.Register(o.Admission.Plugins)
	defaultcredentials.Register(o.Admission.Plugins)
	controllerwarning.Register(o.Admission.Plugins)
	privilegedfields.Register(o.Admission.Plugins)
	resourcequota.Register(o.Admission.Plugins)
	o.Admission.RecommendedPluginOrder = pluginOrder
	return o
}

// Flags returns the flags by group.
func (o *Options) Flags() (fss cliflag.NamedFlagSets) {
	fs := fss.FlagSet("network-apiserver")
	fs.BoolVar(&o.Standalone, "standalone", o.Standalone, "Run without a cluster: etcd and a Neutron simulator inside this process, all state in --data-dir.")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "Folder that holds all state of a standalone server, and the kubeconfig to reach it. It is made if it is not there.")
	fs.StringVar(&o.SimulatorAddress, "simulator-address", o.SimulatorAddress, "HOST:PORT at which the Neutron simulator of a standalone server listens; port 0 picks one.")
	fs.StringVar(&o.OSCloud, "os-cloud", o.OSCloud, "Cloud of clouds.yaml to make networks in, instead of the simulator. The file is looked for as OpenStack's own client does; OS_REGION_NAME, OS_INTERFACE and OS_CACERT count as they do there, OS_CLOUD does not.")
	fs.BoolVar(&o.Controller, "controller", o.Controller, "Make Networks real in Neutron.")
	fs.IntVar(&o.Workers, "concurrent-network-syncs", o.Workers, "Number of Networks the controller works on at once.")
	fs.DurationVar(&o.ResyncPeriod, "resync-period", o.ResyncPeriod, "How often all Networks are compared with Neutron, give or take a tenth; also done at start. At least 1s.")
	fs.StringVar(&o.Drift, "drift", o.Drift, "What to do about a network that someone changes in Neutron: Correct makes it as declared again, Report leaves it and says so in the conditions until the spec changes.")
	fs.StringVar(&o.ClusterID, "cluster-id", o.ClusterID, "Part of the owner marker in Neutron that tells clusters apart, at most 63 characters. Default: the UID of namespace kube-system; with --standalone a UUID kept in --data-dir.")
	fs.StringVar(&o.DeploymentCIDRPool, "deployment-cidr-pool", o.DeploymentCIDRPool, "CIDR from which Deployments annotated with samplecrd.k8s.io/network: \"true\" get theirs, a /24 each (IPv6: a /64). In a cluster only.")
	fs.IntVar(&o.PipelineTraces, "pipeline-traces", o.PipelineTraces, "Number of requests for Networks of which is kept, in memory, what each stage of the server and the controller did; served as RequestTraces of pipeline.samplecrd.k8s.io. 0 records none. Default: 256 with --standalone, else 0.")
	registration := fss.FlagSet("registration")
	registration.BoolVar(&o.RegisterAPIService, "register-apiservice", o.RegisterAPIService, "Register with kube-apiserver: keep a serving certificate in the Secret SERVICE-serving, which all replicas share, and the APIServices that trust it.")
	registration.StringVar(&o.ServiceNamespace, "service-namespace", o.ServiceNamespace, "Namespace of the Service by which kube-apiserver reaches this server, and of the Secret.")
	registration.StringVar(&o.ServiceName, "service-name", o.ServiceName, "Name of that Service.")
	registration.Int32Var(&o.ServicePort, "service-port", o.ServicePort, "Port of that Service.")
	componentbaseoptions.BindLeaderElectionFlags(&o.LeaderElection, fss.FlagSet("leader election"))
	o.ServerRun.AddUniversalFlags(fss.FlagSet("generic"))
	secureServing := fss.FlagSet("secure serving")
	o.SecureServing.AddFlags(secureServing)
	secureServing.Lookup("secure-port").Usage = "The port on which to serve HTTPS; 0 picks one, which --data-dir/kubeconfig then has."
	o.CoreAPI.AddFlags(fss.FlagSet("cluster"))
	o.Authentication.AddFlags(fss.FlagSet("cluster"))
	o.Authorization.AddFlags(fss.FlagSet("cluster"))
	o.Etcd.AddFlags(fss.FlagSet("etcd"))
	o.Audit.AddFlags(fss.FlagSet("auditing"))
	o.Features.AddFlags(fss.FlagSet("features"))
	o.Admission.AddFlags(fss.FlagSet("admission"))
	o.APIEnablement.AddFlags(fss.FlagSet("API enablement"))
	o.Traces.AddFlags(fss.FlagSet("traces"))
	o.Metrics.AddFlags(fss.FlagSet("metrics"))
	logsapi.AddFlags(o.Logs, fss.FlagSet("logs"))
	return fss
}

// Complete fills in what follows from the values.
func (o *Options) Complete() {
	if o.Standalone {
		o.Admission.DefaultOffPlugins.Insert(clusterPlugins...)
	}
	if o.PipelineTraces < 0 {
		o.PipelineTraces = 0
		if o.Standalone {
			o.PipelineTraces = standaloneTraces
		}
	}
	for _, kubeconfig := range []*string{&o.Authentication.RemoteKubeConfigFile, &o.Authorization.RemoteKubeConfigFile} {
		*kubeconfig = cmp.Or(*kubeconfig, o.CoreAPI.CoreAPIKubeconfigPath)
	}
}

// Validate returns all that is wrong with the values, each with its flag.
func (o *Options) Validate() error {
	errs := o.validateMode()
	if _, _, err := net.SplitHostPort(o.SimulatorAddress); err != nil {
		errs = append(errs, fmt.Errorf("--simulator-address %q must be HOST:PORT: %w", o.SimulatorAddress, err))
	}
	if o.Workers < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-network-syncs %d must be at least 1", o.Workers))
	}
	if o.PipelineTraces > maxTraces {
		errs = append(errs, fmt.Errorf("--pipeline-traces %d must be at most %d", o.PipelineTraces, maxTraces))
	}
	if o.ResyncPeriod < time.Second {
		errs = append(errs, fmt.Errorf("--resync-period %v must be at least 1s", o.ResyncPeriod))
	}
	if drift := network.Drift(o.Drift); drift != network.DriftCorrect && drift != network.DriftReport {
		errs = append(errs, fmt.Errorf("--drift %q must be %s or %s", o.Drift, network.DriftCorrect, network.DriftReport))
	}
	if _, err := deployment.ParsePool(o.DeploymentCIDRPool); err != nil {
		errs = append(errs, fmt.Errorf("--deployment-cidr-pool: %w", err))
	}
	// As a label value it leaves room in Neutron's description (255 characters)
	// and has none of the characters that end a part of the owner marker.
	for _, problem := range utilvalidation.IsValidLabelValue(o.ClusterID) {
		errs = append(errs, fmt.Errorf("--cluster-id %q: %s", o.ClusterID, problem))
	}
	versions, err := o.servedVersions(samplecrd.GroupName, "networks")
	if err != nil {
		errs = append(errs, err)
	} else if o.Controller && !slices.Contains(versions, samplecrdv1.SchemeGroupVersion) {
		errs = append(errs, fmt.Errorf("--runtime-config switches off %s, which the controller reads: add --controller=false", samplecrdv1.SchemeGroupVersion))
	}
	errs = append(errs, o.ServerRun.Validate()...)
	errs = append(errs, o.SecureServing.Validate()...)
	errs = append(errs, o.Audit.Validate()...)
	errs = append(errs, o.Features.Validate()...)
	errs = append(errs, o.Admission.Validate()...)
	errs = append(errs, o.APIEnablement.Validate(apiserver.Scheme)...)
	errs = append(errs, o.Traces.Validate()...)
	errs = append(errs, o.Metrics.Validate()...)
	return errors.Join(errs...)
}

// servedVersions are those of --runtime-config in which a resource is served, the
// preferred one first.
func (o *Options) servedVersions(group, resource string) ([]schema.GroupVersion, error) {
	resources, err := resourceconfig.MergeAPIResourceConfigs(apiserver.DefaultResources(), o.APIEnablement.RuntimeConfig, apiserver.Scheme)
	if err != nil {
		return nil, fmt.Errorf("--runtime-config: %w", err)
	}
	versions := apiserver.Scheme.PrioritizedVersionsForGroup(group)
	return slices.DeleteFunc(versions, func(version schema.GroupVersion) bool {
		return !resources.ResourceEnabled(version.WithResource(resource))
	}), nil
}

// validateMode tells apart what a server needs in a cluster and without one.
func (o *Options) validateMode() (errs []error) {
	if !o.Standalone {
		if len(o.Etcd.StorageConfig.Transport.ServerList) == 0 {
			return []error{errors.New("--standalone must be given, or --etcd-servers to run behind a kube-apiserver")}
		}
		if o.DataDir != "" {
			errs = append(errs, errors.New("--data-dir is of --standalone: in a cluster all state is in --etcd-servers"))
		}
		if o.SecureServing.BindPort == 0 {
			errs = append(errs, errors.New("--secure-port 0 is of --standalone: kube-apiserver must know the port"))
		}
		if files := o.SecureServing.ServerCert.CertKey.CertFile != ""; files == o.RegisterAPIService {
			errs = append(errs, errors.New("either --tls-cert-file and --tls-private-key-file must be given, or --register-apiservice"))
		}
		if o.Controller && o.OSCloud == "" {
			errs = append(errs, errors.New("--os-cloud must be given, or --controller=false"))
		}
		errs = append(errs, o.Etcd.Validate()...)
		errs = append(errs, o.Authentication.Validate()...)
		return append(errs, o.Authorization.Validate()...)
	}
	if o.DataDir == "" {
		errs = append(errs, errors.New("--data-dir must be given with --standalone"))
	}
	if len(o.Etcd.StorageConfig.Transport.ServerList) > 0 {
		errs = append(errs, errors.New("--etcd-servers is of a server in a cluster: not with --standalone"))
	}
	if o.RegisterAPIService {
		errs = append(errs, errors.New("--register-apiservice needs a kube-apiserver: not with --standalone"))
	}
	if o.CoreAPI.CoreAPIKubeconfigPath != "" {
		errs = append(errs, errors.New("--kubeconfig is of a server in a cluster: not with --standalone"))
	}
	if o.Features.EnablePriorityAndFairness {
		errs = append(errs, errors.New("--enable-priority-and-fairness needs a cluster that keeps its configuration: not with --standalone"))
	}
	for _, plugin := range o.Admission.EnablePlugins {
		if slices.Contains(clusterPlugins, plugin) {
			errs = append(errs, fmt.Errorf("--enable-admission-plugins: %s needs a cluster: not with --standalone", plugin))
		}
	}
	return errs
}
