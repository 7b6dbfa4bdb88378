package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	"github.com/samplecrd/network-apiserver/pkg/controller"
	"github.com/samplecrd/network-apiserver/pkg/controller/deployment"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
	"github.com/samplecrd/network-apiserver/pkg/registration"
)

// clusterBase is what a server behind a kube-apiserver stands on: that, and an
// etcd of its own.
type clusterBase struct {
	*Options
	clusterClients *clusterClients
	aggregator     clientset.Interface
	versions       []schema.GroupVersion // that are served
	presence       *controller.Presence
}

var _ base = &clusterBase{}

// newCluster finds the cluster and, where the server registers itself, its
// serving certificate there.
func newCluster(ctx context.Context, o *Options) (*clusterBase, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	config = rest.AddUserAgent(config, "network-apiserver")
	config.QPS = -1 // kube-apiserver bounds us; a Lease must not wait behind Events
	clients, err := newClusterClients(config)
	if err != nil {
		return nil, err
	}
	if err := o.checkPlugins(ctx, clients.kube); err != nil {
		return nil, err
	}
	aggregator, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for APIServices: %w", err)
	}
	versions, err := o.registeredVersions()
	if err != nil {
		return nil, err
	}
	b := &clusterBase{
		Options: o, clusterClients: clients, aggregator: aggregator, versions: versions,
		presence: controller.NewPresence(clients.kube.CoordinationV1(), o.LeaderElection),
	}
	clients.controllerRunning = b.presence.Running
	if o.RegisterAPIService {
		registrar, err := registration.New(ctx, clients.kube, aggregator, registration.Options{
			Versions:         versions,
			ServiceNamespace: o.ServiceNamespace,
			ServiceName:      o.ServiceName,
			ServicePort:      o.ServicePort,
			SecretName:       o.ServiceName + "-serving",
		})
		if err != nil {
			return nil, err
		}
		// The server runs what its certificate comes from.
		o.SecureServing.ServerCert.GeneratedCert = registrar
	}
	return b, nil
}

// registeredVersions are those of all groups that this server serves, the
// preferred one of each first.
func (o *Options) registeredVersions() ([]schema.GroupVersion, error) {
	versions, err := o.servedVersions(samplecrd.GroupName, "networks")
	if err != nil || o.PipelineTraces <= 0 {
		return versions, err
	}
	traces, err := o.servedVersions(pipelinev1alpha1.GroupName, "requesttraces")
	return append(versions, traces...), err
}

func (b *clusterBase) applyStorage(config *genericapiserver.Config) error {
	return applyStorage(config, *b.Etcd)
}

// applyServing asks the cluster who somebody is and what he may. Whom the front
// proxy names is believed to its certificate alone.
func (b *clusterBase) applyServing(config *genericapiserver.Config) error {
	if err := b.SecureServing.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return err
	}
	if err := b.Authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
		return fmt.Errorf("setting up authentication by the cluster: %w", err)
	}
	if err := b.Authorization.ApplyTo(&config.Authorization); err != nil {
		return fmt.Errorf("setting up authorization by the cluster: %w", err)
	}
	config.ReadyzChecks = append(config.ReadyzChecks, knowsFrontProxy(config.Authentication.RequestHeaderConfig))
	return nil
}

// knowsFrontProxy is not ready before the CA of the front proxy was read, which
// the library does while it serves: until then its certificate is not asked for,
// and what comes over such a connection is anonymous to the end.
func knowsFrontProxy(o *authenticatorfactory.RequestHeaderConfig) healthz.HealthChecker {
	return healthz.NamedCheck("front-proxy-ca", func(*http.Request) error {
		if o != nil && len(o.CAContentProvider.CurrentCABundleContent()) == 0 {
			return errors.New("the CA of the front proxy was not read yet")
		}
		return nil
	})
}

func (b *clusterBase) clients() (*clusterClients, error) { return b.clusterClients, nil }

func (b *clusterBase) clusterID(ctx context.Context) (string, error) {
	if b.ClusterID != "" {
		return b.ClusterID, nil
	}
	return controller.ClusterID(ctx, b.clusterClients.kube)
}

func (b *clusterBase) cluster() (*controller.Cluster, error) {
	pool, err := deployment.ParsePool(b.DeploymentCIDRPool)
	if err != nil {
		return nil, err
	}
	return &controller.Cluster{
		Clients:        b.clusterClients.kube,
		Deployments:    b.clusterClients.informers.Apps().V1().Deployments(),
		CIDRPool:       pool,
		LeaderElection: b.LeaderElection,
	}, nil
}

func (b *clusterBase) cloud() (*neutron.Cloud, error) { return operatorsCloud(b.Options), nil }

func (b *clusterBase) ready(ctx context.Context, _ io.Writer) error {
	go b.presence.Watch(ctx)
	if !b.RegisterAPIService {
		go registration.WatchCRD(ctx, b.aggregator, b.versions...)
	}
	klog.Info("network-apiserver is ready")
	return nil
}

func (b *clusterBase) context(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}

func (b *clusterBase) close() {}

// operatorsCloud is one to which nothing is said before it is needed: the
// server serves whether or not OpenStack answers.
func operatorsCloud(o *Options) *neutron.Cloud {
	return neutron.NewCloud(neutron.CloudOptions{Name: o.OSCloud, WrapTransport: network.Transport})
}
