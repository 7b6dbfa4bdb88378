//go:build openstack

package e2e

import (
	"os"
	"regexp"
	"testing"
)

// newCloud returns the real one that hack/neutron started.
func newCloud(t testing.TB) *cloud {
	t.Helper()
	c := &cloud{configFile: setting(t, "OS_CLIENT_CONFIG_FILE"), neutron: setting(t, "NEUTRON_URL"), networks: 20}
	if setting(t, "NEUTRON_DATABASE") == "sqlite" {
		c.networks = 5 // it takes one request at a time
	}
	return c
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

// TestReader does as TestCloud with what the simulator does not know: policies
// that keep the role reader from writing.
func TestReader(t *testing.T) { newCloud(t).runScripts(t, "testdata/reader") }

// recipes are what docs/backup.md tells to do.
var recipes = regexp.MustCompile("(?s)\n```sh\n(.*?)```\n")

// backUp follows the first recipe and restore the second.
func backUp(t *testing.T, s *server, dir string) (restore func(*server)) {
	t.Helper()
	page, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	found, folder := recipes.FindAllStringSubmatch(string(page), -1), t.TempDir()
	if len(found) != 2 {
		t.Fatalf("docs/backup.md has %d recipes, want 2", len(found))
	}
	follow := func(s *server, recipe string) {
		t.Helper()
		command := s.command(t.Context(), folder, "bash", "-euo", "pipefail", "-c", recipe)
		command.Env = append(command.Env, "PATH="+os.Getenv("PATH"), "DATA_DIR="+dir)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s\nends with: %v\n%s", recipe, err, output)
		}
	}
	follow(s, found[0][1])
	return func(s *server) { t.Helper(); follow(s, found[1][1]) }
}
