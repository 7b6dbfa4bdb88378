// Package app is the command network-apiserver: the only place that knows both
// the server and the controller.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	genericadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // queues, caches, requests of our own clients
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/apiserver"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
	"github.com/samplecrd/network-apiserver/pkg/controller"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
	"github.com/samplecrd/network-apiserver/pkg/generated/openapi"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// etcdPrefix is where all keys of this server begin; group and resource follow.
const etcdPrefix = "/network-apiserver"

// NewCommand returns the command. The end of its context stops the server.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:          "network-apiserver",
		Long:         "Serve samplecrd.k8s.io/Network and make each Network real in OpenStack Neutron.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(o.Logs, nil); err != nil {
				return err
			}
			if err := o.ServerRun.ComponentGlobalsRegistry.Set(); err != nil {
				return err
			}
			if err := o.ServerRun.Complete(); err != nil {
				return err
			}
			o.Complete()
			if err := o.Validate(); err != nil {
				return err
			}
			return run(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	flags := o.Flags()
	verflag.AddFlags(flags.FlagSet("global"))
	globalflag.AddGlobalFlags(flags.FlagSet("global"), cmd.Name())
	for _, fs := range flags.FlagSets {
		cmd.Flags().AddFlagSet(fs)
	}
	cols, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, flags, cols)
	return cmd
}

// collectAt is how far the heap may grow between two collections, in percent of
// what is alive. That is little, some 50 MB, and under load a fifth of all CPU
// went into collecting at the usual 100 (BenchmarkCreate).
const collectAt = 300

// base is what a server stands on: a folder of its own, or a cluster.
type base interface {
	// applyStorage says where Networks are kept.
	applyStorage(*genericapiserver.Config) error
	// applyServing says where to listen, and who gets in.
	applyServing(*genericapiserver.Config) error
	// clients are those of the cluster.
	clients() (*clusterClients, error)
	// clusterID is the part of the owner marker that tells clusters apart.
	clusterID(context.Context) (string, error)
	// cluster is what the controllers need of one; nil where there is none.
	cluster() (*controller.Cluster, error)
	// cloud is where Networks without credentials of their own are made.
	cloud() (*neutron.Cloud, error)
	// ready is called once requests are served.
	ready(context.Context, io.Writer) error
	// context ends with its parent, and when the base gives way.
	context(context.Context) (context.Context, context.CancelFunc)
	close()
}

// clusterClients are what the library's admission plugins ask.
type clusterClients struct {
	kube      kubernetes.Interface
	dynamic   dynamic.Interface
	informers kubeinformers.SharedInformerFactory
	// controllerRunning tells whether a controller runs in any replica.
	controllerRunning func() bool
}

func newClusterClients(config *rest.Config) (*clusterClients, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the cluster: %w", err)
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the dynamic client of the cluster: %w", err)
	}
	return &clusterClients{kube: kube, dynamic: dynamic, informers: kubeinformers.NewSharedInformerFactory(kube, 10*time.Minute)}, nil
}

