// Package page shows a learner what is recorded of requests: the drawing of the
// way through the API server and of the controller's loop, filled by requests as
// they come. It is a client of the API like any other and has the rights of its
// configuration, so it listens on loopback alone, and only who was told its URL
// gets in.
package page

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	clientset "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

//go:embed static
var static embed.FS

// Options of a Page.
type Options struct {
	// Config is how to reach the API server, and with whose rights: whoever opens
	// the page has them too.
	Config *rest.Config
	// Find returns a trace by its name, from whichever of several servers keeps
	// it. Default: one server keeps all.
	Find func(ctx context.Context, name string) (*pipelinev1alpha1.RequestTrace, error)
}

// Page is a web page on a loopback port of its own.
type Page struct {
	clients  clientset.Interface
	find     func(ctx context.Context, name string) (*pipelinev1alpha1.RequestTrace, error)
	listener net.Listener
	server   *http.Server
	host     string // HOST:PORT
	port     string
	token    string
	stages   []byte
}

// New listens, and answers nobody before Serve.
func New(o Options) (*Page, error) {
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // a page that is looked at asks as often as something happens
	rest.AddUserAgent(config, "pipeline-page")
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the pipeline page: %w", err)
	}
	p, err := newPage(clients)
	if err == nil && o.Find != nil {
		p.find = o.Find
	}
	return p, err
}

func newPage(clients clientset.Interface) (*Page, error) {
	stages, err := json.Marshal(stages)
	if err != nil {
		return nil, fmt.Errorf("encoding the stages: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // takes no time
	if err != nil {
		return nil, fmt.Errorf("listening for the pipeline page: %w", err)
	}
	p := &Page{clients: clients, listener: listener, host: listener.Addr().String(), token: rand.Text(), stages: stages}
	p.find = func(ctx context.Context, name string) (*pipelinev1alpha1.RequestTrace, error) {
		return clients.PipelineV1alpha1().RequestTraces().Get(ctx, name, metav1.GetOptions{})
	}
	_, p.port, _ = net.SplitHostPort(p.host)
	p.server = &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	return p, nil
}

// URL is where the page is. Who knows it has the rights of the page.
func (p *Page) URL() string { return "http://" + p.host + "/" + p.token + "/" }

// Serve answers until ctx ends or Close is called.
func (p *Page) Serve(ctx context.Context) error {
	// Streams never end by themselves: nothing is waited for.
	defer context.AfterFunc(ctx, func() { _ = p.Close() })()
	if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the pipeline page: %w", err)
	}
	return nil
}

// Close ends the page and all that is open.
func (p *Page) Close() error {
	return errors.Join(p.server.Close(), ignoreClosed(p.listener.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Page) handler() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /{file}", file)
	routes.HandleFunc("GET /{$}", file)
	routes.HandleFunc("GET /stages", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(p.stages)
	})
	routes.HandleFunc("GET /events", p.events)
	routes.HandleFunc("GET /traces/{name}", p.trace)
	routes.HandleFunc("POST /dryrun", p.dryRun)
	return p.guard(routes)
}

// file answers with a static file. One of the library would drop headers where
// there is none.
func file(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(r.PathValue("file"), "index.html")
	data, err := static.ReadFile("static/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets nobody in but a page of this server in a browser, and who was told
// the URL.
func (p *Page) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.Host != p.host && r.Host != "localhost:"+p.port {
			// A name of another's that leads to this machine makes us its own site.
			http.Error(w, "this host is not served", http.StatusForbidden)
			return
		}
		token, path, isFolder := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(token), []byte(p.token)) == 0 {
			http.NotFound(w, r)
			return
		}
		if !isFolder {
			// Terminals leave out the slash at the end of what they take for a URL, and
			// what the page asks for by relative URLs would lack the token.
			http.Redirect(w, r, "/"+p.token+"/", http.StatusSeeOther)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !sameOrigin(r) {
			http.Error(w, "only the page itself may ask for this", http.StatusForbidden)
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+path, ""
		next.ServeHTTP(w, inner)
	})
}

// sameOrigin tells that a page of this server asks. A browser always says so
// with a request that is not just for reading.
func sameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") == "http://"+r.Host && (site == "" || site == "same-origin")
}

// trace answers with one trace, all of it.
func (p *Page) trace(w http.ResponseWriter, r *http.Request) {
	trace, err := p.find(r.Context(), r.PathValue("name"))
	if err != nil {
		answerError(w, err)
		return
	}
	trace.SetGroupVersionKind(pipelinev1alpha1.SchemeGroupVersion.WithKind("RequestTrace"))
	answer(w, http.StatusOK, trace)
}

// problem is the answer where something is wrong.
type problem struct {
	Message string `json:"message"`
	// Reason is that of the API server, if it gave one.
	Reason metav1.StatusReason `json:"reason,omitempty"`
}

func newProblem(err error) problem { return problem{err.Error(), apierrors.ReasonForError(err)} }

// answerError hands on what the API server said, or that it said nothing.
func answerError(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.Status().Code != 0 {
		code = int(status.Status().Code)
	}
	answer(w, code, newProblem(err))
}

func answer(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data) // who is gone needs no answer
}
