// Package contract holds what we know of Neutron's networking API, as scripts that every Neutron must pass: the simulator and a real
// one. Where they differ the simulator is wrong, or the script names the difference.
package contract

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

// The databases that Neutron runs on here, which compare text in different ways. The simulator compares as SQLite does.
var databases = []string{"sqlite", "mariadb"}

// TestScripts runs all scripts against the Neutron at NEUTRON_URL, which has NEUTRON_DATABASE below it, and takes identities that
// tokens state; hack/neutron/neutron.sh starts such a one. Without NEUTRON_URL it is the simulator.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	url, database := server(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newScript(url, database)
			for title, lines := range cases(string(text)) {
				t.Run(title, func(t *testing.T) { s.run(t, lines) })
			}
			t.Logf("%d exchanges", s.exchanges)
		})
	}
}

func server(t *testing.T) (url, database string) {
	t.Helper()
	if url = os.Getenv("NEUTRON_URL"); url != "" {
		database = os.Getenv("NEUTRON_DATABASE")
		if !slices.Contains(databases, database) {
			t.Fatalf("NEUTRON_DATABASE is %q, must be one of %q", database, databases)
		}
		return url, database
	}
	neutron, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(neutron)
	t.Cleanup(func() {
		listener.Close()
		if err := neutron.Close(); err != nil {
			t.Error(err)
		}
	})
	return listener.URL, databases[0]
}