// run serves until ctx ends.
func run(ctx context.Context, o *Options, out io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if err := admission.CheckConfigurationFile(o.Admission.ConfigFile, o.Admission.Plugins.Registered()); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(o.Metrics, metrics.NewOptions()) {
		o.Metrics.Apply() // with the defaults it logs an error for the allow list that nobody gave
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	base, err := newBase(ctx, o)
	if err != nil {
		return err
	}
	defer base.close()

	recorder := newRecorder(o)
	config, informers, err := newConfig(o, base, recorder)
	if err != nil {
		return err
	}
	server, err := config.Complete().New()
	if err != nil {
		return err
	}
	if err := addInformers(server.GenericAPIServer, informers); err != nil {
		return err
	}
	if o.Controller {
		if err := addControllers(ctx, server.GenericAPIServer, o, base, informers, recorder, fail); err != nil {
			return err
		}
	}
	err = server.GenericAPIServer.AddPostStartHook("tell-ready", func(hook genericapiserver.PostStartHookContext) error {
		return base.ready(hook, out)
	})
	if err != nil {
		return err
	}
	ctx, cancel := base.context(ctx)
	defer cancel()
	if err := server.GenericAPIServer.PrepareRun().RunWithContext(ctx); err != nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func newBase(ctx context.Context, o *Options) (base, error) {
	if o.Standalone {
		return startStandalone(ctx, o)
	}
	return newCluster(ctx, o)
}

// newConfig applies the options. The informers read over loopback, for
// admission and the controller alike; nothing starts them yet.
func newConfig(o *Options, base base, recorder *pipeline.Recorder) (*apiserver.Config, informers.SharedInformerFactory, error) {
	config := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = "network-apiserver"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = "network-apiserver"

	cluster, err := base.clients()
	if err != nil {
		return nil, nil, err
	}
	var factory informers.SharedInformerFactory
	steps := []func() error{
		func() error { return o.ServerRun.ApplyTo(&config.Config) },
		func() error {
			return o.APIEnablement.ApplyTo(&config.Config, apiserver.DefaultResources(), apiserver.Scheme)
		},
		func() error { return o.Traces.ApplyTo(nil, &config.Config) },
		func() error { return base.applyStorage(&config.Config) },
		func() error { return base.applyServing(&config.Config) },
		func() error { return o.Audit.ApplyTo(&config.Config) },
		func() error { return o.Features.ApplyTo(&config.Config, cluster.kube, cluster.informers) },
		func() (err error) {
			factory, err = newInformers(config.LoopbackClientConfig)
			return err
		},
		func() error { return applyAdmission(config, o.Admission, cluster, factory) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	config.SharedInformerFactory = cluster.informers
	drainConnections(&config.Config)
	return &apiserver.Config{GenericConfig: config, Recorder: recorder}, factory, nil
}

// newRecorder returns nil where nothing is recorded.
func newRecorder(o *Options) *pipeline.Recorder {
	if o.PipelineTraces == 0 {
		return nil
	}
	recorder := pipeline.NewRecorder(pipeline.Options{
		Traces:        o.PipelineTraces,
		Group:         samplecrd.GroupName,
		StoredVersion: samplecrdv1.SchemeGroupVersion,
		Scheme:        apiserver.Scheme,
		Codecs:        apiserver.Codecs,
	})
	o.Admission.Decorators = append(genericadmission.Decorators{recorder.Decorator()}, o.Admission.Decorators...)
	return recorder
}

// applyStorage keeps Networks as v1 protobuf. The codec is made here because
// the media type in EtcdOptions has no effect on a simple storage factory.
func applyStorage(config *genericapiserver.Config, o genericoptions.EtcdOptions) error {
	codec, versioner, err := serverstorage.NewStorageCodec(serverstorage.StorageCodecConfig{
		StorageMediaType:  runtime.ContentTypeProtobuf,
		StorageSerializer: apiserver.Codecs,
		StorageVersion:    samplecrdv1.SchemeGroupVersion,
		MemoryVersion:     samplecrd.SchemeGroupVersion,
	})
	if err != nil {
		return fmt.Errorf("making the storage codec: %w", err)
	}
	o.StorageConfig.Codec, o.StorageConfig.EncodeVersioner = codec, versioner
	return o.ApplyTo(config)
}

// newInformers speaks protobuf over loopback.
func newInformers(loopback *rest.Config) (informers.SharedInformerFactory, error) {
	clients, err := newClients(loopback)
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactory(clients, 0), nil
}

func newClients(loopback *rest.Config) (versioned.Interface, error) {
	config := rest.CopyConfig(loopback)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Wrap(pipeline.APITransport)
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the loopback client: %w", err)
	}
	return clients, nil
}

// applyAdmission builds the plugin chain.
func applyAdmission(config *genericapiserver.RecommendedConfig, o *genericoptions.AdmissionOptions, cluster *clusterClients, factory informers.SharedInformerFactory) error {
	// No evaluator of its own is needed: objects are counted by count/networks.
	initializers := []genericadmission.PluginInitializer{quotas{generic.NewConfiguration(nil, nil)}}
	if !config.MergedResourceConfig.ResourceEnabled(samplecrdv1.SchemeGroupVersion.WithResource("networks")) {
		factory = nil // it could never be filled
	}
	initializers = append(initializers, admission.NewInitializer(factory, cluster.controllerRunning))
	return o.ApplyTo(&config.Config, cluster.informers, cluster.kube, cluster.dynamic,
		utilfeature.DefaultFeatureGate, config.EffectiveVersion, initializers...)
}

// quotas hands its configuration to the plugin ResourceQuota.
type quotas struct{ quota.Configuration }

func (q quotas) Initialize(plugin genericadmission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(q.Configuration)
	}
}

// addInformers starts those that were asked for, once the server listens; it is
// ready when they are.
func addInformers(server *genericapiserver.GenericAPIServer, factory informers.SharedInformerFactory) error {
	err := server.AddReadyzChecks(healthz.NamedCheck("network-informers", func(r *http.Request) error {
		ctx, cancel := context.WithCancel(r.Context())
		cancel() // looks once and does not wait
		return factory.WaitForCacheSyncWithContext(ctx).AsError()
	}))
	if err != nil {
		return err
	}
	return server.AddPostStartHook("start-network-informers", func(hook genericapiserver.PostStartHookContext) error {
		factory.StartWithContext(hook)
		return nil
	})
}
