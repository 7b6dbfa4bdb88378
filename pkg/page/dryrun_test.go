package page

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// network is as a person would write it: none of it may be lost on the way.
const network = `# mine
apiVersion: samplecrd.k8s.io/v1
kind: Network
metadata: {name: net}
spec:
  cidr:   "192.168.0.0/16"
  colour: red
`

// asked is a request that came to the API server.
type asked struct {
	Method, Path, ContentType, Body string
	Query                           url.Values
}

// recordingPage has an API server that gives one answer to all, and tells what
// it was asked.
func recordingPage(t *testing.T, code int, status string) (*Page, *[]asked, *[]string) {
	t.Helper()
	var got []asked
	var ids []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, asked{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(data), r.URL.Query()})
		ids = append(ids, r.Header.Get("Audit-ID"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, status)
	}))
	t.Cleanup(api.Close)
	p, err := New(Options{Config: &rest.Config{Host: api.URL}})
	return serve(t, p, err), &got, &ids
}

const created = `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network"}`

func TestDryRun(t *testing.T) {
	const networks = "/apis/samplecrd.k8s.io/v1/namespaces/default/networks"
	query := url.Values{"dryRun": {"All"}, "fieldManager": {"kubectl"}, "fieldValidation": {"Strict"}}
	elsewhere := strings.NewReplacer("{name: net}", "{name: net, namespace: team}", "/v1", "/v2alpha1").Replace(network)
	inJSON := `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":"net"}}`
	for name, tc := range map[string]struct {
		verb, media, body string
		want              asked
	}{
		"create": {"create", "application/yaml", network, asked{http.MethodPost, networks, "application/yaml", network, query}},
		"create in another namespace and version": {"create", "application/yaml", elsewhere,
			asked{http.MethodPost, "/apis/samplecrd.k8s.io/v2alpha1/namespaces/team/networks", "application/yaml", elsewhere, query}},
		"update":            {"update", "application/yaml", network, asked{http.MethodPut, networks + "/net", "application/yaml", network, query}},
		"apply":             {"apply", "application/yaml", network, asked{http.MethodPatch, networks + "/net", "application/apply-patch+yaml", network, query}},
		"create with marks": {"create", "application/yaml", "---\n" + network + "---\n\n", asked{http.MethodPost, networks, "application/yaml", "---\n" + network + "---\n\n", query}},
		"create of JSON":    {"create", "application/json; charset=utf-8", inJSON, asked{http.MethodPost, networks, "application/json", inJSON, query}},
		"apply of JSON":     {"apply", "application/json", inJSON, asked{http.MethodPatch, networks + "/net", "application/apply-patch+yaml", inJSON, query}},
	} {
		t.Run(name, func(t *testing.T) {
			p, got, ids := recordingPage(t, http.StatusCreated, created)
			response, text := ask(t, p.URL()+"dryrun?verb="+tc.verb, body(p, tc.body, tc.media))
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %s: %s", response.Status, text)
			}
			if diff := cmp.Diff([]asked{tc.want}, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var answer sent
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sent{Trace: (*ids)[0], Code: http.StatusCreated}, answer); diff != "" || answer.Trace == "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestADryRunThatIsRefusedHasATraceToo(t *testing.T) {
	p, _, ids := recordingPage(t, http.StatusUnprocessableEntity,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"spec.colour: unknown field","reason":"Invalid","code":422}`)
	response, text := ask(t, p.URL()+"dryrun?verb=create", body(p, network, "application/yaml"))
	var answer sent
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	want := sent{Trace: (*ids)[0], Code: http.StatusUnprocessableEntity, Message: "spec.colour: unknown field"}
	if diff := cmp.Diff(want, answer); diff != "" || response.StatusCode != http.StatusOK {
		t.Errorf("got %s, -want +got:\n%s", response.Status, diff)
	}
}

func TestWhatIsNotSentOn(t *testing.T) {
	for name, tc := range map[string]struct {
		verb, media, body string
		want              int
	}{
		"a form":                       {"create", "application/x-www-form-urlencoded", network, http.StatusUnsupportedMediaType},
		"plain text":                   {"create", "text/plain", network, http.StatusUnsupportedMediaType},
		"a body of no type":            {"create", "", network, http.StatusUnsupportedMediaType},
		"a body that is too large":     {"create", "application/yaml", network + strings.Repeat("#", 64<<10), http.StatusRequestEntityTooLarge},
		"what is no YAML":              {"create", "application/yaml", "a: b: c", http.StatusBadRequest},
		"nothing":                      {"create", "application/yaml", "", http.StatusBadRequest},
		"a Secret":                     {"create", "application/yaml", "apiVersion: v1\nkind: Secret\n", http.StatusBadRequest},
		"two of them":                  {"create", "application/yaml", network + "---\n" + network, http.StatusBadRequest},
		"another kind of the group":    {"create", "application/yaml", strings.Replace(network, "kind: Network", "kind: NetworkList", 1), http.StatusBadRequest},
		"an unknown version":           {"create", "application/yaml", strings.Replace(network, "/v1", "/v3", 1), http.StatusBadRequest},
		"another verb":                 {"delete", "application/yaml", network, http.StatusBadRequest},
		"no verb":                      {"", "application/yaml", network, http.StatusBadRequest},
		"an update of nothing by name": {"update", "application/yaml", strings.Replace(network, "name: net", "", 1), http.StatusBadRequest},
		"a name that is a path":        {"update", "application/yaml", strings.Replace(network, "name: net", "name: net/status", 1), http.StatusBadRequest},
		"a namespace that is a path":   {"create", "application/yaml", strings.Replace(network, "name: net", "name: net, namespace: ../..", 1), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			p, got, _ := recordingPage(t, http.StatusCreated, created)
			response, text := ask(t, p.URL()+"dryrun?verb="+tc.verb, body(p, tc.body, tc.media))
			if response.StatusCode != tc.want || len(*got) > 0 {
				t.Errorf("got %s: %s, and %v was sent on, want %d and nothing", response.Status, text, *got, tc.want)
			}
			if !strings.Contains(text, "message") {
				t.Errorf("got %q, want it to say why", text)
			}
		})
	}
}

func TestABodyOfTheLargestSizeIsSentOn(t *testing.T) {
	p, got, _ := recordingPage(t, http.StatusCreated, created)
	largest := network + strings.Repeat("#", 64<<10-len(network))
	if response, text := ask(t, p.URL()+"dryrun?verb=create", body(p, largest, "application/yaml")); response.StatusCode != http.StatusOK || (*got)[0].Body != largest {
		t.Errorf("got %s: %s", response.Status, text)
	}
}
