package admission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
)

func TestCheckConfigurationFile(t *testing.T) {
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
	for name, tc := range map[string]struct {
		content  string
		wantErrs []string
	}{
		"no plugins are fine":        {content: header},
		"a registered plugin passes": {content: header + "plugins:\n- name: A\n  configuration: {any: thing}\n- name: B\n"},
		"JSON is fine":               {content: `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AdmissionConfiguration","plugins":[{"name":"A"}]}`},
		"a path is relative to the file": {
			content: header + "plugins:\n- name: A\n  path: admission.yaml\n",
		},
		"a plugin nobody registered is refused": {
			content:  header + "plugins:\n- name: A\n- name: a\n",
			wantErrs: []string{`plugins[1].name: Unsupported value: "a": supported values: "A", "B"`},
		},
		"a plugin without a name is refused": {
			content:  header + "plugins:\n- path: admission.yaml\n",
			wantErrs: []string{`plugins[0].name: Unsupported value: ""`},
		},
		"a second entry of a plugin is refused": {
			content:  header + "plugins:\n- name: A\n- name: A\n",
			wantErrs: []string{`plugins[1].name: Duplicate value: "A"`},
		},
		"a path beside a configuration is refused": {
			content:  header + "plugins:\n- name: A\n  path: admission.yaml\n  configuration: {}\n",
			wantErrs: []string{`plugins[0].path: Invalid value: "admission.yaml": cannot be set with configuration`},
		},
		"a path that leads nowhere is refused": {
			content:  header + "plugins:\n- name: A\n  path: nowhere.yaml\n",
			wantErrs: []string{`plugins[0].path: Invalid value: "nowhere.yaml"`, "no such file"},
		},
		"all that is wrong is said at once": {
			content:  header + "plugins:\n- name: C\n- name: D\n",
			wantErrs: []string{`plugins[0].name: Unsupported value: "C"`, `plugins[1].name: Unsupported value: "D"`},
		},
		"an unknown field is refused": {
			content:  header + "plugin:\n- name: A\n",
			wantErrs: []string{`unknown field "plugin"`},
		},
		"a doubled field is refused": {
			content:  header + "plugins:\n- name: A\nplugins:\n- name: B\n",
			wantErrs: []string{`"plugins" already set`},
		},
		"another kind is refused": {
			content:  strings.Replace(header, "Admission", "Tracing", 1),
			wantErrs: []string{`apiVersion and kind must be "apiserver.config.k8s.io/v1" and "AdmissionConfiguration", not "apiserver.config.k8s.io/v1" and "TracingConfiguration"`},
		},
		"another version is refused": {
			content:  strings.Replace(header, "/v1", "/v2", 1),
			wantErrs: []string{`not "apiserver.config.k8s.io/v2" and "AdmissionConfiguration"`},
		},
		"an empty file is refused": {
			wantErrs: []string{`not "" and ""`},
		},
		"a file that is no YAML is refused": {
			content:  "\tno: [yaml",
			wantErrs: []string{"decoding the admission configuration"},
		},
		"a list is refused": {
			content:  "- apiVersion: v1\n",
			wantErrs: []string{"cannot unmarshal array"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "admission.yaml")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := admission.CheckConfigurationFile(path, []string{"A", "B"})
			if len(tc.wantErrs) == 0 {
				if err != nil {
					t.Fatalf("got error %v, want none", err)
				}
				return
			}
			for _, want := range append(tc.wantErrs, path) {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want one with %q", err, want)
				}
			}
		})
	}
}

func TestCheckConfigurationFileWithoutAReadableFile(t *testing.T) {
	if err := admission.CheckConfigurationFile("", nil); err != nil {
		t.Errorf("no file: got error %v, want none", err)
	}
	for name, path := range map[string]string{
		"a file that is not there": filepath.Join(t.TempDir(), "nowhere.yaml"),
		"a folder":                 t.TempDir(),
	} {
		if err := admission.CheckConfigurationFile(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got error %v, want one with %q", name, err, path)
		}
	}
}
