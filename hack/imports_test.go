// Package hack holds what generates and checks the code.
package hack

import (
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/samplecrd/network-apiserver/"

	hub      = "pkg/apis/samplecrd"
	versions = "pkg/apis/samplecrd/v1 pkg/apis/samplecrd/v2alpha1"
	traces   = "pkg/apis/pipeline/v1alpha1"
	client   = versions + " " + traces + " pkg/generated/..."
)

// layers tells what of this module a package may import. A folder that ends in
// /... stands for itself and all below it; the first row that fits decides.
var layers = []struct {
	folder, may, why string
}{
	// Shared ground.
	{"pkg/apis/samplecrd", "", "the hub is below all versions"},
	{"pkg/apis/samplecrd/v1", hub, "a version converts to the hub and knows no other version"},
	{"pkg/apis/samplecrd/v2alpha1", hub, "a version converts to the hub and knows no other version"},
	{"pkg/apis/pipeline/v1alpha1", "", "traces are told in words, not in types of what is traced"},
	{"pkg/pipeline", "", "what watches both halves belongs to neither"},
	{"pkg/generated/...", client, "clients are made of the versioned types alone"},

	// The server half.
	{"pkg/apis/samplecrd/install", hub + " " + versions, "it adds the hub and the versions to a scheme"},
	{"pkg/apis/samplecrd/...", hub, "rules for objects know the hub alone"},
	{"pkg/registry/requesttrace", traces + " pkg/pipeline", "it shows what the recorder has"},
	{"pkg/registry/...", "pkg/apis/...", "storage needs nothing but the types and their rules"},
	{"pkg/apiserver/admission/...", "pkg/apis/... pkg/generated/... pkg/apiserver/admission", "a plugin judges objects, and sees others through informers"},
	{"pkg/registration", "", "it is told the versions, and knows nothing of what is served"},
	{"pkg/apiserver", "pkg/apis/... pkg/registry/... pkg/pipeline", "the server installs storage, and builds without controller and Neutron"},

	// The controller half.
	{"pkg/neutron", "", "the client is of use without this API"},
	{"pkg/neutron/simulator", "", "a simulator with our code in it would have our mistakes too"},
	{"pkg/controller/...", client + " pkg/neutron pkg/pipeline pkg/controller/...", "the controller meets the server over HTTP only, and builds without it"},

	// What is shown to people.
	{"pkg/page", client, "it is a client like any other"},

	// The programs, and what they stand on.
	{"pkg/standalone", "", "etcd, certificates and locks know nothing of what is served"},
	{"cmd/network-apiserver", "cmd/network-apiserver/app", "main only starts and exits"},
	{"cmd/network-apiserver/app", "pkg/...", "here alone the halves meet"},
	{"cmd/network-controller/...", client + " pkg/neutron pkg/pipeline pkg/controller/... cmd/network-controller/...", "the controller runs without the server"},
	{"cmd/kubectl-pipeline/...", traces + " pkg/generated/... pkg/page cmd/kubectl-pipeline/...", "it is a client like any other"},
	{"cmd/neutron-simulator", "pkg/neutron/simulator", "it is the simulator and nothing else"},
}

// borders tells which folders may import what others have written.
var borders = []struct {
	imports   string
	only, not string
	why       string
}{
	{imports: "github.com/gophercloud/...", only: "pkg/neutron", why: "all else speaks in the plain types of pkg/neutron"},
	{imports: "k8s.io/...", not: "pkg/neutron/...", why: "Neutron knows nothing of Kubernetes"},
	{imports: "sigs.k8s.io/...", not: "pkg/neutron/...", why: "Neutron knows nothing of Kubernetes"},
	{imports: "sigs.k8s.io/controller-runtime/...", not: "...", why: "a framework would hide the loop that is to be seen"},
}

// TestImports reads the packages itself: of what "go list" reads, go test would
// not know that it makes a cached result old.
func TestImports(t *testing.T) {
	seen := 0
	for _, root := range []string{"cmd", "pkg", "test"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			folder, err := filepath.Rel("..", path)
			if err != nil {
				return err
			}
			pkg, err := build.ImportDir(path, 0)
			if _, empty := errors.AsType[*build.NoGoError](err); empty {
				return nil
			}
			for _, imported := range pkg.Imports {
				seen++
				if broken := brokenRule(filepath.ToSlash(folder), imported); broken != "" {
					t.Error(broken)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if seen == 0 {
		t.Error("no import was looked at")
	}
}

// brokenRule tells why the package in folder may not import another; empty
// where it may.
func brokenRule(folder, imported string) string {
	broken := folder + " must not import "
	own, isOwn := strings.CutPrefix(imported, module)
	if !isOwn {
		for _, border := range borders {
			if fits(border.imports, imported) && (border.only != "" && !fits(border.only, folder) || fits(border.not, folder)) {
				return broken + imported + ": " + border.why
			}
		}
		return ""
	}
	for _, layer := range layers {
		if !fits(layer.folder, folder) {
			continue
		}
		if slices.ContainsFunc(strings.Fields(layer.may), func(may string) bool { return fits(may, own) }) {
			return ""
		}
		return fmt.Sprintf("%s%s: %s (of this module it may import: %q)", broken, own, layer.why, layer.may)
	}
	return broken + own + ": it has no row in layers"
}

func fits(pattern, path string) bool {
	tree, isTree := strings.CutSuffix(pattern, "...")
	return path == pattern || isTree && strings.HasPrefix(path+"/", tree)
}

func TestBrokenRule(t *testing.T) {
	for name, tc := range map[string]struct {
		folder, imported string
		want             string
	}{
		"a controller may use the client":             {"pkg/controller/network", module + "pkg/generated/clientset/versioned", ""},
		"a controller may use the versioned types":    {"pkg/controller/network", module + "pkg/apis/samplecrd/v1", ""},
		"a controller may not use the hub":            {"pkg/controller/network", module + "pkg/apis/samplecrd", "builds without it"},
		"a controller may not use the simulator":      {"pkg/controller/network", module + "pkg/neutron/simulator", "over HTTP"},
		"a plugin may not call Neutron":               {"pkg/apiserver/admission/cidrpolicy", module + "pkg/neutron", "through informers"},
		"storage may not use the server":              {"pkg/registry/network", module + "pkg/apiserver", "storage needs"},
		"the command joins the halves":                {"cmd/network-apiserver/app", module + "pkg/controller/network", ""},
		"a name that begins alike is another package": {"pkg/apis/samplecrd/v1", module + "pkg/apis/samplecrdx", "knows no other"},
		"a new folder asks for a rule":                {"pkg/util", module + "pkg/neutron", "no row"},
		"the simulator is free of Kubernetes":         {"pkg/neutron/simulator", "k8s.io/klog/v2", "nothing of Kubernetes"},
		"gophercloud stops at the client":             {"pkg/controller/network", "github.com/gophercloud/gophercloud/v2", "plain types"},
		"the client is made of gophercloud":           {"pkg/neutron", "github.com/gophercloud/gophercloud/v2", ""},
		"the standard library is free to all":         {"pkg/neutron", "net/http", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := brokenRule(tc.folder, tc.imported)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want a message with %q", got, tc.want)
			}
		})
	}
}
