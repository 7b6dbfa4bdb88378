//go:build kube

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// testRotation deletes the Secret with the serving certificate of two replicas
// while requests come. They change to another one, and at each moment what is
// served is good by the caBundle of that moment.
func (c *cluster) testRotation(t *testing.T) {
	const handshakes = 6 // in a row, of both replicas in turn
	o := newCloud(t)
	networks := c.networks.SamplecrdV1().Networks(c.newNamespace(t, "rotation", nil))
	for range 2 {
		c.startReplica(t, o, "--etcd-prefix=/rotation")
	}
	c.waitServed(t)
	clients := c.newAggregator(t)
	serials := func() sets.Set[string] {
		served := sets.New[string]()
		for range handshakes {
			served.Insert(c.servedSerial(t, clients))
		}
		return served
	}
	old := serials()
	if old.Len() != 1 {
		t.Fatalf("the replicas serve certificates %v, want one", old)
	}

	l := c.startLoad(t, "rotation", 20)
	c.kubectl(t, "delete", "secret", "network-apiserver-serving", "-n", serverNamespace)
	deleted := time.Now()
	served, checked := old, handshakes
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, convergeDeadline, true, func(context.Context) (bool, error) {
		served = serials()
		checked += handshakes
		return served.Len() == 1 && !served.Equal(old), nil
	})
	if err != nil {
		t.Fatalf("the replicas serve certificates %v, want one that is not %v", served, old)
	}
	t.Logf("another certificate was served after %v; %d handshakes were good", time.Since(deleted), checked)
	l.check(t)
	check(t, networks, l.journals)
	c.checkNetworks(t, o, networks)
}

func (c *cluster) newAggregator(t *testing.T) aggregator.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	clients, err := aggregator.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// servedSerial makes a connection as kube-apiserver does, and returns the serial
// number of the certificate.
func (c *cluster) servedSerial(t *testing.T, clients aggregator.Interface) string {
	t.Helper()
	registered, err := clients.ApiregistrationV1().APIServices().Get(t.Context(), "v1."+samplecrdv1.GroupName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(registered.Spec.CABundle) {
		t.Fatalf("the caBundle %q holds no certificate", registered.Spec.CABundle)
	}
	service := registered.Spec.Service
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: service.Name + "." + service.Namespace + ".svc"}}
	connection, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", *service.Port))
	if err != nil {
		t.Fatalf("what is served is not good by the caBundle: %v", err)
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Text(16)
}
