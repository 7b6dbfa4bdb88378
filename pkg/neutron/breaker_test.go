package neutron

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
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

type reader func() (int, error)

func (r reader) Read([]byte) (int, error) { return r() }

// after waits on the clock of the bubble.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // on that clock nobody waits
}

func TestBreaker(t *testing.T) {
	errSilent := errors.New("no answer")
	answers := func(body io.Reader) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
		}
	}
	fails := func(d time.Duration) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			after(d)
			return nil, errSilent
		}
	}
	answer, silence := answers(strings.NewReader("x")), fails(slowFailure)
	halfAnAnswer := answers(reader(func() (int, error) {
		after(slowFailure)
		return 0, errSilent
	}))
	for name, tc := range map[string]struct {
		trips  roundTrips
		paused bool
	}{
		"one is too few":                     {roundTrips{silence}, false},
		"two in a row":                       {roundTrips{silence, silence}, true},
		"answers that do not end":            {roundTrips{halfAnAnswer, halfAnAnswer}, true},
		"an answer between":                  {roundTrips{silence, answer, silence}, false},
		"the beginning of an answer is none": {roundTrips{silence, halfAnAnswer}, true},
		"who fails soon holds up nobody":     {roundTrips{fails(slowFailure - 1), fails(0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trips := tc.trips
				transport := breaking{&trips, &breaker{}}
				ask := func() error {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1", strings.NewReader("x"))
					if err != nil {
						t.Fatal(err)
					}
					response, err := transport.RoundTrip(r)
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
					t.Fatalf("asked again: %t, %v", asked, err)
				}
				if !tc.paused {
					return
				}
				if reason(err) != "no answer in time" {
					t.Errorf("got %v in the pause", err)
				}
				after(breakerPause)
				if err := ask(); err != nil || len(trips) != 2 {
					t.Errorf("after the pause got %v", err)
				}
				_ = ask()
				if _ = ask(); len(trips) > 0 {
					t.Error("an answer did not begin a new count")
				}
				trips = roundTrips{silence, answer}
				if _ = ask(); len(trips) < 2 {
					t.Error("there is no second pause")
				}
				after(breakerPause)
				_ = ask()
				if _ = ask(); len(trips) != 1 {
					t.Error("who is silent after a pause too is asked more than once")
				}
			})
		})
	}
}
