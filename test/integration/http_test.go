package integration

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
	mergePatch   = "application/merge-patch+json"
	jsonPatch    = "application/json-patch+json"
	applyPatch   = "application/apply-patch+yaml"
)

// apiVersions are all that are served.
var apiVersions = []string{"v1", "v2alpha1"}

// request is a request as it goes over the wire.
type request struct {
	method, path string
	header       map[string]string
	body         string
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes the request as the administrator.
func (s *server) send(t *testing.T, r request) answer {
	t.Helper()
	return s.sendAs(t, s.config, r)
}

// sendAs makes the request as somebody else.
func (s *server) sendAs(t *testing.T, config *rest.Config, r request) answer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, s.config.Host+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	response, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the answer: %v", r.method, r.path, err)
	}
	return answer{response.StatusCode, response.Header, body}
}

// get reads a path that must be there.
func (s *server) get(t *testing.T, path string, header map[string]string) answer {
	t.Helper()
	a := s.send(t, request{method: http.MethodGet, path: path, header: header})
	if a.status != http.StatusOK {
		t.Fatalf("GET %s: got HTTP %d: %s", path, a.status, a.body)
	}
	return a
}

// into decodes JSON.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("decoding %s: %v", a.body, err)
	}
}

// causes are the fields of a refusal, with what is wrong with each.
func (a answer) causes(t *testing.T) map[string]string {
	t.Helper()
	var status metav1.Status
	a.into(t, &status)
	causes := map[string]string{}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			causes[cause.Field] = cause.Message
		}
	}
	return causes
}

// warnings are the texts of the Warning headers.
func (a answer) warnings() []string {
	var texts []string
	for _, w := range a.header.Values("Warning") {
		text := strings.TrimSuffix(strings.TrimPrefix(w, `299 - "`), `"`)
		texts = append(texts, strings.ReplaceAll(text, `\"`, `"`))
	}
	return texts
}

// path is where the Networks are, in that version, or one of them.
func (n networks) path(version string, rest ...string) string {
	return "/apis/samplecrd.k8s.io/" + version + "/namespaces/" + namespaceOf(n.t) + "/networks" + strings.Join(append([]string{""}, rest...), "/")
}
