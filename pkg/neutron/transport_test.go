package neutron

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// hijack hands the handler the bare connection, which it closes.
func hijack(t *testing.T, w http.ResponseWriter, do func(*net.TCPConn)) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	do(conn.(*net.TCPConn))
	_ = conn.Close()
}

func reset(conn *net.TCPConn) { _ = conn.SetLinger(0) }

func TestLostAnswers(t *testing.T) {
	tests := map[string]struct {
		handle func(*testing.T, http.ResponseWriter)
		want   string
	}{
		"connection reset": {
			handle: func(t *testing.T, w http.ResponseWriter) { hijack(t, w, reset) },
			want:   "connection reset by peer",
		},
		"connection closed": {
			handle: func(t *testing.T, w http.ResponseWriter) { hijack(t, w, func(*net.TCPConn) {}) },
			want:   "answer ended too early",
		},
		"truncated JSON": {
			handle: func(_ *testing.T, w http.ResponseWriter) { answer(w, 201, `{"network":{"id":"5083`) },
			want:   "answer ended too early",
		},
		"body shorter than announced": {
			handle: func(_ *testing.T, w http.ResponseWriter) {
				w.Header().Set("Content-Length", "4000")
				answer(w, 201, `{"network":{`)
			},
			want: "answer ended too early",
		},
		"answer that is not HTTP": {
			handle: func(t *testing.T, w http.ResponseWriter) {
				hijack(t, w, func(conn *net.TCPConn) { _, _ = conn.Write([]byte("220 mail ready\r\n")) })
			},
			want: "no usable answer",
		},
		"page of a captive portal": {
			handle: func(_ *testing.T, w http.ResponseWriter) { answer(w, 201, "<html>") },
			want:   "no usable answer",
		},
		"object without the network": {
			handle: func(_ *testing.T, w http.ResponseWriter) { answer(w, 201, "{}") },
			want:   "no usable answer",
		},
		"network without an ID": {
			handle: func(_ *testing.T, w http.ResponseWriter) { answer(w, 201, `{"network":{}}`) },
			want:   "no usable answer",
		},
		"network of the wrong shape": {
			handle: func(_ *testing.T, w http.ResponseWriter) { answer(w, 201, `{"network":{"id":7}}`) },
			want:   "no usable answer",
		},
		"answer beyond the bound": {
			handle: func(_ *testing.T, w http.ResponseWriter) {
				answer(w, 201, `{"network":{"id":"`+strings.Repeat("x", maxAnswer)+`"}}`)
			},
			want: "answer is too large",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int32
			endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					answer(w, 200, memberNetwork)
					return
				}
				posts.Add(1)
				tc.handle(t, w)
			})
			c := newClient(t, endpoint)
			// net/http sends again only on a connection that was used before.
			if err := getNetwork(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			err := createNetwork(t.Context(), c)
			if got := ClassOf(err); got != Transient {
				t.Errorf("class %q, want %q", got, Transient)
			}
			if want := `create network "web": ` + tc.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if n := posts.Load(); n != 1 {
				t.Errorf("%d POSTs, want 1", n)
			}
		})
	}
}

func TestStatusesThatInviteAnotherTryGetNone(t *testing.T) {
	for _, status := range []int{401, 429, 498, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var posts atomic.Int32
			c := newClient(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				posts.Add(1)
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(status)
			}))
			if err := createNetwork(t.Context(), c); err == nil {
				t.Error("no error")
			}
			if n := posts.Load(); n != 1 {
				t.Errorf("%d POSTs, want 1", n)
			}
		})
	}
}

