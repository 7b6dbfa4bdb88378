package neutron_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-apiserver/pkg/neutron"
	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

const (
	cloudProject = "11111111111111111111111111111111"
	cloudSecret  = "correct-horse-battery"
)

// keystone is as much of an identity service as a client meets: versions, and
// tokens for one application credential. The tokens are those the simulator
// understands.
type keystone struct {
	neutron  string
	lifetime time.Duration
	project  map[string]any // of the token; nil for none
	status   atomic.Int32   // instead of a token
	issued   atomic.Int32
}

func (k *keystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		fmt.Fprintf(w, `{"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": "http://%s/v3/"}]}}`, r.Host)
		return
	}
	var body struct {
		Auth struct {
			Identity struct {
				Credential struct{ Secret string } `json:"application_credential"`
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if status := int(k.status.Load()); status != 0 {
		http.Error(w, `{"error": {"code": 0, "message": "as asked"}}`, status)
		return
	}
	if body.Auth.Identity.Credential.Secret != cloudSecret {
		http.Error(w, `{"error": {"code": 401, "message": "The request you have made requires authentication."}}`, http.StatusUnauthorized)
		return
	}
	k.issued.Add(1)
	expires := time.Now().Add(k.lifetime)
	w.Header().Set("X-Subject-Token", fmt.Sprintf("it:u:%s:member:%d", cloudProject, expires.Unix()))
	w.WriteHeader(http.StatusCreated)
	token := map[string]any{
		"expires_at": expires.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"catalog": []any{map[string]any{"type": "network", "name": "neutron", "endpoints": []any{
			map[string]any{"interface": "public", "region": "North", "region_id": "North", "url": k.neutron},
			map[string]any{"interface": "internal", "region": "South", "region_id": "South", "url": k.neutron},
		}}},
	}
	if k.project != nil {
		token["project"] = k.project
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token})
}

// newKeystone starts an identity service and a Neutron.
func newKeystone(t *testing.T) (*keystone, string) {
	t.Helper()
	sim, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	networking := httptest.NewServer(sim)
	t.Cleanup(networking.Close)
	k := &keystone{neutron: networking.URL, lifetime: time.Hour, project: map[string]any{"id": cloudProject, "name": "p"}}
	identity := httptest.NewServer(k)
	t.Cleanup(identity.Close)
	return k, identity.URL
}

// useCloudsYAML makes this the only clouds.yaml there is.
func useCloudsYAML(t *testing.T, authURL string, tweaks ...func(string) string) {
	t.Helper()
	text := fmt.Sprintf(`clouds:
  mine:
    auth_type: v3applicationcredential
    auth:
      auth_url: %s/v3
      application_credential_id: 22222222222222222222222222222222
      application_credential_secret: %s
`, authURL, cloudSecret)
	for _, tweak := range tweaks {
		text = tweak(text)
	}
	path := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", path)
	t.Setenv("HOME", "") // a service has none
}

func with(line string) func(string) string {
	return func(text string) string { return text + "    " + line + "\n" }
}

func TestCloudPlace(t *testing.T) {
	tests := map[string]struct {
		tweak func(string) string
		want  neutron.Place
	}{
		"the region is that of the catalog where none is named": {
			tweak: func(s string) string { return s },
			want:  neutron.Place{ProjectID: cloudProject, Region: "North"},
		},
		"a named region is kept": {
			tweak: with("region_name: North"),
			want:  neutron.Place{ProjectID: cloudProject, Region: "North"},
		},
		"the interface chooses the endpoint": {
			tweak: with("interface: internal"),
			want:  neutron.Place{ProjectID: cloudProject, Region: "South"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, authURL := newKeystone(t)
			useCloudsYAML(t, authURL, tc.tweak)
			client, err := neutron.NewCloud(neutron.CloudOptions{Name: "mine"}).Client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, client.Place()); diff != "" {
				t.Errorf("place (-want +got):\n%s", diff)
			}
			network, err := client.CreateNetwork(t.Context(), neutron.NetworkAttributes{Name: new("n")})
			if err != nil {
				t.Fatal(err)
			}
			if network.ProjectID != cloudProject {
				t.Errorf("network is in project %q, want %q", network.ProjectID, cloudProject)
			}
		})
	}
}

