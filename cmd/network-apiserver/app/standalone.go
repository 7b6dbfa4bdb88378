package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-apiserver/pkg/controller"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
	"github.com/samplecrd/network-apiserver/pkg/page"
	"github.com/samplecrd/network-apiserver/pkg/standalone"
)

// standaloneBase is what a server without a cluster stands on.
type standaloneBase struct {
	*Options
	dir      string
	marker   string // the cluster ID
	etcd     *standalone.Etcd
	listener net.Listener // of the API
	pki      *standalone.PKI
	neutron  net.Listener // of the simulator; nil where a cloud takes its place

	closers []func() error // last one first
}

var _ base = &standaloneBase{}

// startStandalone starts everything below the server, or nothing.
func startStandalone(ctx context.Context, o *Options) (_ *standaloneBase, err error) {
	b := &standaloneBase{Options: o, marker: o.ClusterID}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = filepath.Abs(o.DataDir); err != nil {
		return nil, fmt.Errorf("finding --data-dir %q: %w", o.DataDir, err)
	}
	lock, err := standalone.Lock(b.dir)
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, lock.Close)
	if b.marker == "" {
		if b.marker, err = standalone.ClusterID(b.dir); err != nil {
			return nil, err
		}
	}
	address := net.JoinHostPort(o.SecureServing.BindAddress.String(), strconv.Itoa(o.SecureServing.BindPort))
	if b.listener, err = b.listen(ctx, address); err != nil {
		return nil, fmt.Errorf("listening for the API: %w", err)
	}
	if b.pki, err = standalone.LoadOrCreatePKI(b.dir, o.SecureServing.BindAddress.String()); err != nil {
		return nil, err
	}
	if b.etcd, err = standalone.StartEtcd(ctx, b.dir); err != nil {
		return nil, err
	}
	b.closers = append(b.closers, func() error { b.etcd.Close(); return nil })
	if o.OSCloud != "" {
		return b, nil
	}
	if err := b.startSimulator(ctx, o.SimulatorAddress); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *standaloneBase) listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, func() error {
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return listener, nil
}

func (b *standaloneBase) startSimulator(ctx context.Context, address string) error {
	neutron, err := simulator.New(simulator.Options{Path: filepath.Join(b.dir, "neutron.db")})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, neutron.Close)
	if b.neutron, err = b.listen(ctx, address); err != nil {
		return fmt.Errorf("listening for the Neutron simulator: %w", err)
	}
	server := &http.Server{Handler: neutron, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(b.neutron); !errors.Is(err, http.ErrServerClosed) {
			klog.ErrorS(err, "Neutron simulator ended")
		}
	}()
	b.closers = append(b.closers, server.Close)
	return nil
}

func (b *standaloneBase) close() {
	for len(b.closers) > 0 {
		last := len(b.closers) - 1
		if err := b.closers[last](); err != nil {
			klog.ErrorS(err, "Closing")
		}
		b.closers = b.closers[:last]
	}
}

// context ends with parent, and when etcd ends by itself: a server that can't
// store must not go on.
func (b *standaloneBase) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case err := <-b.etcd.Err():
			cancel(fmt.Errorf("embedded etcd ended: %w", err))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (b *standaloneBase) applyStorage(config *genericapiserver.Config) error {
	etcd := *b.Etcd
	etcd.StorageConfig.Transport.ServerList = []string{b.etcd.Endpoint}
	// The collector runs in kube-controller-manager. Without one an object
	// deleted with --cascade=foreground would wait for it for ever.
	etcd.EnableGarbageCollection = false
	return applyStorage(config, etcd)
}

// clients point nowhere: the library wants some even where no plugin asks.
func (b *standaloneBase) clients() (*clusterClients, error) {
	return newClusterClients(&rest.Config{Host: "https://127.0.0.1:1"})
}

func (b *standaloneBase) clusterID(context.Context) (string, error) { return b.marker, nil }

func (b *standaloneBase) cluster() (*controller.Cluster, error) { return nil, nil }

// The networks of a standalone server belong to a project of their own in the
// simulator. A request without a token is an administrator's, and sees them.
const (
	simulatorProject = "standalone"
	simulatorRegion  = "RegionOne"
	simulatorToken   = "it:network-apiserver:" + simulatorProject + ":admin"
)

// cloud is the operator's, or the simulator.
func (b *standaloneBase) cloud() (*neutron.Cloud, error) {
	if b.OSCloud != "" {
		return operatorsCloud(b.Options), nil
	}
	client, err := neutron.New(neutron.Options{
		Endpoint:      b.neutronURL(),
		Token:         simulatorToken,
		ProjectID:     simulatorProject,
		Region:        simulatorRegion,
		WrapTransport: network.Transport,
	})
	if err != nil {
		return nil, err
	}
	return neutron.NewStaticCloud(client), nil
}

// applyServing lets in who has a certificate for system:masters of our own CA,
// and the loopback client; nobody else, on no path.
func (b *standaloneBase) applyServing(config *genericapiserver.Config) error {
	serving := *b.SecureServing
	serving.Listener = b.listener
	if serving.ServerCert.CertKey.CertFile == "" {
		cert, err := dynamiccertificates.NewStaticCertKeyContent("standalone", b.pki.ServingCert, b.pki.ServingKey)
		if err != nil {
			return fmt.Errorf("loading the serving certificate: %w", err)
		}
		serving.ServerCert.GeneratedCert = cert
	}
	if err := serving.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return err
	}
	ca, err := dynamiccertificates.NewStaticCAContent("standalone", b.pki.CA)
	if err != nil {
		return fmt.Errorf("loading the client CA: %w", err)
	}
	if err := config.Authentication.ApplyClientCert(ca, config.SecureServing); err != nil {
		return err
	}
	config.Authentication.Authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                          &apiserverconfig.AnonymousAuthConfig{Enabled: false},
		ClientCertificateCAContentProvider: ca,
	}.New()
	config.Authorization.Authorizer = authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)
	return err
}

func (b *standaloneBase) kubeconfig() string { return filepath.Join(b.dir, "kubeconfig") }

func (b *standaloneBase) apiURL() string { return "https://" + b.listener.Addr().String() }

func (b *standaloneBase) neutronURL() string { return "http://" + b.neutron.Addr().String() }

// ready tells a person what to do next, once it can be done.
func (b *standaloneBase) ready(ctx context.Context, out io.Writer) error {
	if err := standalone.WriteKubeconfig(b.kubeconfig(), b.apiURL(), b.pki); err != nil {
		return err
	}
	pipeline := "off (--pipeline-traces=0)"
	if b.PipelineTraces > 0 {
		page, err := b.servePage(ctx)
		if err != nil {
			return err
		}
		pipeline = page.URL()
	}
	neutron := fmt.Sprintf("cloud %q of clouds.yaml", b.OSCloud)
	if b.neutron != nil {
		neutron = b.neutronURL() + " (simulator)"
	}
	_, err := fmt.Fprintf(out, `network-apiserver is ready.

  export KUBECONFIG=%s

  API       %s
  Neutron   %s
  Pipeline  %s
`, b.kubeconfig(), b.apiURL(), neutron, pipeline)
	return err
}

// servePage serves the pipeline page until ctx ends, for whoever may read the
// kubeconfig: what is sent from there is sent by the same user as with kubectl.
func (b *standaloneBase) servePage(ctx context.Context) (*page.Page, error) {
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig for the pipeline page: %w", err)
	}
	p, err := page.New(page.Options{Config: config})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := p.Serve(ctx); err != nil {
			klog.ErrorS(err, "Pipeline page ended")
		}
	}()
	return p, nil
}
