package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// faultRule says which requests go wrong, and how. A client gives it as JSON.
type faultRule struct {
	Method string `json:"method,omitempty"` // empty: any
	Path   string `json:"path,omitempty"`   // a regular expression on the path; empty: any
	Every  int    `json:"every,omitempty"`  // of those requests each n-th; 0 is 1
	Times  int    `json:"times,omitempty"`  // so often at most; 0: no end
	Kind   string `json:"kind"`             // one of faultKinds
	Delay  string `json:"delay,omitempty"`  // how long to wait first

	// Of kind status. Without a type the answer has no body, as one of a proxy.
	Status     int    `json:"status,omitempty"`
	Type       string `json:"type,omitempty"` // of the NeutronError
	Message    string `json:"message,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds
}

// activeRule is a rule that is in force.
type activeRule struct {
	ID   int `json:"id"`
	Hits int `json:"hits"` // how often it struck
	faultRule

	path  *regexp.Regexp
	delay time.Duration
	seen  int // requests that it is for
}

var faultKinds = []string{"status", "delay", "drop", "lost", "commit-500", "expire", "truncate", "garble"}

// happen answers as the fault has it. next is what would answer without.
func (a *activeRule) happen(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	switch a.Kind {
	// Of these nothing is done.
	case "status":
		if a.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(a.RetryAfter))
		}
		if a.Type == "" {
			w.Header().Del(requestID) // which a proxy does not give
			w.WriteHeader(a.Status)
			return
		}
		refuse(w, r, &fault{a.Status, a.Type, a.Message})
	case "expire":
		refuse(w, r, errUnauthorized)
	case "drop":
		cut()

	// Of these all is done.
	case "lost":
		record(r, next)
		cut()
	case "commit-500":
		record(r, next)
		refuse(w, r, errInternal)
	case "truncate":
		whole := record(r, next)
		w.Header().Set("Content-Length", strconv.Itoa(whole.body.Len()))
		whole.sendHalf(w)
		// What is in a buffer would be lost.
		_ = http.NewResponseController(w).Flush()
		cut()
	case "garble":
		record(r, next).sendHalf(w)
	}
}

// cut closes the connection without what is not yet sent of the answer.
func cut() { panic(http.ErrAbortHandler) }

// recorder is an http.ResponseWriter that keeps the answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func record(r *http.Request, next http.HandlerFunc) *recorder {
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	next(answer, r)
	return answer
}

func (r *recorder) Header() http.Header                { return r.header }
func (r *recorder) WriteHeader(status int)             { r.status = status }
func (r *recorder) Write(text []byte) (n int, _ error) { return r.body.Write(text) }

func (r *recorder) sendHalf(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()[:r.body.Len()/2])
}

// faultRules are those in force, and the endpoint that changes them.
type faultRules struct {
	mux http.ServeMux

	mu     sync.Mutex
	active []*activeRule // in the order in which they were made
	last   int           // ID
}

func newFaultRules() *faultRules {
	f := &faultRules{}
	f.mux.HandleFunc("GET /faults", f.list)
	f.mux.HandleFunc("POST /faults", f.add)
	f.mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		f.remove(func(*activeRule) bool { return true })
		w.WriteHeader(http.StatusNoContent)
	})
	f.mux.HandleFunc("DELETE /faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if !f.remove(func(a *activeRule) bool { return strconv.Itoa(a.ID) == id }) {
			http.Error(w, "no rule has the id "+strconv.Quote(id), http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return f
}

// isFor tells the endpoint's own requests from those for Neutron.
func (f *faultRules) isFor(r *http.Request) bool {
	return r.URL.Path == "/faults" || strings.HasPrefix(r.URL.Path, "/faults/")
}

func (f *faultRules) list(w http.ResponseWriter, _ *http.Request) {
	active := []activeRule{}
	f.mu.Lock()
	for _, a := range f.active {
		active = append(active, *a)
	}
	f.mu.Unlock()
	write(w, http.StatusOK, map[string]any{"faults": active})
}

func (f *faultRules) add(w http.ResponseWriter, r *http.Request) {
	rule, err := decodeRule(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.last++
	rule.ID = f.last
	made := *rule // as it is before it strikes
	f.active = append(f.active, rule)
	f.mu.Unlock()
	write(w, http.StatusCreated, made)
}

func (f *faultRules) remove(which func(*activeRule) bool) (found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.active)
	f.active = slices.DeleteFunc(f.active, which)
	return len(f.active) < before
}

// answer lets the request go to next, unless a fault strikes.
func (f *faultRules) answer(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	struck, delay := f.strike(r)
	if struck == nil && delay == 0 {
		next(w, r)
		return
	}
	// Before a body is read it is not seen that the client went away, and a connection that is cut is reset.
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		cut()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if delay > 0 {
		// A client that went away does not undo what it asked for.
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
		}
	}
	if struck == nil {
		next(w, r)
		return
	}
	struck.happen(w, r, next)
}

// strike returns the fault for a request, nil if there is none, and how long to wait first. A rule behind the one that strikes does
// not count the request: two rules of equal rhythm both get their turn.
func (f *faultRules) strike(r *http.Request) (struck *activeRule, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.active {
		if !a.matches(r) || a.Times > 0 && a.Hits >= a.Times {
			continue
		}
		if a.seen++; a.seen%a.Every != 0 {
			continue
		}
		a.Hits++
		delay += a.delay
		if a.Kind != "delay" {
			return a, delay
		}
	}
	return nil, delay
}

func (a *activeRule) matches(r *http.Request) bool {
	if a.halves() && r.Method == http.MethodDelete {
		return false
	}
	return (a.Method == "" || a.Method == r.Method) && a.path.MatchString(r.URL.Path)
}

// halves says whether an answer with a body is needed. That to a DELETE has none.
func (a *activeRule) halves() bool { return a.Kind == "truncate" || a.Kind == "garble" }

// decodeRule reads a rule and refuses one that could not mean what it says, with all reasons at once.
func decodeRule(body io.Reader) (*activeRule, error) {
	a := &activeRule{}
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a.faultRule); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("%s: must be of type %s, not %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return nil, fmt.Errorf("decode rule: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode rule: must be one JSON object")
	}
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	var err error
	check(slices.Contains(faultKinds, a.Kind), "kind: must be one of %s", strings.Join(faultKinds, ", "))
	methods := []string{"", http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}
	check(slices.Contains(methods, a.Method), "method: must be GET, POST, PUT, DELETE or empty for any")
	check(!a.halves() || a.Method != http.MethodDelete, "method: must not be DELETE with kind %s, its answer has no body", a.Kind)
	a.path, err = regexp.Compile(a.Path)
	check(err == nil, "path: must be a regular expression: %v", err)
	check(a.Every >= 0, "every: must be 1 or more, or 0 for 1")
	check(a.Times >= 0, "times: must be 1 or more, or 0 for no end")
	if a.Delay != "" {
		a.delay, err = time.ParseDuration(a.Delay)
		check(err == nil && a.delay >= 0, "delay: must be a duration such as 20ms")
	}
	check(a.Kind != "delay" || a.delay > 0, "delay: must be more than 0 with kind delay")
	if a.Kind == "status" {
		check(a.Status >= 400 && a.Status <= 599, "status: must be from 400 to 599")
	} else {
		check(a.Status == 0, "status: must be left out unless kind is status")
	}
	check(a.Type == "" || a.Kind == "status", "type: must be left out unless kind is status")
	check(a.Message == "" || a.Type != "", "message: must be left out unless there is a type")
	check(a.RetryAfter >= 0, "retryAfter: must be a number of seconds, 1 or more")
	check(a.RetryAfter == 0 || a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable,
		"retryAfter: must be left out unless status is 429 or 503")
	a.Every = max(a.Every, 1)
	return a, errors.Join(errs...)
}
