package registration

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

const day = 24 * time.Hour

// TestRotation goes through the life of a certificate with two replicas; what
// either serves is verified by every APIService at each step.
func TestRotation(t *testing.T) {
	c := newCluster()
	a, b := c.registrar(t), c.registrar(t)
	old := served(a)
	step := func(d time.Duration, wantA, wantB string, wantCAs int) {
		t.Helper()
		c.clock.Step(d)
		runOnce(t, a, b)
		for name, r := range map[string]*Registrar{"a": a, "b": b} {
			for _, version := range options.Versions {
				if err := verify(t, c, r, c.mustAPIService(t, version).Spec.CABundle); err != nil {
					t.Errorf("%s by %s: %v", name, version, err)
				}
			}
		}
		if served(a) != wantA || served(b) != wantB {
			t.Errorf("a serves old: %v, want %v; b serves old: %v, want %v", served(a) == old, wantA == old, served(b) == old, wantB == old)
		}
		if got := cas(t, c.secret(t).Data["ca.crt"]); len(got) != wantCAs {
			t.Errorf("%d CAs, want %d", len(got), wantCAs)
		}
	}
	step(0, old, old, 1)
	step(60*day, old, old, 1)
	step(time.Second, old, old, 2) // due: it is announced
	renewed := string(c.secret(t).Data["tls.crt"])
	if renewed == old {
		t.Fatal("no certificate was made")
	}
	step(settle-time.Second, old, old, 2)
	step(time.Second, renewed, renewed, 2)
	step(resync, renewed, renewed, 2) // the old one is idle from here
	step(retire-time.Second, renewed, renewed, 2)
	step(time.Second, renewed, renewed, 1)
}

func TestDeletedSecretHasACertificateMade(t *testing.T) {
	c := newCluster()
	a := c.registrar(t)
	runOnce(t, a)
	old := served(a)
	c.clock.Step(time.Hour)
	c.deleteSecret(t)

	// A replica that starts just now makes the new one.
	b := c.registrar(t)
	if served(b) == old {
		t.Fatal("the certificate that was deleted came back")
	}
	runOnce(t, a, b, a, b)
	for version, r := range map[string]*Registrar{"a": a, "b": b} {
		if err := verify(t, c, r, c.mustAPIService(t, v1).Spec.CABundle); err != nil {
			t.Errorf("replica %s: %v", version, err)
		}
	}
	if served(a) != old {
		t.Error("a changed before caBundle could arrive")
	}
	c.clock.Step(settle)
	runOnce(t, a)
	if served(a) != served(b) {
		t.Error("a did not change")
	}
}

func TestCertificateWaitsForEveryAPIService(t *testing.T) {
	c := newCluster()
	a := c.registrar(t)
	runOnce(t, a)
	old := served(a)
	c.clock.Step(61 * day)
	c.aggregator.PrependReactor("patch", "apiservices", refuse(nameOf(v2alpha1)))
	for range 3 {
		if err := a.RunOnce(t.Context()); err == nil {
			t.Error("no error")
		}
		c.clock.Step(day)
	}
	if served(a) != old {
		t.Error("it changed though one APIService does not know the new CA")
	}
	c.aggregator.ReactionChain = c.aggregator.ReactionChain[1:]
	runOnce(t, a)
	if served(a) != old {
		t.Error("it changed at once")
	}
	c.clock.Step(settle)
	runOnce(t, a)
	if served(a) == old {
		t.Error("it did not change")
	}
}

// TestSomebodyTakesTheCAAway begins the wait anew: kube-apiserver may have seen that.
func TestSomebodyTakesTheCAAway(t *testing.T) {
	c := newCluster()
	a := c.registrar(t)
	runOnce(t, a)
	old := served(a)
	c.clock.Step(61 * day)
	runOnce(t, a)
	c.clock.Step(settle)
	apiService := c.mustAPIService(t, v1).DeepCopy()
	apiService.Spec.CABundle = []byte("other")
	if _, err := c.aggregator.ApiregistrationV1().APIServices().Update(t.Context(), apiService, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	runOnce(t, a)
	if served(a) != old {
		t.Error("it changed though an APIService had not the new CA a moment ago")
	}
	if err := verify(t, c, a, c.mustAPIService(t, v1).Spec.CABundle); err != nil {
		t.Error(err)
	}
}

func TestExpiredIsReplacedAtOnce(t *testing.T) {
	c := newCluster()
	a := c.registrar(t)
	runOnce(t, a)
	c.clock.Step(lifetime + day) // a machine that slept
	runOnce(t, a)
	if err := verify(t, c, a, c.mustAPIService(t, v1).Spec.CABundle); err != nil {
		t.Error(err)
	}
}

// TestReplicasDisagree lets each serve what is good to it, and neither undo for
// ever what the other does.
func TestReplicasDisagree(t *testing.T) {
	for name, tc := range map[string]struct {
		ahead time.Duration
		tweak func(*Options)
	}{
		"about the time": {365 * day, func(*Options) {}},
		"about the name": {0, func(o *Options) { o.ServiceName = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			a := c.registrar(t)
			runOnce(t, a)
			old := served(a)
			other := *c
			other.clock = clocktesting.NewFakeClock(c.clock.Now().Add(tc.ahead))
			b := other.registrar(t, tc.tweak)
			runOnce(t, a, b, a)
			before := c.secret(t)
			writes := 0
			for range 30 {
				c.clock.Step(resync)
				other.clock.Step(resync)
				c.kube.ClearActions()
				runOnce(t, b, a)
				for _, action := range c.kube.Actions() {
					if action.GetVerb() != "get" {
						writes++
					}
				}
			}
			if served(a) != old {
				t.Error("a serves something else")
			}
			if after := c.secret(t); !cmp.Equal(before.Data["tls.crt"], after.Data["tls.crt"]) || writes > 4 {
				t.Errorf("the certificate in the Secret was replaced, or %d writes in 2.5 hours are too many", writes)
			}
			for _, r := range []*Registrar{a, b} {
				certPEM, _ := r.CurrentCertKeyContent()
				bundle := c.mustAPIService(t, v1).Spec.CABundle
				if err := verifyPEM(t, certPEM, bundle, r.names[0], r.clock.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRunFollowsEvents(t *testing.T) {
	c := newCluster()
	a := c.registrar(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx, 1)
	}()
	registered := func() bool {
		got := c.mustAPIService(t, v1)
		return got != nil && verify(t, c, a, got.Spec.CABundle) == nil
	}
	eventually(t, "registering", registered)
	c.deleteAPIService(t, v1)
	eventually(t, "registering again", registered)
	c.clock.Step(time.Hour)
	before := string(c.secret(t).Data["tls.crt"])
	c.deleteSecret(t)
	eventually(t, "a new certificate", func() bool {
		got, err := c.kube.CoreV1().Secrets(options.ServiceNamespace).Get(t.Context(), options.SecretName, metav1.GetOptions{})
		return err == nil && string(got.Data["tls.crt"]) != before
	})
	stop()
	select {
	case <-ended:
	case <-time.After(deadline):
		t.Fatal("it does not end")
	}
}
