package registration

import (
	"bytes"
	"crypto/tls"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestSecretIsMade(t *testing.T) {
	c := newCluster()
	r := c.registrar(t)
	secret := c.secret(t)
	if secret.Type != corev1.SecretTypeTLS {
		t.Errorf("type is %s", secret.Type)
	}
	want := map[string][]byte{"ca.crt": secret.Data["ca.crt"], "tls.crt": nil, "tls.key": nil}
	want["tls.crt"], want["tls.key"] = r.CurrentCertKeyContent()
	if diff := cmp.Diff(want, secret.Data); diff != "" {
		t.Errorf("data, besides what is served (-want +got):\n%s", diff)
	}
	if _, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]); err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		serverName, "network-apiserver.samplecrd-system.svc.cluster.local", "network-apiserver", "localhost", "127.0.0.1", "::1",
	} {
		if err := verifyPEM(t, secret.Data["tls.crt"], secret.Data["ca.crt"], name, c.clock.Now()); err != nil {
			t.Errorf("for %s: %v", name, err)
		}
	}
	if bytes.Contains(bytes.Join([][]byte{secret.Data["ca.crt"], secret.Data["tls.crt"]}, nil), []byte("PRIVATE")) {
		t.Error("a key is where only certificates belong")
	}
}

func TestReplicasShareWhatWasMadeFirst(t *testing.T) {
	c := newCluster()
	first := c.registrar(t)
	made := c.secret(t)
	c.clock.Step(59 * 24 * time.Hour)
	if second := c.registrar(t); served(second) != served(first) {
		t.Error("the second replica serves another certificate")
	}
	if diff := cmp.Diff(made, c.secret(t)); diff != "" {
		t.Errorf("the second replica changed the Secret (-want +got):\n%s", diff)
	}
}

