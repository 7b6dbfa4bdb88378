package neutron

import (
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// slowFailure is how long a request takes at least that is failed and holds
	// up others.
	slowFailure = time.Second
	// slowFailures is how many in a row it takes to leave a cloud alone.
	slowFailures = 2
	// breakerPause is how long that lasts.
	breakerPause = 2 * time.Minute
)

// breaker leaves a cloud alone that gives no answers. Each request would hold up
// for all of its timeout what others need too, and whose cloud it is says anybody
// who owns a namespace.
type breaker struct {
	mu    sync.Mutex
	slow  int       // in a row
	until time.Time // no request before
}

// breaking is one transport to the cloud: each try to open it has its own.
type breaking struct {
	http.RoundTripper
	*breaker
}

func (b breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	if b.pauses(began) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, os.ErrDeadlineExceeded
	}
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		b.failed(began)
		return nil, err
	}
	response.Body = &awaited{response.Body, b.breaker, began, false}
	return response, nil
}

func (b *breaker) pauses(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until)
}

func (b *breaker) failed(began time.Time) {
	now := time.Now()
	if now.Sub(began) < slowFailure {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow++
	if b.slow >= slowFailures {
		b.until = now.Add(breakerPause)
	}
}

func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = 0
}

// awaited is the body of an answer, which may not come to its end either.
type awaited struct {
	io.ReadCloser
	breaker *breaker
	began   time.Time
	failed  bool
}

func (a *awaited) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !a.failed {
		a.failed = true
		a.breaker.failed(a.began)
	}
	return n, err
}

func (a *awaited) Close() error {
	if !a.failed {
		a.breaker.answered()
	}
	return a.ReadCloser.Close()
}