func TestCloudRefused(t *testing.T) {
	tests := map[string]struct {
		cloud     string
		tweak     func(string) string
		keystone  func(*keystone)
		wantClass neutron.Class
		want      string
	}{
		"no such cloud": {
			cloud: "other", wantClass: neutron.Unauthorized, want: `open cloud "other": cloud "other" not found in clouds.yaml`,
		},
		"a wrong secret": {
			tweak:     func(s string) string { return strings.ReplaceAll(s, cloudSecret, "wrong") },
			wantClass: neutron.Unauthorized, want: `open cloud "mine": HTTP 401 Unauthorized`,
		},
		"a deleted application credential": {
			keystone:  func(k *keystone) { k.status.Store(http.StatusNotFound) },
			wantClass: neutron.Unauthorized, want: `open cloud "mine": HTTP 404 Not Found`,
		},
		"an identity service in trouble": {
			keystone:  func(k *keystone) { k.status.Store(http.StatusInternalServerError) },
			wantClass: neutron.Transient, want: `open cloud "mine": HTTP 500 Internal Server Error`,
		},
		"TLS that is not verified": {
			tweak: with("verify: false"), wantClass: neutron.Unauthorized,
			want: `open cloud "mine": verify: false is refused: name the CA with cacert`,
		},
		"a region without Neutron": {
			tweak: with("region_name: West"), wantClass: neutron.Unauthorized,
			want: `open cloud "mine": region "West" has no endpoint for the network service`,
		},
		"credentials without a project": {
			keystone: func(k *keystone) { k.project = nil }, wantClass: neutron.Unauthorized,
			want: `open cloud "mine": the credentials are not for a project: name one with project_id or project_name`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, authURL := newKeystone(t)
			if tc.keystone != nil {
				tc.keystone(k)
			}
			if tc.tweak == nil {
				tc.tweak = func(s string) string { return s }
			}
			useCloudsYAML(t, authURL, tc.tweak)
			if tc.cloud == "" {
				tc.cloud = "mine"
			}
			_, err := neutron.NewCloud(neutron.CloudOptions{Name: tc.cloud}).Client(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			if got := neutron.ClassOf(err); got != tc.wantClass {
				t.Errorf("class %s, want %s", got, tc.wantClass)
			}
			if err.Error() != tc.want {
				t.Errorf("error\n%s\nwant\n%s", err, tc.want)
			}
			if strings.Contains(err.Error(), cloudSecret) {
				t.Errorf("the error holds the secret: %v", err)
			}
		})
	}
}

func TestCloudIsOpenedAgainAfterAFailure(t *testing.T) {
	k, authURL := newKeystone(t)
	useCloudsYAML(t, authURL)
	cloud := neutron.NewCloud(neutron.CloudOptions{Name: "mine"})
	k.status.Store(http.StatusServiceUnavailable)
	if _, err := cloud.Client(t.Context()); err == nil {
		t.Fatal("no error while the identity service is down")
	}
	k.status.Store(0)
	first, err := cloud.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if second, err := cloud.Client(t.Context()); err != nil || second != first {
		t.Errorf("a second client %p (%v), want the first %p", second, err, first)
	}
	if got := k.issued.Load(); got != 1 {
		t.Errorf("%d tokens, want 1", got)
	}
}

