package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/samplecrd/network-apiserver/cmd/network-apiserver/app"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// The metrics are those of the process, and once a server has ended they wait
// for its etcd: hence not in parallel, but before all others.
func TestWhatAnOperatorLooksAt(t *testing.T) {
	n := shared.networks(t)
	n.create(newNetwork("one"))
	n.awaitReady("one")
	for path, wantTexts := range map[string][]string{
		"/livez":          {"ok"},
		"/readyz":         {"ok"},
		"/livez?verbose":  {"[+]etcd ok", "[+]poststarthook/start-controllers ok"},
		"/readyz?verbose": {"[+]etcd-readiness ok", "[+]poststarthook/start-network-informers ok", "[+]shutdown ok"},
		"/readyz/etcd":    {"ok"},
		"/version":        {`"gitVersion"`, `"goVersion"`},
		"/metrics": {
			`apiserver_request_total{code="201",component="apiserver",dry_run="",group="samplecrd.k8s.io",resource="networks",scope="resource",subresource="",verb="POST",version="v1"}`,
			`workqueue_depth{name="networks"}`,
			`workqueue_adds_total{name="networks"}`,
			`etcd_request_duration_seconds_count{`,
			`process_resident_memory_bytes`,
		},
	} {
		body := string(shared.get(t, path, nil).body)
		for _, want := range wantTexts {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got no %q in %.600s", path, want, body)
			}
		}
	}
}

func TestAuditTellsWhoWroteWhat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	writeFile(t, policy, `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
  users: [admin]
  resources:
  - group: samplecrd.k8s.io
  omitStages: [RequestReceived]
- level: None
`)
	s := newServer(t, "--audit-policy-file", policy, "--audit-log-path", log)
	n := s.networks(t)
	n.create(newNetwork("audited"))
	n.awaitReady("audited")
	n.edit("audited", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)) })
	n.delete("audited")
	n.awaitGone("audited")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string]auditv1.Event{}
	for line := range strings.Lines(string(content)) {
		var event auditv1.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("decoding %s: %v", line, err)
		}
		if event.User.Username != "admin" || event.ObjectRef.APIGroup != "samplecrd.k8s.io" {
			t.Errorf("got an event of %s about the group %q, want only what the policy names", event.User.Username, event.ObjectRef.APIGroup)
		}
		verbs[event.Verb] = event
	}
	for _, verb := range []string{"create", "get", "update", "delete"} {
		event, ok := verbs[verb]
		if !ok {
			t.Errorf("got no event of verb %s in %s", verb, content)
			continue
		}
		if event.ObjectRef.Namespace != namespaceOf(t) || event.ObjectRef.APIVersion != "v1" || event.ResponseObject == nil {
			t.Errorf("%s: got %+v, want the namespace, the version and the answer", verb, event.ObjectRef)
		}
	}
}

func TestFlagsOfOtherServersAreKnown(t *testing.T) {
	t.Parallel()
	starting.Lock()
	defer starting.Unlock()
	flags := app.NewCommand().Flags()
	for _, name := range []string{
		"request-timeout", "min-request-timeout", "max-requests-inflight", "shutdown-delay-duration", "goaway-chance",
		"audit-policy-file", "audit-log-path", "admission-control-config-file", "enable-admission-plugins", "disable-admission-plugins",
		"runtime-config", "tls-cert-file", "tls-private-key-file", "tls-min-version", "tls-cipher-suites", "bind-address", "secure-port",
		"feature-gates", "profiling", "tracing-config-file", "v", "logging-format", "version",
	} {
		if flags.Lookup(name) == nil {
			t.Errorf("got no flag --%s", name)
		}
	}
}

func TestTheTimeoutOfRequestsHolds(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--request-timeout", "1ns")
	if got := s.send(t, request{method: http.MethodGet, path: s.networks(t).path("v1")}); got.status != http.StatusGatewayTimeout {
		t.Errorf("got HTTP %d %s, want 504", got.status, got.body)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
