//go:build kube

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// balancer is what a Service is to its endpoints: each new connection goes to
// one that is ready. The Service of a cluster without nodes can name just one
// address, which is this.
type balancer struct {
	port     int
	listener net.Listener

	mu    sync.Mutex
	ports []int // of the replicas; the last that took a connection is last
}

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{port: listener.Addr().(*net.TCPAddr).Port, listener: listener}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				serving.Go(func() { b.serve(ctx, client) })
			}
		}
	})
	t.Cleanup(func() {
		stop()
		listener.Close()
		serving.Wait()
	})
	return b
}

func (b *balancer) add(port int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ports = append(b.ports, port)
}

func (b *balancer) remove(port int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ports = slices.DeleteFunc(b.ports, func(p int) bool { return p == port })
}

// next returns the ports, those that waited longest first.
func (b *balancer) next() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	ports := slices.Clone(b.ports)
	if len(ports) > 0 {
		b.ports = append(b.ports[1:], b.ports[0])
	}
	return ports
}

func (b *balancer) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	for _, port := range b.next() {
		if !ready(ctx, port) {
			continue
		}
		backend, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer backend.Close()
		defer context.AfterFunc(ctx, func() { client.Close(); backend.Close() })()
		var copying sync.WaitGroup
		for _, pair := range [][2]net.Conn{{client, backend}, {backend, client}} {
			copying.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].(*net.TCPConn).CloseWrite()
			})
		}
		copying.Wait()
		return
	}
}
