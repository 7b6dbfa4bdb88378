package cidrpolicy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"

	networkadmission "github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/cidrpolicy"
)

const header = "apiVersion: cidrpolicy.admission.samplecrd.k8s.io/v1\nkind: CIDRPolicyConfiguration\n"

// writeFile writes an admission configuration with the policy inline and
// returns its path. An empty policy writes a plugin without configuration.
func writeFile(t *testing.T, policy string) string {
	t.Helper()
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: CIDRPolicy\n"
	if policy != "" {
		content += "  configuration:\n    " + strings.ReplaceAll(strings.TrimSuffix(policy, "\n"), "\n", "\n    ") + "\n"
	}
	path := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load makes the plugin of a file as the server does.
func load(path string, initializer admission.PluginInitializer) (admission.ValidationInterface, error) {
	plugins := admission.NewPlugins()
	cidrpolicy.Register(plugins)
	if err := networkadmission.CheckConfigurationFile(path, plugins.Registered()); err != nil {
		return nil, err
	}
	names := []string{cidrpolicy.PluginName}
	scheme := runtime.NewScheme()
	apiserverinstall.Install(scheme)
	config, err := admission.ReadAdmissionConfiguration(names, path, scheme)
	if err != nil {
		return nil, err
	}
	chain, err := plugins.NewFromPlugins(names, config, initializer, nil)
	if err != nil {
		return nil, err
	}
	validator, ok := chain.(admission.ValidationInterface)
	if !ok {
		return nil, errors.New("the chain does not validate")
	}
	return validator, nil
}

func TestConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  string
		wantErr string
	}{
		"no configuration is a configuration": {},
		"a header alone is enough":            {policy: header},
		"all fields are understood": {
			policy: header + "allowed: [10.0.0.0/8, \"fd00::/8\"]\nreserved: [10.96.0.0/12]\noverlap: Allow",
		},
		"an empty configuration has no kind": {
			policy:  "{}",
			wantErr: `apiVersion and kind must be "cidrpolicy.admission.samplecrd.k8s.io/v1" and "CIDRPolicyConfiguration", not "" and ""`,
		},
		"another version is refused": {
			policy:  strings.Replace(header, "/v1", "/v9", 1),
			wantErr: `not "cidrpolicy.admission.samplecrd.k8s.io/v9" and "CIDRPolicyConfiguration"`,
		},
		"another kind is refused": {
			policy:  strings.Replace(header, "CIDRPolicyConfiguration", "CIDRPolicy", 1),
			wantErr: `not "cidrpolicy.admission.samplecrd.k8s.io/v1" and "CIDRPolicy"`,
		},
		"an unknown field is refused": {
			policy:  header + "denied: [10.0.0.0/8]",
			wantErr: `unknown field "denied"`,
		},
		"a field in another case is refused": {
			policy:  header + "Allowed: [10.0.0.0/8]",
			wantErr: `unknown field "Allowed"`,
		},
		"a range in place of a list is refused": {
			policy:  header + "allowed: 10.0.0.0/8",
			wantErr: "cannot unmarshal string into Go struct field Configuration.allowed",
		},
		"what is not a CIDR is refused": {
			policy:  header + "allowed: [10.0.0.0/8, everything]",
			wantErr: `allowed[1]: Invalid value: "everything": must be a valid CIDR value`,
		},
		"host bits are refused": {
			policy:  header + "reserved: [10.96.0.1/12]",
			wantErr: `reserved[0]: Invalid value: "10.96.0.1/12": must not have bits set beyond the prefix length`,
		},
		"an IPv4 range written as IPv6 is refused": {
			policy:  header + "reserved: [\"::ffff:10.0.0.0/104\"]",
			wantErr: `reserved[0]: Invalid value: "::ffff:10.0.0.0/104"`,
		},
		"a range in a form that is not canonical is refused": {
			policy:  header + "allowed: [\"FD00::/8\"]",
			wantErr: `allowed[0]: Invalid value: "FD00::/8": must be in canonical form ("fd00::/8")`,
		},
		"another word for overlap is refused": {
			policy:  header + "overlap: deny",
			wantErr: `overlap: Unsupported value: "deny": supported values: "Allow", "Warn", "Deny"`,
		},
		"overlap needs the other Networks": {
			policy:  header + "overlap: Warn",
			wantErr: "overlap Warn needs informers of Networks, which read samplecrd.k8s.io/v1: that version must be served",
		},
		"all that is wrong is said at once": {
			policy: header + "allowed: [a]\nreserved: [b]\noverlap: c",
			wantErr: `checking the CIDRPolicyConfiguration: [allowed[0]: Invalid value: "a": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64), ` +
				`reserved[0]: Invalid value: "b": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64), ` +
				`overlap: Unsupported value: "c": supported values: "Allow", "Warn", "Deny"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(writeFile(t, tc.policy), admission.PluginInitializers{})
			if tc.wantErr == "" {
				if err != nil {
					t.Fatalf("load: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("load: got error %v, want one with %q", err, tc.wantErr)
			}
		})
	}
}

func TestConfigurationInAFileOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policy.yaml", header+"reserved: [10.0.0.0/8]")
	write("admission.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: CIDRPolicy\n  path: policy.yaml\n")
	validator, err := load(filepath.Join(dir, "admission.yaml"), admission.PluginInitializers{})
	if err != nil {
		t.Fatal(err)
	}
	want := `networks.samplecrd.k8s.io "web" is forbidden: spec.cidr: Invalid value: "10.1.0.0/24": must not overlap the reserved range 10.0.0.0/8`
	if diff := cmp.Diff(want, message(validator.Validate(t.Context(), create(network("10.1.0.0/24")), nil))); diff != "" {
		t.Errorf("Validate (-want +got):\n%s", diff)
	}
}

func TestExample(t *testing.T) {
	validator, _ := start(t, "../../../../artifacts/example/admission-configuration.yaml", other("db", "10.5.0.0/16"))
	for cidr, want := range map[string]string{
		"192.168.1.0/16": "",
		"10.5.6.0/24":    `networks.samplecrd.k8s.io "web" is forbidden: spec.cidr: Invalid value: "10.5.6.0/24": must not overlap 10.5.0.0/16 of Network "db"`,
		"10.97.0.0/16":   `networks.samplecrd.k8s.io "web" is forbidden: spec.cidr: Invalid value: "10.97.0.0/16": must not overlap the reserved range 10.96.0.0/12`,
	} {
		if diff := cmp.Diff(want, message(validator.Validate(t.Context(), create(network(cidr)), nil))); diff != "" {
			t.Errorf("Validate %s (-want +got):\n%s", cidr, diff)
		}
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add(header + "allowed: [10.0.0.0/8]")
	f.Add(header + "reserved: [\"fd00::/08\", 0.0.0.0/0]")
	f.Fuzz(func(_ *testing.T, policy string) {
		plugins := admission.NewPlugins()
		cidrpolicy.Register(plugins)
		// Any answer will do but a panic.
		_, _ = plugins.InitPlugin(cidrpolicy.PluginName, strings.NewReader(policy), admission.PluginInitializers{})
	})
}
