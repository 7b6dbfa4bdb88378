package controller

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/controller/network"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	versionedfake "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// replica is one server's share of a cluster.
type replica struct {
	stop  context.CancelFunc
	ended chan error
}

// startReplica runs the controllers with informers of their own.
func startReplica(t *testing.T, networks versioned.Interface, kube kubernetes.Interface) *replica {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	factory, kubeFactory := informers.NewSharedInformerFactory(networks, 0), kubeinformers.NewSharedInformerFactory(kube, 0)
	config := &Config{
		Clients:  networks,
		Networks: factory.Samplecrd().V1().Networks(),
		Cloud:    neutron.NewCloud(neutron.CloudOptions{Name: "none"}),
		Network:  network.Options{ClusterID: "test", Workers: 1, ResyncPeriod: time.Hour, Drift: network.DriftCorrect},
		Cluster: &Cluster{
			Clients:        kube,
			Deployments:    kubeFactory.Apps().V1().Deployments(),
			CIDRPool:       netip.MustParsePrefix("10.128.0.0/9"),
			LeaderElection: NewLeaderElection(),
		},
	}
	if err := config.Prepare(); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	kubeFactory.StartWithContext(ctx)
	r := &replica{stop: stop, ended: make(chan error, 1)}
	go func() {
		r.ended <- config.Run(ctx)
		factory.Shutdown()
		kubeFactory.Shutdown()
	}()
	return r
}

func deploy(t *testing.T, kube kubernetes.Interface, name string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: name, UID: "uid", Annotations: map[string]string{samplecrdv1.AnnotationNetwork: "true"},
	}}
	if _, err := kube.AppsV1().Deployments(d.Namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// hasNetwork looks once all has come to rest.
func hasNetwork(t *testing.T, networks versioned.Interface, name string) bool {
	t.Helper()
	pass(time.Second)
	synctest.Wait()
	_, err := networks.SamplecrdV1().Networks(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestControllersWorkWhileTheyHoldTheLease(t *testing.T) {
	t.Setenv("OS_CLIENT_CONFIG_FILE", t.TempDir()+"/none")
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		kube, networks := s.client(calm), versionedfake.NewSimpleClientset()
		r := startReplica(t, networks, kube)
		deploy(t, kube, "in-a-term")
		if !hasNetwork(t, networks, "in-a-term") {
			t.Error("a Deployment got no Network")
		}
		s.give(another)
		pass(NewLeaderElection().RetryPeriod.Duration)
		deploy(t, kube, "between-terms")
		if hasNetwork(t, networks, "between-terms") {
			t.Error("a Deployment got a Network while another holds the Lease")
		}
		s.give("")
		pass(2 * NewLeaderElection().RetryPeriod.Duration)
		if !hasNetwork(t, networks, "between-terms") {
			t.Error("in the second term a Deployment got no Network")
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		if got := s.holder(); got != "" {
			t.Errorf("after the end the Lease is held by %q", got)
		}
	})
}

func TestPrepareKeepsWhatCountsOfADeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		factory := kubeinformers.NewSharedInformerFactory(kube, 0)
		config := &Config{
			Networks: informers.NewSharedInformerFactory(versionedfake.NewSimpleClientset(), 0).Samplecrd().V1().Networks(),
			Cluster:  &Cluster{Deployments: factory.Apps().V1().Deployments()},
		}
		if err := config.Prepare(); err != nil {
			t.Fatal(err)
		}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web", UID: "uid"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
		if _, err := kube.AppsV1().Deployments(d.Namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		factory.StartWithContext(t.Context())
		factory.WaitForCacheSyncWithContext(t.Context())
		got, err := config.Cluster.Deployments.Lister().Deployments(d.Namespace).Get(d.Name)
		if err != nil {
			t.Fatal(err)
		}
		want := &appsv1.Deployment{TypeMeta: got.TypeMeta, ObjectMeta: got.ObjectMeta}
		if diff := cmp.Diff(want, got); diff != "" || got.UID != d.UID {
			t.Errorf("kept of Deployment %s (-want +got):\n%s", got.UID, diff)
		}
	})
}

func TestClusterID(t *testing.T) {
	kube := fake.NewClientset()
	if _, err := ClusterID(t.Context(), kube); err == nil || !strings.Contains(err.Error(), "namespace kube-system") {
		t.Errorf("error %v, want one that names the namespace", err)
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid"}}
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(), system, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := ClusterID(t.Context(), kube); err != nil || got != "uid" {
		t.Errorf("cluster ID %q and error %v, want uid", got, err)
	}
}