// TestReplicasStartAtOneMoment has another replica write first, between our
// look and our write.
func TestReplicasStartAtOneMoment(t *testing.T) {
	other := newCluster()
	other.registrar(t)
	theirs := other.secret(t)

	damaged := theirs.DeepCopy()
	damaged.ResourceVersion = "0"
	damaged.Data["tls.crt"] = nil

	for name, tc := range map[string]struct {
		before *corev1.Secret
		verb   string
	}{
		"none is there":            {nil, "create"},
		"one that must be renewed": {damaged, "update"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			if tc.before != nil {
				c.put(t, tc.before.DeepCopy())
			}
			faster := sync.OnceFunc(func() {
				var err error
				if secrets := corev1.SchemeGroupVersion.WithResource("secrets"); tc.before == nil {
					err = c.kube.Tracker().Create(secrets, theirs.DeepCopy(), theirs.Namespace)
				} else {
					err = c.kube.Tracker().Update(secrets, theirs.DeepCopy(), theirs.Namespace)
				}
				if err != nil {
					t.Error(err)
				}
			})
			c.kube.PrependReactor(tc.verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				faster()
				return false, nil, nil
			})
			r := c.registrar(t)
			if served(r) != string(theirs.Data["tls.crt"]) {
				t.Error("what the faster replica made is not served")
			}
			if diff := cmp.Diff(theirs.Data, c.secret(t).Data); diff != "" {
				t.Errorf("what the faster replica made was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyReplicasStartAtOneMoment(t *testing.T) {
	c := newCluster()
	replicas := make([]*Registrar, 8)
	var starting sync.WaitGroup
	for i := range replicas {
		starting.Go(func() {
			var err error
			if replicas[i], err = c.tryRegistrar(t); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	want := string(c.secret(t).Data["tls.crt"])
	for i, r := range replicas {
		if r != nil && served(r) != want {
			t.Errorf("replica %d serves another certificate than the Secret has", i)
		}
	}
}

func TestSecretOfOthersIsLeft(t *testing.T) {
	c := newCluster()
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: options.ServiceNamespace, Name: options.SecretName, Labels: map[string]string{managedBy: "Helm"}},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{"tls.crt": []byte("theirs"), "tls.key": []byte("theirs")},
	}
	c.put(t, foreign.DeepCopy())
	_, err := c.tryRegistrar(t)
	if err == nil || !strings.Contains(err.Error(), "Secret samplecrd-system/network-apiserver-serving: it is somebody else's") {
		t.Errorf("at start: got error %v", err)
	}

	c.deleteSecret(t)
	r := c.registrar(t)
	before := served(r)
	c.put(t, foreign.DeepCopy())
	c.clock.Step(80 * 24 * time.Hour)
	if err := r.RunOnce(t.Context()); err == nil {
		t.Error("while it runs: no error")
	}
	if served(r) != before {
		t.Error("the certificate was changed")
	}
	if diff := cmp.Diff(foreign, c.secret(t)); diff != "" {
		t.Errorf("the Secret was changed (-want +got):\n%s", diff)
	}
}

func TestDamagedSecretIsMadeAnew(t *testing.T) {
	// Another service's certificate is whole in itself.
	other := newCluster()
	other.registrar(t, func(o *Options) { o.ServiceName = "metrics-server" })
	foreign := other.secret(t)

	for name, tweak := range map[string]func(c *cluster, data map[string][]byte){
		"no certificate":         func(_ *cluster, data map[string][]byte) { delete(data, "tls.crt") },
		"no key":                 func(_ *cluster, data map[string][]byte) { delete(data, "tls.key") },
		"no CA":                  func(_ *cluster, data map[string][]byte) { delete(data, "ca.crt") },
		"nothing":                func(_ *cluster, data map[string][]byte) { clear(data) },
		"garbage in certificate": func(_ *cluster, data map[string][]byte) { data["tls.crt"] = bytes.Repeat([]byte{0xa5}, 500) },
		"garbage in key":         func(_ *cluster, data map[string][]byte) { data["tls.key"] = []byte("-----BEGIN EC PRIVATE KEY-----") },
		"garbage in CA":          func(_ *cluster, data map[string][]byte) { data["ca.crt"] = []byte("-----BEGIN CERTIFICATE-----") },
		"key of another":         func(_ *cluster, data map[string][]byte) { data["tls.key"] = foreign.Data["tls.key"] },
		"CA of another":          func(_ *cluster, data map[string][]byte) { data["ca.crt"] = foreign.Data["ca.crt"] },
		"itself as CA":           func(_ *cluster, data map[string][]byte) { data["ca.crt"] = data["tls.crt"] },
		"another service":        func(_ *cluster, data map[string][]byte) { maps.Copy(data, foreign.Data) },
		"expired":                func(c *cluster, _ map[string][]byte) { c.clock.Step(lifetime + time.Hour) },
		"not yet valid":          func(c *cluster, _ map[string][]byte) { c.clock.SetTime(c.clock.Now().Add(-24 * time.Hour)) },
		"due":                    func(c *cluster, _ map[string][]byte) { c.clock.Step(61 * 24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			old := served(c.registrar(t))
			secret := c.secret(t)
			secret.Labels["team"] = "net"
			tweak(c, secret.Data)
			c.put(t, secret)

			r := c.registrar(t)
			if served(r) == old {
				t.Error("the old certificate is served")
			}
			got := c.secret(t)
			if string(got.Data["tls.crt"]) != served(r) || got.Labels["team"] != "net" {
				t.Error("the Secret has another certificate, or lost the label that somebody added")
			}
			if err := verify(t, c, r, got.Data["ca.crt"]); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestForbiddenSecretNamesTheRule(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		t.Run(verb, func(t *testing.T) {
			c := newCluster()
			forbid(&c.kube.Fake, verb, "secrets")
			_, err := c.tryRegistrar(t)
			want := `cannot ` + verb + ` resource "secrets"`
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), options.SecretName) {
				t.Errorf("got error %v, want one with %q and the name", err, want)
			}
		})
	}
}
