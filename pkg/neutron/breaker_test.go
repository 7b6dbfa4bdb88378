package neutron

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// roundTrips answer requests one after the other.
type roundTrips []func() (*http.Response, error)

func (r *roundTrips) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*r)[0]
	*r = (*r)[1:]
	return next()
}

func TestBreaker(t *testing.T) {
	answers := func(body io.Reader) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
		}
	}
	fails := func(err error) func() (*http.Response, error) {
		return func() (*http.Response, error) { return nil, err }
	}
	answer := answers(strings.NewReader("x"))
	silence := fails(context.DeadlineExceeded)
	halfAnAnswer := answers(iotest.ErrReader(context.DeadlineExceeded))
	for name, tc := range map[string]struct {
		trips  roundTrips
		paused bool
	}{
		"one is too few":                     {roundTrips{silence}, false},
		"two in a row":                       {roundTrips{silence, silence}, true},
		"answers that do not end":            {roundTrips{halfAnAnswer, halfAnAnswer}, true},
		"an answer between":                  {roundTrips{silence, answer, silence}, false},
		"the beginning of an answer is none": {roundTrips{silence, halfAnAnswer}, true},
		"who refuses costs no time":          {roundTrips{fails(errors.New("refused")), fails(errors.New("refused"))}, false},
		"who is not waited for":              {roundTrips{fails(context.Canceled), fails(context.Canceled)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trips := tc.trips
				b := &breaker{RoundTripper: &trips}
				ask := func() error {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1", strings.NewReader("x"))
					if err != nil {
						t.Fatal(err)
					}
					response, err := b.RoundTrip(r)
					if err != nil {
						return err
					}
					defer response.Body.Close()
					_, err = io.ReadAll(response.Body)
					return err
				}
				for len(trips) > 0 {
					_ = ask()
				}
				trips = roundTrips{answer, silence, silence}
				err := ask()
				if asked := len(trips) < 3; asked == tc.paused {
					t.Fatalf("asked again: %v, %v", asked, err)
				}
				if !tc.paused {
					return
				}
				if !errors.Is(err, os.ErrDeadlineExceeded) || reason(err) != "no answer in time" {
					t.Errorf("got %v", err)
				}
				time.Sleep(silentPause) //nolint:forbidigo // of the bubble's clock
				if err := ask(); err != nil || len(trips) != 2 {
					t.Errorf("after the pause got %v", err)
				}
				_ = ask()
				if _ = ask(); len(trips) > 0 {
					t.Error("an answer did not begin a new count")
				}
				trips = roundTrips{answer}
				if _ = ask(); len(trips) == 0 {
					t.Error("there is no second pause")
				}
				time.Sleep(silentPause) //nolint:forbidigo // of the bubble's clock
				trips = roundTrips{silence, answer}
				_ = ask()
				if _ = ask(); len(trips) != 1 {
					t.Error("who is still silent after a pause is asked more than once")
				}
			})
		})
	}
}
