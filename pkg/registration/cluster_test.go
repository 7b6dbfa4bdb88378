package registration

import (
	"context"
	"crypto/x509"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorfake "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	serverName = "network-apiserver.samplecrd-system.svc"

	// deadline is the patience of a test, not a bound on what is tested.
	deadline = 60 * time.Second
)

var (
	v1       = schema.GroupVersion{Group: "samplecrd.k8s.io", Version: "v1"}
	v2alpha1 = schema.GroupVersion{Group: "samplecrd.k8s.io", Version: "v2alpha1"}

	options = Options{
		Versions:         []schema.GroupVersion{v1, v2alpha1},
		ServiceNamespace: "samplecrd-system",
		ServiceName:      "network-apiserver",
		ServicePort:      443,
		SecretName:       "network-apiserver-serving",
	}
)

// cluster is what kube-apiserver is to a Registrar, with a clock of its own.
type cluster struct {
	kube       *fake.Clientset
	aggregator *aggregatorfake.Clientset
	clock      *clocktesting.FakeClock
}

func newCluster() *cluster {
	c := &cluster{
		kube:       fake.NewClientset(),
		aggregator: aggregatorfake.NewClientset(),
		clock:      clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	// The trackers of fakes know no resource versions.
	written := 0
	c.kube.PrependReactor("*", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		write, ok := action.(clienttesting.UpdateAction) // that of a create is the same
		if !ok {
			return false, nil, nil
		}
		secret := write.GetObject().(*corev1.Secret)
		if action.GetVerb() == "update" {
			stored, err := c.kube.Tracker().Get(action.GetResource(), action.GetNamespace(), secret.Name)
			if err != nil {
				return true, nil, err
			}
			if stored.(*corev1.Secret).ResourceVersion != secret.ResourceVersion {
				return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), secret.Name, nil)
			}
		}
		written++
		secret.ResourceVersion = strconv.Itoa(written)
		return false, nil, nil
	})
	return c
}

func (c *cluster) registrar(t *testing.T, tweaks ...func(*Options)) *Registrar {
	t.Helper()
	r, err := c.tryRegistrar(t, tweaks...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (c *cluster) tryRegistrar(t *testing.T, tweaks ...func(*Options)) (*Registrar, error) {
	t.Helper()
	o := options
	for _, tweak := range tweaks {
		tweak(&o)
	}
	return newRegistrar(t.Context(), c.kube, c.aggregator, o, c.clock)
}

func (c *cluster) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := c.kube.CoreV1().Secrets(options.ServiceNamespace).Get(t.Context(), options.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// put stores the secret whatever was there.
func (c *cluster) put(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	c.deleteSecret(t)
	if err := c.kube.Tracker().Add(secret); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deleteSecret(t *testing.T) {
	t.Helper()
	err := c.kube.CoreV1().Secrets(options.ServiceNamespace).Delete(t.Context(), options.SecretName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// apiService is nil where there is none.
func (c *cluster) apiService(ctx context.Context, version schema.GroupVersion) (*apiregistrationv1.APIService, error) {
	got, err := c.aggregator.ApiregistrationV1().APIServices().Get(ctx, nameOf(version), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return got, err
}

func (c *cluster) mustAPIService(t *testing.T, version schema.GroupVersion) *apiregistrationv1.APIService {
	t.Helper()
	got, err := c.apiService(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (c *cluster) putAPIService(t *testing.T, apiService *apiregistrationv1.APIService) {
	t.Helper()
	if _, err := c.aggregator.ApiregistrationV1().APIServices().Create(t.Context(), apiService, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// localAPIService is what kube-apiserver makes for a CRD.
func localAPIService(version schema.GroupVersion) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(version), Labels: map[string]string{automanaged: "true"}},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: version.Group, Version: version.Version, GroupPriorityMinimum: 1000, VersionPriority: 100,
		},
	}
}

func forbid(fake *clienttesting.Fake, verb, resource string) {
	fake.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := fmt.Errorf("User %q cannot %s resource %q", "system:serviceaccount:x:y", verb, resource)
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", err)
	})
}

// verify is what kube-apiserver does with a certificate.
func verify(t *testing.T, c *cluster, r *Registrar, caBundle []byte) error {
	t.Helper()
	certPEM, _ := r.CurrentCertKeyContent()
	return verifyPEM(t, certPEM, caBundle, serverName, c.clock.Now())
}

func verifyPEM(t *testing.T, certPEM, caBundle []byte, name string, now time.Time) error {
	t.Helper()
	roots, err := cert.NewPoolFromBytes(caBundle)
	if err != nil {
		t.Fatal(err)
	}
	leafs, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	_, err = leafs[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now})
	return err
}

func served(r *Registrar) string {
	certPEM, _ := r.CurrentCertKeyContent()
	return string(certPEM)
}

func cas(t *testing.T, caBundle []byte) []*x509.Certificate {
	t.Helper()
	parsed, err := cert.ParseCertsPEM(caBundle)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func runOnce(t *testing.T, registrars ...*Registrar) {
	t.Helper()
	for _, r := range registrars {
		if err := r.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
