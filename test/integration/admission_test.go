package integration

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// admissionFile configures one plugin.
func admissionFile(t *testing.T, plugin, configuration string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admission.yaml")
	writeFile(t, path, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: `+plugin+`
  configuration:
    apiVersion: cidrpolicy.admission.samplecrd.k8s.io/v1
    kind: CIDRPolicyConfiguration
`+configuration)
	return path
}

func TestCIDRPolicySpeaksInTheFieldsOfTheClient(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		configuration string
		wantStatus    int
		wantWarning   bool
		wantText      string // behind the path of the field
	}{
		"a reserved range": {
			configuration: "    reserved: [10.1.0.0/16]",
			wantStatus:    http.StatusForbidden, wantText: "must not overlap the reserved range 10.1.0.0/16",
		},
		"a range that is not allowed": {
			configuration: "    allowed: [192.168.0.0/16, 10.0.0.0/16]",
			wantStatus:    http.StatusForbidden, wantText: "must lie inside an allowed range: 192.168.0.0/16, 10.0.0.0/16",
		},
		"an overlap that is denied": {
			configuration: "    overlap: Deny",
			wantStatus:    http.StatusForbidden, wantText: `must not overlap 10.1.0.0/16 of Network "other"`,
		},
		"an overlap that is warned of": {
			configuration: "    overlap: Warn",
			wantStatus:    http.StatusCreated, wantWarning: true, wantText: `"10.1.2.0/24" overlaps 10.1.0.0/16 of Network "other"`,
		},
		"an overlap that is allowed": {
			configuration: "    overlap: Allow",
			wantStatus:    http.StatusCreated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "--admission-control-config-file", admissionFile(t, "CIDRPolicy", tc.configuration))
			n := s.networks(t)
			specs := map[string]string{
				"v1":       `{"cidr":"10.0.0.0/24","additionalSubnets":[{"cidr":"10.1.2.0/24"}]}`,
				"v2alpha1": `{"subnets":[{"cidr":"10.0.0.0/24"},{"cidr":"10.1.2.0/24"}]}`,
			}
			paths := map[string]string{"v1": "spec.additionalSubnets[0].cidr", "v2alpha1": "spec.subnets[1].cidr"}
			if strings.Contains(tc.configuration, "overlap") {
				n.create(newNetwork("other", func(n *samplecrdv1.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/16", "" }))
				n.awaitReady("other") // so the plugin, which reads the controller's cache, knows of it
			}
			for version, spec := range specs {
				create := func() answer {
					return s.send(t, request{
						method: http.MethodPost, path: n.path(version) + "?dryRun=All", header: map[string]string{"Content-Type": jsonType},
						body: `{"apiVersion":"samplecrd.k8s.io/` + version + `","kind":"Network","metadata":{"name":"new"},"spec":` + spec + `}`,
					})
				}
				got := create()
				if got.status != tc.wantStatus {
					t.Errorf("%s: got HTTP %d %s, want HTTP %d", version, got.status, got.body, tc.wantStatus)
				}
				want := paths[version] + ": "
				switch {
				case tc.wantWarning:
					if diff := cmp.Diff([]string{want + tc.wantText}, got.warnings()); diff != "" {
						t.Errorf("%s: warnings (-want +got):\n%s", version, diff)
					}
				case tc.wantText != "":
					want += `Invalid value: "10.1.2.0/24": ` + tc.wantText
					var status struct{ Message string }
					if got.into(t, &status); !strings.Contains(status.Message, want) {
						t.Errorf("%s: got message %q, want one with %q", version, status.Message, want)
					}
				default:
					if w := got.warnings(); len(w) > 0 {
						t.Errorf("%s: got warnings %q, want none", version, w)
					}
				}
			}
		})
	}
}

// A policy that comes later locks nothing in.
func TestCIDRPolicyLeavesAloneWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.networks(t).create(newNetwork("old"))
	s.networks(t).awaitReady("old")
	s = s.restart(t, "--admission-control-config-file", admissionFile(t, "CIDRPolicy", "    reserved: [192.168.0.0/16]\n    overlap: Deny"))
	n := s.networks(t)
	n.edit("old", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)) })
	n.awaitReady("old")
	n.delete("old")
	n.awaitGone("old")
}

func TestAdmissionConfigurationThatStopsTheStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		plugin, configuration string
		wantText              string
	}{
		"a plugin that nobody knows": {plugin: "CIDRPolice", wantText: `plugins[0].name: Unsupported value: "CIDRPolice"`},
		"a field that nobody knows":  {plugin: "CIDRPolicy", configuration: "    reserve: []", wantText: `unknown field "reserve"`},
		"a word that is no choice":   {plugin: "CIDRPolicy", configuration: "    overlap: Maybe", wantText: "overlap: Unsupported value"},
		"a range that is none":       {plugin: "CIDRPolicy", configuration: "    reserved: [here]", wantText: "reserved[0]: Invalid value"},
		"a range that has host bits": {plugin: "CIDRPolicy", configuration: "    allowed: [10.0.0.1/8]", wantText: "allowed[0]: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, err := startServer(t.Context(), dir, "--admission-control-config-file", admissionFile(t, tc.plugin, tc.configuration))
			if err == nil {
				t.Fatalf("the server started: %v", s.stop())
			}
			if !strings.Contains(err.Error(), tc.wantText) {
				t.Errorf("got error %v, want one with %q", err, tc.wantText)
			}
		})
	}
}
