package neutron

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

const (
	// silentTries is how many requests in a row get no answer in time until a
	// cloud is left alone.
	silentTries = 2
	// silentPause is how long that lasts.
	silentPause = 2 * time.Minute
)

// breaker leaves a cloud alone that gives no answers. Each request would hold up
// for all of its timeout what others need too, and whose cloud it is says anybody
// who owns a namespace.
type breaker struct {
	http.RoundTripper
	silent atomic.Int32 // requests in a row
	until  atomic.Int64 // no request before, in nanoseconds since 1970
}

func (b *breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().UnixNano() < b.until.Load() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, os.ErrDeadlineExceeded // as before
	}
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		b.failed(err)
		return nil, err
	}
	response.Body = &awaited{response.Body, b, nil}
	return response, nil
}

func (b *breaker) failed(err error) {
	e, ok := errors.AsType[net.Error](err)
	if ok && e.Timeout() && b.silent.Add(1) >= silentTries {
		b.until.Store(time.Now().Add(silentPause).UnixNano())
	}
}

// awaited is the body of an answer, which may not come to its end either.
type awaited struct {
	io.ReadCloser
	breaker *breaker
	err     error
}

func (a *awaited) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF && a.err == nil {
		a.err = err
		a.breaker.failed(err)
	}
	return n, err
}

func (a *awaited) Close() error {
	if a.err == nil {
		a.breaker.silent.Store(0)
	}
	return a.ReadCloser.Close()
}