func TestHangingServerIsBoundedByTimeout(t *testing.T) {
	tests := map[string]func(http.ResponseWriter){
		"before the answer": func(http.ResponseWriter) {},
		"within the answer": func(w http.ResponseWriter) {
			answer(w, 200, `{"network":{`)
			_ = http.NewResponseController(w).Flush()
		},
	}
	for name, begin := range tests {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				begin(w)
				<-done
			})
			defer close(done)
			c := newClient(t, endpoint, func(o *Options) { o.Timeout = 50 * time.Millisecond })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := getNetwork(ctx, c)
			if ctx.Err() != nil {
				t.Fatal("ended by the deadline of the test, not by Timeout")
			}
			if got := ClassOf(err); got != Transient {
				t.Errorf("class %q, want %q", got, Transient)
			}
			if want := "get network " + networkID + ": no answer in time"; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestCanceledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	endpoint := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	err := getNetwork(ctx, newClient(t, endpoint))
	if !errors.Is(err, context.Canceled) || ClassOf(err) != Transient {
		t.Errorf("got %v of class %q, want a Transient context.Canceled", err, ClassOf(err))
	}
}

func TestNobodyListens(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	err := getNetwork(t.Context(), newClient(t, server.URL))
	if want := "get network " + networkID + ": connection refused"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestCertificateIsVerified(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the failed handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	err := getNetwork(t.Context(), newClient(t, server.URL))
	if ClassOf(err) != Transient || !strings.Contains(fmt.Sprint(err), "certificate signed by unknown authority") {
		t.Errorf("got %v", err)
	}
}

func TestReasonsAreStable(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"reset, with the local port": {
			&net.OpError{Op: "read", Source: &net.TCPAddr{Port: 40001}, Err: os.NewSyscallError("read", syscall.ECONNRESET)},
			"connection reset by peer",
		},
		"unknown name, with the server asked": {
			&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "neutron.example", Server: "127.0.0.1:40001", IsNotFound: true}},
			"cannot resolve neutron.example",
		},
		"certificate out of its time, with the time": {
			&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-11-29T12:00:00Z is after 2026-11-28T00:00:00Z"}},
			"certificate has expired or is not yet valid",
		},
		"certificate of another host": {
			&tls.CertificateVerificationError{Err: errors.New("x509: certificate is valid for a, not b")},
			"tls: failed to verify certificate: x509: certificate is valid for a, not b",
		},
		"deadline of the caller": {context.DeadlineExceeded, "no answer in time"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reason(&url.Error{Op: "Get", URL: "http://neutron.example/", Err: tc.err}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("followed to %s with token %q", r.URL, r.Header.Get("X-Auth-Token"))
	})
	c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusMovedPermanently)
	}))
	for name, do := range map[string]func(context.Context, *Client) error{"GET": getNetwork, "POST": createNetwork, "list": listPorts} {
		t.Run(name, func(t *testing.T) {
			if got := ClassOf(do(t.Context(), c)); got != Transient {
				t.Errorf("class %q, want %q", got, Transient)
			}
		})
	}
}

// The server repeats the token wherever it can.
func TestTokenStaysOutOfErrors(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"NeutronError": func(w http.ResponseWriter, r *http.Request) {
			tok := r.Header.Get("X-Auth-Token")
			answer(w, 400, neutronError("Bad"+tok, "token "+tok+" is not known"))
		},
		"page": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Auth-Token", r.Header.Get("X-Auth-Token"))
			http.Error(w, r.Header.Get("X-Auth-Token"), http.StatusBadGateway)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/?token="+r.Header.Get("X-Auth-Token"), http.StatusFound)
		},
		"answer of the wrong shape": func(w http.ResponseWriter, r *http.Request) {
			answer(w, 200, `{"networks": "`+r.Header.Get("X-Auth-Token")+`"}`)
		},
		"connection reset": func(w http.ResponseWriter, _ *http.Request) { hijack(t, w, reset) },
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, serve(t, handler))
			for _, do := range []func(context.Context, *Client) error{getNetwork, createNetwork, listPorts} {
				for err := do(t.Context(), c); err != nil; err = errors.Unwrap(err) {
					if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, token) {
						t.Errorf("token in %s", text)
					}
				}
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	c := newClient(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, memberNetwork) }))
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 10 {
				if err := getNetwork(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}
