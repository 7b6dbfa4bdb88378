// Package e2e drives the programs themselves: network-apiserver in standalone
// mode, and a kubectl built from source.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// kubeVersion is the one that the Makefile gives to what it builds: kubectl
// can't compare itself with a server that has none.
const kubeVersion = "v1.37.2"

// serverFlags are those of the build of the server.
var serverFlags []string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// built is a folder that has the programs already.
var built string

// buildAndRun puts the programs first in PATH.
func buildAndRun(m *testing.M) (int, error) {
	if built != "" {
		return runWith(m, built)
	}
	programs, err := os.MkdirTemp("", "e2e-programs")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(programs)
	if err := build(programs, "../..", "./cmd/...", "+network-apiserver.e2e", serverFlags...); err != nil {
		return 0, err
	}
	if err := build(programs, "../../hack/kube", "k8s.io/kubernetes/cmd/kubectl", ""); err != nil {
		return 0, err
	}
	return runWith(m, programs)
}

func runWith(m *testing.M, programs string) (int, error) {
	if err := os.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// build puts a program into the folder, from the module it belongs to.
func build(folder, module, target, suffix string, flags ...string) error {
	const version = "k8s.io/component-base/version."
	ldflags := fmt.Sprintf("-X %[1]sgitVersion=%[2]s%[3]s -X %[1]sgitMajor=1 -X %[1]sgitMinor=37", version, kubeVersion, suffix)
	flags = append([]string{"build", "-ldflags", ldflags, "-o", folder + string(filepath.Separator)}, flags...)
	command := exec.CommandContext(context.Background(), "go", append(flags, target)...) //nolint:forbidigo // TestMain has no test to end with
	command.Dir = module
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", target, module, err, output)
	}
	return nil
}
