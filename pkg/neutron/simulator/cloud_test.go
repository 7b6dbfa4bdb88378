package simulator_test

import (
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

const password = `clouds:
  mine:
    region_name: RegionOne
    auth:
      auth_url: URL/identity/v3
      username: demo
      password: demo
      user_domain_name: Default
      project_name: demo
      project_domain_name: Default
`

// cloud is a simulator by its name in clouds.yaml.
type cloud struct {
	*neutron.Cloud
	url    string
	issued atomic.Int32 // how many tokens were asked for
}

// newCloud starts a simulator and writes the one clouds.yaml that there is, with its URL.
func newCloud(t *testing.T, options simulator.Options, clouds string) *cloud {
	t.Helper()
	s, err := simulator.New(options)
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{Cloud: neutron.NewCloud(neutron.CloudOptions{Name: "mine"})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/identity/v3/auth/tokens" {
			c.issued.Add(1)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	path := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(clouds, "URL", c.url)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", path)
	return c
}

func without(lines ...string) string {
	text := password
	for _, line := range lines {
		text = strings.ReplaceAll(text, "      "+line+"\n", "")
	}
	return text
}

func TestCloud(t *testing.T) {
	const credential = `clouds:
  mine:
    auth_type: v3applicationcredential
    auth:
      auth_url: URL/identity/v3
      application_credential_id: USER:some-project
      application_credential_secret: USER
`
	for name, tc := range map[string]struct {
		clouds      string
		wantProject string
		wantAdmin   bool
	}{
		"a password": {
			clouds:      password,
			wantProject: "demo",
		},
		"ids": {
			clouds: without("user_domain_name: Default", "project_name: demo", "project_domain_name: Default", "username: demo") +
				"      user_id: demo\n      project_id: another\n",
			wantProject: "another",
		},
		"an application credential": {
			clouds:      strings.ReplaceAll(credential, "USER", "demo"),
			wantProject: "some-project",
		},
		"an application credential of the administrator": {
			clouds:      strings.ReplaceAll(credential, "USER", "admin"),
			wantProject: "some-project",
			wantAdmin:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := newCloud(t, simulator.Options{}, tc.clouds).Client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(neutron.Place{ProjectID: tc.wantProject, Region: "RegionOne"}, client.Place()); diff != "" {
				t.Errorf("place (-want +got):\n%s", diff)
			}
			network, err := client.CreateNetwork(t.Context(), neutron.NetworkAttributes{Name: new("n")})
			if err != nil {
				t.Fatal(err)
			}
			if network.ProjectID != tc.wantProject {
				t.Errorf("the network is in project %q, want %q", network.ProjectID, tc.wantProject)
			}
			if sees := network.Provider != nil; sees != tc.wantAdmin {
				t.Errorf("sees what only the administrator does: %t, want %t", sees, tc.wantAdmin)
			}
		})
	}
}

func TestCloudRefused(t *testing.T) {
	for name, tc := range map[string]struct{ clouds, want string }{
		"a wrong password": {
			clouds: strings.ReplaceAll(password, "password: demo", "password: secret"),
			want:   `open cloud "mine": HTTP 401 Unauthorized`,
		},
		"no project": {
			clouds: without("project_name: demo", "project_domain_name: Default"),
			want:   `open cloud "mine": the credentials are not for a project: name one with project_id or project_name`,
		},
		"another region": {
			clouds: strings.ReplaceAll(password, "RegionOne", "RegionTwo"),
			want:   `open cloud "mine": region "RegionTwo" has no endpoint for the network service`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newCloud(t, simulator.Options{}, tc.clouds).Client(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			if got := neutron.ClassOf(err); got != neutron.Unauthorized || err.Error() != tc.want {
				t.Errorf("%s: %v\nwant %s: %s", got, err, neutron.Unauthorized, tc.want)
			}
		})
	}
}

// Calls go on when their token expires, many at a time.
func TestCloudRenewsTokens(t *testing.T) {
	const workers, tokens = 20, 3
	cloud := newCloud(t, simulator.Options{TokenLifetime: time.Second}, password)
	client, err := cloud.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for cloud.issued.Load() < tokens && t.Context().Err() == nil {
				if _, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// A token that is refused before its time is renewed as well. A new one of the same second is the same text.
func TestCloudRenewsARefusedToken(t *testing.T) {
	cloud := newCloud(t, simulator.Options{Faults: true}, password)
	client, err := cloud.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rule := `{"kind": "expire", "path": "^/v2.0/", "times": 10, "every": 2}`
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, cloud.url+"/faults", strings.NewReader(rule))
	if err != nil {
		t.Fatal(err)
	}
	made, err := http.DefaultClient.Do(post)
	if err != nil || made.StatusCode != http.StatusCreated {
		t.Fatalf("POST /faults answered %v: %v", made, err)
	}
	made.Body.Close()
	for range 20 {
		if _, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := cloud.issued.Load(); got != 1+10 {
		t.Errorf("%d tokens were asked for, want 1 and 10 new ones", got)
	}
}