// Tokens that live for a second or two expire under eight workers, who must
// neither fail nor ask for a token each.
func TestTokenExpiresUnderManyWorkers(t *testing.T) {
	k, authURL := newKeystone(t)
	k.lifetime = 2 * time.Second
	useCloudsYAML(t, authURL)
	client, err := neutron.NewCloud(neutron.CloudOptions{Name: "mine"}).Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const workers = 8
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for k.issued.Load() < 4 && t.Context().Err() == nil {
				if _, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	if got := k.issued.Load(); got > 4+1 {
		t.Errorf("%d tokens for 3 expiries, want one each", got)
	}
}

func TestDeletedCredentialIsUnauthorized(t *testing.T) {
	k, authURL := newKeystone(t)
	k.lifetime = -time.Minute // expired when it comes
	useCloudsYAML(t, authURL)
	client, err := neutron.NewCloud(neutron.CloudOptions{Name: "mine"}).Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.status.Store(http.StatusNotFound)
	_, err = client.ListNetworks(t.Context(), neutron.NetworkFilter{})
	if got := neutron.ClassOf(err); got != neutron.Unauthorized {
		t.Errorf("class %s of %v, want %s", got, err, neutron.Unauthorized)
	}
	k.status.Store(http.StatusBadGateway)
	_, err = client.ListNetworks(t.Context(), neutron.NetworkFilter{})
	if got := neutron.ClassOf(err); got != neutron.Transient {
		t.Errorf("class %s of %v, want %s", got, err, neutron.Transient)
	}
	k.status.Store(0)
	_, err = client.ListNetworks(t.Context(), neutron.NetworkFilter{})
	if got := neutron.ClassOf(err); got != neutron.Unauthorized {
		t.Errorf("class %s of %v with tokens that never serve, want %s", got, err, neutron.Unauthorized)
	}
	if got := k.issued.Load(); got > 3 {
		t.Errorf("%d tokens asked for, want no loop", got)
	}
}

func TestCloudIsOpenedAgainWithOtherCredentials(t *testing.T) {
	k, authURL := newKeystone(t)
	k.lifetime = -time.Minute // expired when it comes
	useCloudsYAML(t, authURL)
	cloud := neutron.NewCloud(neutron.CloudOptions{Name: "mine"})
	client, err := cloud.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.status.Store(http.StatusNotFound) // the application credential was replaced
	for _, try := range []func() error{
		func() error { _, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{}); return err },
		func() error { _, err := cloud.Client(t.Context()); return err },
	} {
		if err := try(); neutron.ClassOf(err) != neutron.Unauthorized {
			t.Errorf("class %s of %v, want %s", neutron.ClassOf(err), err, neutron.Unauthorized)
		}
	}
	k.status.Store(0)
	k.lifetime = time.Hour
	useCloudsYAML(t, authURL, with("interface: internal"))
	if client, err = cloud.Client(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(neutron.Place{ProjectID: cloudProject, Region: "South"}, client.Place()); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
	if _, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{}); err != nil {
		t.Error(err)
	}
}

// Behind an identity service that hangs, workers must not wait one after the
// other.
func TestCloudIsOpenedOnceForAllWhoWait(t *testing.T) {
	var attempts atomic.Int32
	hang := make(chan struct{})
	identity := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		attempts.Add(1)
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(identity.Close)
	t.Cleanup(func() { close(hang) })
	useCloudsYAML(t, identity.URL)
	cloud := neutron.NewCloud(neutron.CloudOptions{Name: "mine", Timeout: 2 * time.Second})

	const workers = 8
	errs := make([]error, workers)
	var waiting sync.WaitGroup
	for i := range workers {
		waiting.Go(func() { _, errs[i] = cloud.Client(t.Context()) })
	}
	waiting.Wait()
	for _, err := range errs {
		if got, want := fmt.Sprint(err), `open cloud "mine": no answer in time`; got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		if got := neutron.ClassOf(err); got != neutron.Transient {
			t.Errorf("class %s, want %s", got, neutron.Transient)
		}
	}
	if got := attempts.Load(); got != 1 {
		t.Errorf("%d attempts, want 1 for all", got)
	}
}

func TestNobodyWaitsForACloudAfterTheEnd(t *testing.T) {
	hang, asked := make(chan struct{}), make(chan struct{}, 1)
	identity := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-hang
	}))
	t.Cleanup(identity.Close)
	t.Cleanup(func() { close(hang) })
	useCloudsYAML(t, identity.URL)
	cloud := neutron.NewCloud(neutron.CloudOptions{Name: "mine"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := cloud.Client(ctx); neutron.ClassOf(err) != neutron.Transient {
		t.Errorf("error %v, want a transient one", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCloudWrapTransport(t *testing.T) {
	_, authURL := newKeystone(t)
	useCloudsYAML(t, authURL)
	var mu sync.Mutex
	seen := map[string]int{}
	cloud := neutron.NewCloud(neutron.CloudOptions{Name: "mine", WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			seen[r.Method+" "+r.URL.Path]++
			return next.RoundTrip(r)
		})
	}})
	client, err := cloud.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"POST /v3/auth/tokens": 1, "GET /": 1, "GET /v2.0/networks": 1}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
