package neutron

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewRefusesBadOptions(t *testing.T) {
	tests := map[string]struct {
		tweak func(*Options)
		want  []string
	}{
		"no endpoint":               {func(o *Options) { o.Endpoint = "" }, []string{"http or https"}},
		"endpoint without a host":   {func(o *Options) { o.Endpoint = "http://:9696" }, []string{"with a host"}},
		"endpoint without a scheme": {func(o *Options) { o.Endpoint = "neutron/v2.0" }, []string{"http or https"}},
		"endpoint of another kind":  {func(o *Options) { o.Endpoint = "ftp://neutron" }, []string{"http or https"}},
		"endpoint with a query":     {func(o *Options) { o.Endpoint = "http://neutron?a=b" }, []string{"a query"}},
		"endpoint with a password":  {func(o *Options) { o.Endpoint = "http://u:secret@neutron" }, []string{"credentials"}},
		"endpoint that is garbage":  {func(o *Options) { o.Endpoint = "http://u:secret@neutron:x" }, []string{"not a URL"}},
		"token with a line break":   {func(o *Options) { o.Token = "secret\r\nX-Roles: admin" }, []string{"token"}},
		"token that is not ASCII":   {func(o *Options) { o.Token = "secret\u00e9" }, []string{"token"}},
		"no project":                {func(o *Options) { o.ProjectID = "" }, []string{"project ID is required"}},
		"negative timeout":          {func(o *Options) { o.Timeout = -time.Second }, []string{"negative"}},
		"all at once": {
			func(o *Options) { *o = Options{Token: "secret ", Timeout: -1} },
			[]string{"project ID", "token", "timeout", "endpoint"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := Options{Endpoint: "http://127.0.0.1:9696", Token: token, ProjectID: project}
			tc.tweak(&o)
			_, err := New(o)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not hold %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("secret in %q", err)
			}
		})
	}
}

func TestEndpointForms(t *testing.T) {
	tests := map[string]struct{ suffix, wantPath string }{
		"bare":                      {"", "/v2.0/networks/"},
		"slash":                     {"/", "/v2.0/networks/"},
		"version":                   {"/v2.0", "/v2.0/networks/"},
		"version and slash":         {"/v2.0/", "/v2.0/networks/"},
		"path of a shared endpoint": {"/networking/", "/networking/v2.0/networks/"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got string
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.Path
				answer(w, 200, memberNetwork)
			})
			if err := getNetwork(t.Context(), newClient(t, url+tc.suffix)); err != nil {
				t.Fatal(err)
			}
			if want := tc.wantPath + networkID; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestEmptyTokenIsNotSent(t *testing.T) {
	var sent []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Values("X-Auth-Token")
		answer(w, 200, memberNetwork)
	})
	if err := getNetwork(t.Context(), newClient(t, url, func(o *Options) { o.Token = "" })); err != nil {
		t.Fatal(err)
	}
	if sent != nil {
		t.Errorf("sent %q", sent)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWrapTransport(t *testing.T) {
	var calls int
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, memberNetwork) })
	c := newClient(t, url, func(o *Options) {
		o.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return transportFunc(func(r *http.Request) (*http.Response, error) {
				calls++
				return next.RoundTrip(r)
			})
		}
	})
	if err := getNetwork(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

func TestPlace(t *testing.T) {
	want := Place{ProjectID: project, Region: "RegionOne"}
	if diff := cmp.Diff(want, newClient(t, "http://127.0.0.1:9696").Place()); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
}
