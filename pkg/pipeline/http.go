package pipeline

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

const (
	// maxBody is how much of a body is kept, in bytes: that of a larger one can't
	// be done again.
	maxBody = 256 << 10
	// maxRefusal is how much is kept of an answer that says no, in bytes.
	maxRefusal = 32 << 10
)

// parameters are those of the URL that may be shown.
var parameters = []string{
	"dryRun", "fieldManager", "fieldValidation", "force", "limit", "watch", "allowWatchBookmarks", "sendInitialEvents",
	"resourceVersion", "resourceVersionMatch", "timeout", "timeoutSeconds", "labelSelector", "fieldSelector",
	"gracePeriodSeconds", "propagationPolicy",
}

// Observe puts the recorder in the way of all requests to a server. It is
// called when the rest of the configuration is made, and before it is
// completed.
func (r *Recorder) Observe(config *genericapiserver.Config) {
	config.TracerProvider = r.tracerProvider(config.TracerProvider)
	config.Authorization.Authorizer = authorizer{config.Authorization.Authorizer}
	config.RESTOptionsGetter = optionsGetter{config.RESTOptionsGetter, r}
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		// Only now it knows the loopback client. Without one everybody gets in.
		if c.Authentication.Authenticator != nil {
			c.Authentication.Authenticator = authenticator{c.Authentication.Authenticator}
		}
		return r.record(build(pastFilters(api), c), c.RequestInfoResolver)
	}
}

// record follows each request for the group from its arrival to its end.
func (r *Recorder) record(next http.Handler, resolver request.RequestInfoResolver) http.Handler {
	prefix := "/apis/" + r.Group + "/"
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.URL.Path, prefix) {
			next.ServeHTTP(w, req)
			return
		}
		info, err := resolver.NewRequestInfo(req)
		if err != nil || !info.IsResourceRequest {
			next.ServeHTTP(w, req)
			return
		}
		t := &Trace{timeline: timeline{start: time.Now()}, recorder: r, request: newRequest(req, info)}
		if req.Body != nil && req.Body != http.NoBody {
			req.Body = &body{req.Body, t}
		}
		req = req.WithContext(context.WithValue(req.Context(), traceKey{}, t))
		answer := &answer{w, t}
		defer func() {
			r.begin(t, w.Header().Get(auditinternal.HeaderAuditID))
			t.finish(answer.status(r.Codecs.UniversalDeserializer()))
			r.add(t)
		}()
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), req)
	})
}

func newRequest(req *http.Request, info *request.RequestInfo) Request {
	n := Request{
		Verb: info.Verb, Method: req.Method, Path: req.URL.Path, Parameters: shown(req.URL.Query()),
		Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name,
		ContentType: req.Header.Get("Content-Type"), Accept: req.Header.Get("Accept"), UserAgent: req.UserAgent(),
	}
	if media, _, _ := strings.Cut(n.ContentType, ";"); media == string(types.ApplyYAMLPatchType) || media == string(types.ApplyCBORPatchType) {
		n.Verb = "apply"
	}
	return n
}

// shown leaves out what is no parameter of this API: it may be a secret.
func shown(query url.Values) (list []string) {
	for name, values := range query {
		for _, value := range values {
			if slices.Contains(parameters, name) {
				list = append(list, name+"="+value)
			}
		}
	}
	slices.Sort(list)
	return list
}

// pastFilters is the innermost handler but the API itself.
func pastFilters(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		if t := from(ctx); t != nil {
			t.enterFilter("")
			t.recorder.begin(t, audit.GetAuditIDTruncated(ctx))
			t.recorder.link(t, req.Header.Get(causeHeader))
			mux := t.step(Mux, "")
			defer mux.end("", "") // where no handler was found it goes on until here
			ctx = context.WithValue(ctx, muxKey{}, mux)
			req = req.WithContext(ctx)
		}
		api.ServeHTTP(w, req)
	})
}

type muxKey struct{}

// foundHandler ends the search for one.
func foundHandler(ctx context.Context) {
	mux, _ := ctx.Value(muxKey{}).(*step)
	mux.end(Passed, "")
}

// body keeps what is read of the body of a request.
type body struct {
	io.ReadCloser
	t *Trace
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	if b.t.over {
		return n, err
	}
	b.t.request.BodyBytes += int64(n)
	if b.t.request.BodyBytes <= maxBody {
		b.t.body = append(b.t.body, p[:n]...)
	} else {
		b.t.body = nil
	}
	return n, err
}

// answer notes what is answered.
type answer struct {
	http.ResponseWriter
	t *Trace
}

var _ responsewriter.UserProvidedDecorator = &answer{}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(code int) {
	a.begin(code)
	a.ResponseWriter.WriteHeader(code)
}

// Hijack gives the connection away: what is answered then goes past the server.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.begin(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

func (a *answer) begin(code int) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	informs := code < http.StatusOK && code != http.StatusSwitchingProtocols
	if a.t.response.Code != 0 || informs {
		return
	}
	a.t.response.Code = code
	a.t.response.ContentType = a.Header().Get("Content-Type")
	a.t.response.Warnings = warnings(a.Header().Values("Warning"))
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	n, err := a.ResponseWriter.Write(p)
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.t.response.Bytes += int64(n)
	if a.t.response.Code >= http.StatusBadRequest && len(a.t.answer)+n <= maxRefusal {
		a.t.answer = append(a.t.answer, p[:n]...)
	}
	return n, err
}

// status returns what a refusal says, if it can be read.
func (a *answer) status(decoder runtime.Decoder) *metav1.Status {
	a.t.mu.Lock()
	answer := a.t.answer
	a.t.mu.Unlock()
	if len(answer) == 0 {
		return nil
	}
	obj, _, err := decoder.Decode(answer, nil, nil)
	status, ok := obj.(*metav1.Status)
	if err != nil || !ok {
		status = &metav1.Status{Message: strings.TrimSpace(string(answer))}
	}
	status.Message = withoutBody(status.Message)
	return status
}

// quoted is what the library repeats of a request that it can't read or won't
// have: the first bytes of a body, what a patch makes, values that are not of the
// type or the form they should be, what stands beside an impersonated name, all
// parameters.
var quoted = regexp.MustCompile(`(?s) \((?:\{.*|(?:[0-9a-f]{2})+(?: \.\.\.)?)\)$` +
	`|(patch: Invalid value|userextras\.authentication\.k8s\.io|Internal Server Error):? "(?:[^"\\]|\\.)*"` +
	`|(parsing time|invalid map key|unsupported map key|cannot decode \S+|unknown patch type|types are not identical|order in patch list)[ :].*` +
	`|(\bmap): map\[.*` +
	`|(anchor) '[^']*'` +
	`|(unmarshal number) \S+` +
	`|(expected [^,]+), got .*`)

// withoutBody takes out of a message what was sent: it may be a secret.
func withoutBody(message string) string { return quoted.ReplaceAllString(message, "$1$2$3$4$5$6") }

// warnings returns the texts of Warning headers.
func warnings(headers []string) (texts []string) {
	parsed, _ := utilnet.ParseWarningHeaders(headers) // what is none is left out
	for _, w := range parsed {
		texts = append(texts, w.Text)
	}
	return texts
}
