package network

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// fault is how one effect fails: a request to Neutron, or a write to the API
// server. It leaves the kind alone for which it has no function.
type fault struct {
	neutron func(w http.ResponseWriter, r *http.Request, next http.Handler)
	api     func(commit func()) error
	crash   bool // the process ends with it
}

// faults are the ways in which it is not known what was done.
var faults = map[string]fault{
	"an internal error before":     {neutron: answer(http.StatusInternalServerError, "")},
	"an internal error after":      {neutron: after(answer(http.StatusInternalServerError, ""))},
	"a lost answer":                {neutron: after(droppedBefore)},
	"half an answer":               {neutron: halfAnswer},
	"a write refused":              {api: refusedBefore},
	"a write whose answer is lost": {api: refusedAfter},
	"a crash before":               {neutron: droppedBefore, api: refusedBefore, crash: true},
	"a crash after":                {neutron: after(droppedBefore), api: refusedAfter, crash: true},
}

// refusals are answers that leave no doubt.
var refusals = map[string]fault{
	"an expired token":       {neutron: answer(http.StatusUnauthorized, `{"error": {"code": 401, "title": "Unauthorized"}}`)},
	"a policy that forbids":  {neutron: answer(http.StatusForbidden, neutronError("PolicyNotAuthorized", "rule is disallowed by policy"))},
	"too many requests":      {neutron: answer(http.StatusTooManyRequests, "")},
	"a full quota":           {neutron: answer(http.StatusConflict, neutronError("OverQuota", "Quota exceeded for resources: ['network']."))},
	"another revision":       {neutron: answer(http.StatusPreconditionFailed, neutronError("RevisionNumberConstraintFailed", "Constrained to 1, but current revision is 2"))},
	"a dropped connection":   {neutron: droppedBefore},
	"a proxy without a back": {neutron: answer(http.StatusBadGateway, "<html>bad gateway</html>")},
	"a proxy without a page": {neutron: answer(http.StatusNotFound, "<html>not found</html>")},
	"an empty answer":        {neutron: answer(http.StatusOK, "{}")},
	"another version":        {api: conflicting},
}

// hangs are answers that come when the client has given up.
var hangs = map[string]fault{
	"no answer and not done": {neutron: hang},
	"no answer and done":     {neutron: after(hang)},
}

func answer(status int, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func neutronError(kind, message string) string {
	return `{"NeutronError": {"type": "` + kind + `", "message": "` + message + `", "detail": ""}}`
}

// after lets the request be done first.
func after(then func(http.ResponseWriter, *http.Request, http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		then(w, r, next)
	}
}

func droppedBefore(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

func hang(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }

func halfAnswer(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	body := recorder.Body.Bytes()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(body[:len(body)/2])
}

func refusedBefore(func()) error {
	return apierrors.NewInternalError(errors.New("etcd is away"))
}

func refusedAfter(commit func()) error {
	commit()
	return apierrors.NewTimeoutError("the answer is lost", 1)
}

func conflicting(func()) error {
	return apierrors.NewConflict(networksResource.GroupResource(), testName.Name, errors.New("the object has been modified"))
}

// cloud is a Neutron whose requests are written down and can be made to fail.
type cloud struct {
	http.Handler
	world *world

	mu        sync.Mutex
	requests  []string // method and collection
	intercept func(w http.ResponseWriter, r *http.Request) bool
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Read whole, so that the server notices when the client goes.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	collection, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2.0/"), "/")
	c.mu.Lock()
	c.requests = append(c.requests, r.Method+" "+collection)
	intercept := c.intercept
	c.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	if f, hit := c.world.strike(c.world.fault.neutron != nil); hit {
		f.neutron(w, r, c.Handler)
		return
	}
	c.Handler.ServeHTTP(w, r)
}

// take returns the requests since it was last asked.
func (c *cloud) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.requests
	c.requests = nil
	return taken
}

// answerWith lets a function answer those requests for which it returns true.
func (c *cloud) answerWith(intercept func(w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intercept = intercept
}
