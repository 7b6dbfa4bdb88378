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
// networks in a real OpenStack: the one that hack/neutron started, of which
// OS_CLIENT_CONFIG_FILE and NEUTRON_URL tell.
func TestCloud(t *testing.T) {
	configFile, neutronURL := os.Getenv("OS_CLIENT_CONFIG_FILE"), os.Getenv("NEUTRON_URL")
	if configFile == "" || neutronURL == "" {
		t.Fatal("OS_CLIENT_CONFIG_FILE and NEUTRON_URL must be set: source DIR/env of hack/neutron")
	}
	runScripts(t, "testdata/cloud", func(t testing.TB) run {
		s := startWith(t, []string{"OS_CLIENT_CONFIG_FILE=" + configFile}, dataDir(t), "--cluster-id", "e2e", "--os-cloud", osCloud)
		return run{t: t, server: s, neutron: neutronURL, token: newToken}
	})
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
