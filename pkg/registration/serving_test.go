package registration

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/util/cert"
)

// TestNoRequestFailsWhileCertificatesChange sends requests as kube-apiserver
// does, each over a connection of its own, verified by the caBundle of the
// moment, to two replicas that run as a server runs them.
func TestNoRequestFailsWhileCertificatesChange(t *testing.T) {
	c := newCluster()
	replicas := []*Registrar{c.registrar(t), c.registrar(t)}
	c.clock.Step(60*day - 2*settle) // with no loop running: to each of its timers it would be 60 days of ticks
	var addresses []string
	for _, r := range replicas {
		addresses = append(addresses, serveTLS(t, r))
	}
	var clients [4]*client
	for i := range clients {
		clients[i] = &client{cluster: c, address: addresses[i%2]}
		clients[i].run(t)
	}
	// Half of settle at a time, each followed by requests: whatever is announced
	// is seen by each client before it may be served.
	step := func() {
		c.clock.Step(settle / 2)
		for i, client := range clients {
			target := client.answered.Load() + 2
			eventually(t, fmt.Sprintf("client %d", i), func() bool {
				if err := client.failed.Load(); err != nil {
					t.Fatalf("a request failed: %v", *err)
				}
				return client.answered.Load() >= target
			})
		}
	}
	rotated := func(what string) {
		t.Helper()
		old := served(replicas[0])
		if served(replicas[1]) != old {
			t.Fatalf("before %s the replicas differ", what)
		}
		eventually(t, what, func() bool {
			step()
			now := served(replicas[0])
			return now != old && served(replicas[1]) == now && clients[0].sees(now) && clients[1].sees(now)
		})
	}
	rotated("two thirds of the life")
	for range 2 {
		c.deleteSecret(t)
		rotated("the deletion of the Secret")
	}

	answered := int64(0)
	for _, client := range clients {
		answered += client.answered.Load()
		if err := client.failed.Load(); err != nil {
			t.Errorf("a request failed: %v", *err)
		}
	}
	t.Logf("%d requests answered", answered)
}

// serveTLS serves with r, which the server of k8s.io/apiserver runs, and
// returns the address.
func serveTLS(t *testing.T, r *Registrar) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := &genericapiserver.SecureServingInfo{Listener: listener, Cert: r, MinTLSVersion: tls.VersionTLS12}
	stop := make(chan struct{})
	stopped, _, err := serving.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), deadline, stop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return listener.Addr().String()
}

// client sends one request after the other.
type client struct {
	cluster     *cluster
	address     string
	answered    atomic.Int64
	failed      atomic.Pointer[error] // the first
	certificate atomic.Pointer[string]
}

func (c *client) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := c.request(ctx); err != nil && ctx.Err() == nil {
				c.failed.CompareAndSwap(nil, &err)
			} else {
				c.answered.Add(1)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

func (c *client) request(ctx context.Context) error {
	apiService, err := c.cluster.apiService(ctx, v1)
	if err != nil || apiService == nil {
		return errors.Join(err, errors.New("no APIService"))
	}
	roots, err := cert.NewPoolFromBytes(apiService.Spec.CABundle)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: serverName, Time: c.cluster.clock.Now, MinVersion: tls.VersionTLS12},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.address, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport, Timeout: deadline}).Do(request)
	if err != nil {
		return err
	}
	seen := string(encode(answer.TLS.PeerCertificates[0]))
	c.certificate.Store(&seen)
	return answer.Body.Close()
}

// sees tells whether the last answer came with this certificate.
func (c *client) sees(certPEM string) bool {
	last := c.certificate.Load()
	return last != nil && *last == certPEM
}
