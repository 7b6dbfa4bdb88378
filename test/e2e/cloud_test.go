package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// osCloud is the cloud in which networks are made, unless a test says more.
const osCloud = "demo"

// cloud is an OpenStack. Its clouds.yaml has demo and other, a member each of a
// project of that name, and admin.
type cloud struct {
	configFile string
	neutron    string // its URL
	networks   int    // how many it takes to be sure

	mu     sync.Mutex
	tokens map[string]*tokens.Token // by cloud
}

// tokenMargin is the time that a token must be good for. Those of the tests
// live not much longer.
const tokenMargin = 5 * time.Second

// TestCloud runs each file of testdata/cloud against a server that finds its
// cloud in clouds.yaml.
func TestCloud(t *testing.T) { newCloud(t).runScripts(t, "testdata/cloud") }

func (c *cloud) runScripts(t *testing.T, dir string) {
	runScripts(t, dir, func(t testing.TB, flags ...string) run {
		s := c.start(t, dataDir(t), osCloud, append([]string{"--cluster-id", "e2e"}, flags...)...)
		return run{t: t, server: s, neutron: c.neutron, token: c.token, clouds: c.configFile}
	})
}

// start runs a server that makes its networks as the cloud of that name.
func (c *cloud) start(t testing.TB, dir, name string, flags ...string) *server {
	t.Helper()
	return startWith(t, []string{"OS_CLIENT_CONFIG_FILE=" + c.configFile}, dir, append([]string{"--os-cloud", name}, flags...)...)
}

func (c *cloud) authenticate(ctx context.Context, name string) (tokens.CreateResult, error) {
	auth, _, _, err := clouds.Parse(clouds.WithCloudName(name), clouds.WithLocations(c.configFile))
	if err != nil {
		return tokens.CreateResult{}, err
	}
	provider, err := openstack.AuthenticatedClient(ctx, auth)
	if err != nil {
		return tokens.CreateResult{}, err
	}
	return provider.GetAuthResult().(tokens.CreateResult), nil
}

func (c *cloud) token(ctx context.Context, name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if token, ok := c.tokens[name]; ok && time.Until(token.ExpiresAt) > tokenMargin {
		return token.ID, nil
	}
	answer, err := c.authenticate(ctx, name)
	if err != nil {
		return "", err
	}
	token, err := answer.ExtractToken()
	if err != nil {
		return "", err
	}
	if c.tokens == nil {
		c.tokens = map[string]*tokens.Token{}
	}
	c.tokens[name] = token
	return token.ID, nil
}

// project returns the id of the project that the cloud of that name is for.
func (c *cloud) project(t *testing.T, name string) string {
	t.Helper()
	answer, err := c.authenticate(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	project, err := answer.ExtractProject()
	if err != nil {
		t.Fatal(err)
	}
	return project.ID
}

// call calls Neutron as the cloud of that name and reads the answer.
func (c *cloud) call(t *testing.T, name, method, path, body string, answer any) {
	t.Helper()
	token, err := c.token(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := callNeutron(t.Context(), token, method, c.neutron+path, []byte(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		t.Fatal(err)
	}
}

// resource is a network or subnet in Neutron's words.
type resource map[string]any

// anyOrder compares lists of a resource, which Neutron gives in any order.
var anyOrder = cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })

// resources returns by id all that there are, of every project.
func (c *cloud) resources(t *testing.T) map[string]resource {
	t.Helper()
	all := map[string]resource{}
	for _, kind := range []string{"networks", "subnets"} {
		var answer map[string][]resource
		c.call(t, "admin", http.MethodGet, "/v2.0/"+kind, "", &answer)
		for _, r := range answer[kind] {
			all[r["id"].(string)] = r
		}
	}
	return all
}
