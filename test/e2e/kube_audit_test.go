//go:build kube

package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// serverAuditPolicy has every write recorded, that of the server's own controllers too.
const serverAuditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
	"rules": [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Metadata"}]}`

// auditLog is where a replica records what it is asked to write.
type auditLog struct{ path, policy string }

func newAuditLog(t *testing.T) auditLog {
	t.Helper()
	dir := t.TempDir()
	l := auditLog{path: filepath.Join(dir, "log"), policy: filepath.Join(dir, "policy.yaml")}
	if err := os.WriteFile(l.policy, []byte(serverAuditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l auditLog) flags() []string {
	return []string{"--audit-log-path=" + l.path, "--audit-policy-file=" + l.policy}
}

func (l auditLog) read(t *testing.T) (events []auditv1.Event) {
	t.Helper()
	file, err := os.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for decoder := json.NewDecoder(file); ; {
		var event auditv1.Event
		switch err := decoder.Decode(&event); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return events
		case err != nil:
			t.Fatal(err)
		}
		events = append(events, event)
	}
}
