//go:build openstack

package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
)

// The cloud of hack/neutron in which the networks are made, and a part of the
// owner marker: what an earlier run left there is not this one's.
const osCloud = "demo"

// TestCloud runs each file of testdata/cloud against a server that makes its
// networks in a real OpenStack.
func TestCloud(t *testing.T) {
	neutronURL := setting(t, "NEUTRON_URL")
	runScripts(t, "testdata/cloud", func(t testing.TB) run {
		return run{t: t, server: startInCloud(t), neutron: neutronURL, token: newToken}
	})
}

// startInCloud runs a server that makes its networks in the OpenStack that
// hack/neutron started.
func startInCloud(t testing.TB) *server {
	t.Helper()
	const configFile = "OS_CLIENT_CONFIG_FILE"
	return startWith(t, []string{configFile + "=" + setting(t, configFile)}, dataDir(t), "--cluster-id", "e2e", "--os-cloud", osCloud)
}

// setting returns what hack/neutron says of the servers it started.
func setting(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: source DIR/env of hack/neutron", name)
	}
	return value
}

// newToken asks for a token a call: those of the tests live for seconds.
func newToken(ctx context.Context) (string, error) {
	auth, _, _, err := clouds.Parse(clouds.WithCloudName(osCloud))
	if err != nil {
		return "", err
	}
	provider, err := openstack.AuthenticatedClient(ctx, auth)
	if err != nil {
		return "", err
	}
	return provider.Token(), nil
}
