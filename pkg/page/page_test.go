package page

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
)

// serve returns a page that is served until the test ends.
func serve(t *testing.T, p *Page, err error) *Page {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return p
}

// fakePage knows the traces of a fake API server.
func fakePage(t *testing.T, traces ...*pipelinev1alpha1.RequestTrace) (*Page, *fake.Clientset) {
	t.Helper()
	clients := fake.NewClientset()
	for _, trace := range traces {
		if err := clients.Tracker().Add(trace); err != nil {
			t.Fatal(err)
		}
	}
	p, err := newPage(clients)
	return serve(t, p, err), clients
}

type requestTweak func(*http.Request)

func header(name, value string) requestTweak {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func method(method string) requestTweak { return func(r *http.Request) { r.Method = method } }

func host(host string) requestTweak { return func(r *http.Request) { r.Host = host } }

// body is what the page itself would send.
func body(p *Page, content, media string) requestTweak {
	return func(r *http.Request) {
		r.Method = http.MethodPost
		r.Body = io.NopCloser(strings.NewReader(content))
		r.ContentLength = int64(len(content))
		r.Header.Set("Content-Type", media)
		r.Header.Set("Origin", "http://"+p.host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
}

// ask returns the answer, its body read to the end.
func ask(t *testing.T, url string, tweaks ...requestTweak) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, tweak := range tweaks {
		tweak(request)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func TestWhoGetsIn(t *testing.T) {
	p, _ := fakePage(t)
	base := "http://" + p.host
	own := body(p, network, "application/yaml")
	for name, tc := range map[string]struct {
		path   string
		tweaks []requestTweak
		want   int
	}{
		"the page with its token":                       {"/" + p.token + "/", nil, http.StatusOK},
		"under the name of localhost":                   {"/" + p.token + "/", []requestTweak{host("localhost:" + p.port)}, http.StatusOK},
		"a module":                                      {"/" + p.token + "/app.js", nil, http.StatusOK},
		"a file that is not there":                      {"/" + p.token + "/app.ts", nil, http.StatusNotFound},
		"no token":                                      {"/", nil, http.StatusNotFound},
		"no token before a file":                        {"/app.js", nil, http.StatusNotFound},
		"no token before the events":                    {"/events", nil, http.StatusNotFound},
		"a wrong token":                                 {"/" + strings.ToLower(p.token) + "/", nil, http.StatusNotFound},
		"the beginning of a token":                      {"/" + p.token[:10] + "/", nil, http.StatusNotFound},
		"a longer token":                                {"/" + p.token + "A/", nil, http.StatusNotFound},
		"a name that was bound to our address":          {"/" + p.token + "/", []requestTweak{host("evil.example:" + p.port)}, http.StatusForbidden},
		"another port":                                  {"/" + p.token + "/", []requestTweak{host("localhost:1")}, http.StatusForbidden},
		"no port":                                       {"/" + p.token + "/", []requestTweak{host("127.0.0.1")}, http.StatusForbidden},
		"a wrong host without a token":                  {"/", []requestTweak{host("evil.example")}, http.StatusForbidden},
		"a dry run of another site":                     {"/" + p.token + "/dryrun?verb=create", []requestTweak{own, header("Origin", "http://evil.example")}, http.StatusForbidden},
		"a dry run of another port":                     {"/" + p.token + "/dryrun?verb=create", []requestTweak{own, header("Origin", "http://127.0.0.1:1")}, http.StatusForbidden},
		"a dry run of nobody":                           {"/" + p.token + "/dryrun?verb=create", []requestTweak{own, header("Origin", "")}, http.StatusForbidden},
		"a dry run that a browser says is not ours":     {"/" + p.token + "/dryrun?verb=create", []requestTweak{own, header("Sec-Fetch-Site", "cross-site")}, http.StatusForbidden},
		"a dry run of the same site but another origin": {"/" + p.token + "/dryrun?verb=create", []requestTweak{own, header("Sec-Fetch-Site", "same-site")}, http.StatusForbidden},
		"a dry run that is read":                        {"/" + p.token + "/dryrun?verb=create", nil, http.StatusNotFound},
		"a dry run that is put":                         {"/" + p.token + "/dryrun?verb=create", []requestTweak{own, method(http.MethodPut)}, http.StatusMethodNotAllowed},
		"a trace that is deleted":                       {"/" + p.token + "/traces/x", []requestTweak{own, method(http.MethodDelete)}, http.StatusMethodNotAllowed},
		"a trace that is not there":                     {"/" + p.token + "/traces/x", nil, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			response, _ := ask(t, base+tc.path, tc.tweaks...)
			if response.StatusCode != tc.want {
				t.Errorf("got %s, want %d", response.Status, tc.want)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": contentSecurityPolicy,
				"X-Content-Type-Options":  "nosniff",
				"Referrer-Policy":         "no-referrer",
				"Cache-Control":           "no-store",
			} {
				if got := response.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestAURLThatLostItsSlash(t *testing.T) {
	p, _ := fakePage(t)
	if response, _ := ask(t, strings.TrimSuffix(p.URL(), "/")); response.Request.URL.String() != p.URL() {
		t.Errorf("got %s, want %s: a module beside it is not found", response.Request.URL, p.URL())
	}
}

func TestEachPageHasATokenOfItsOwn(t *testing.T) {
	a, _ := fakePage(t)
	b, _ := fakePage(t)
	if a.token == b.token || len(a.token) < 26 {
		t.Errorf("got the tokens %q and %q", a.token, b.token)
	}
}

func TestThePageListensOnLoopbackOnly(t *testing.T) {
	p, _ := fakePage(t)
	if address, ok := p.listener.Addr().(*net.TCPAddr); !ok || !address.IP.IsLoopback() {
		t.Errorf("got %v", p.listener.Addr())
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	p, err := newPage(fake.NewClientset())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx) }()
	// A stream that is open does not hold it up.
	stream := openStream(t, p)
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, stream) // ends
}

func TestTrace(t *testing.T) {
	want := &pipelinev1alpha1.RequestTrace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "pipeline.samplecrd.k8s.io/v1alpha1", Kind: "RequestTrace"},
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		AuditID:    "one",
		Stages:     []pipelinev1alpha1.Stage{{Name: pipelinev1alpha1.StageMux, Outcome: pipelinev1alpha1.OutcomePassed}},
	}
	p, _ := fakePage(t, want.DeepCopy())
	response, text := ask(t, p.URL()+"traces/one")
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("got the content type %q", got)
	}
	got := &pipelinev1alpha1.RequestTrace{}
	if err := json.Unmarshal([]byte(text), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATraceThatIsToBeSearchedFor(t *testing.T) {
	p, err := New(Options{Config: &rest.Config{Host: "127.0.0.1:1"}, Find: func(_ context.Context, name string) (*pipelinev1alpha1.RequestTrace, error) {
		return newTrace(name), nil
	}})
	serve(t, p, err)
	if response, text := ask(t, p.URL()+"traces/one"); response.StatusCode != http.StatusOK || !strings.Contains(text, `"name":"one"`) {
		t.Errorf("got %s: %s", response.Status, text)
	}
}

func TestAnAPIServerThatDoesNotAnswer(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	p, err := New(Options{Config: &rest.Config{Host: gone.URL}})
	serve(t, p, err)
	for _, tc := range []struct {
		name   string
		path   string
		tweaks []requestTweak
	}{
		{"a trace", "traces/x", nil},
		{"a dry run", "dryrun?verb=create", []requestTweak{body(p, network, "application/yaml")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response, text := ask(t, p.URL()+tc.path, tc.tweaks...)
			if response.StatusCode != http.StatusBadGateway || !strings.Contains(text, "refused") {
				t.Errorf("got %s: %s", response.Status, text)
			}
		})
	}
}
