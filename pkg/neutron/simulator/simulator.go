// Package simulator answers HTTP requests as the networking API of OpenStack does: status codes, attributes, error types and messages
// are those of a real Neutron (release Zed, ML2 plugin on SQLite). It knows networks, subnets, ports, routers with interfaces on
// subnets, quotas and tags, and the default policies. The scripts of test/contract hold it to that.
//
// # Identity
//
// Below /identity/v3, the auth_url of a clouds.yaml, it answers as Keystone does, as far as it takes to get a token. Any user whose
// password is the user's name gets one, for any project; the name of a project is its ID. The user admin has the role admin, all others
// are members. It is good for Options.TokenLifetime. An application credential has the id USER:PROJECT and the user's name for its secret.
//
// # Faults
//
// With Options.Faults a POST of a rule to /faults makes requests go wrong; GET lists the rules and how often they struck, DELETE removes
// all, or the one of /faults/ID. This one answers every third create of a network with 503, five times in all:
//
//	{"method": "POST", "path": "/networks$", "every": 3, "times": 5, "kind": "status", "status": 503, "retryAfter": 1}
//
// method and path, a regular expression, say which requests are meant; without them it is all. Of rules that could strike, the first that
// was made does. The kinds are:
//
//   - status: answers with status and nothing done, as a proxy does (no body), or as Neutron does (with type and message)
//   - expire: answers 401 as for an expired token
//   - drop: cuts the connection with nothing done
//   - lost: cuts the connection with everything done
//   - commit-500: answers 500 with everything done
//   - truncate: cuts the connection in the middle of the answer, everything done
//   - garble: ends the answer in the middle, as if it were all, everything done
//   - delay: waits for the duration delay and goes on, to later rules too. Any other kind may have a delay as well
//
// A GET whose connection was cut before the answer began is sent again by net/http itself, if the connection had served before.
package simulator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"
)

const (
	maxBody = 1 << 20 // of a request, in bytes

	requestID = "X-Openstack-Request-Id"
)

// Options say where a Simulator keeps its state and what more it serves.
type Options struct {
	// Path is the bbolt file of the state, made if it is not there. Empty: in memory only.
	Path string
	// Faults serves /faults, where anybody can make requests go wrong.
	Faults bool
	// TokenLifetime is how long a token of /identity is good, rounded up to the end of a second. 0 means an hour.
	TokenLifetime time.Duration
}

// Simulator is an http.Handler. A caller is who its X-Auth-Token says, in the form it:USER:PROJECT:ROLE[,ROLE][:EXPIRES_EPOCH];
// any other form, and one that has expired (seconds since 1970, UTC), is answered 401, and no token is the administrator of
// project fake_project_id. Serve it on a loopback address only.
type Simulator struct {
	store    *store
	faults   *faultRules // nil: none can be made
	lifetime time.Duration
	requests atomic.Int64
}

var _ http.Handler = (*Simulator)(nil)

// New opens the state and reads it. It fails if the file cannot be opened, is held by another process, or was not written by a
// Simulator, and if the lifetime is negative.
func New(options Options) (*Simulator, error) {
	if options.TokenLifetime < 0 {
		return nil, fmt.Errorf("token lifetime must not be negative, is %v", options.TokenLifetime)
	}
	store, err := openStore(options.Path)
	if err != nil {
		return nil, err
	}
	s := &Simulator{store: store, lifetime: cmp.Or(options.TokenLifetime, defaultLifetime)}
	if options.Faults {
		s.faults = newFaultRules()
	}
	return s, nil
}

// Close waits for requests in progress and closes the state file. Requests after it cannot write.
func (s *Simulator) Close() error { return s.store.close() }

// Requests is the number of requests since New, refused ones and those that a fault struck included, those for /faults not.
func (s *Simulator) Requests() int64 { return s.requests.Load() }

// ServeHTTP answers one request. What a request changed is on disk, or none of it is, before the answer is sent.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.faults != nil && s.faults.isFor(r) {
		s.faults.mux.ServeHTTP(w, r)
		return
	}
	defer s.requests.Add(1)
	w.Header().Set(requestID, "req-"+uuid.NewString())
	if s.faults != nil {
		s.faults.answer(w, r, s.serve)
		return
	}
	s.serve(w, r)
}

func (s *Simulator) serve(w http.ResponseWriter, r *http.Request) {
	path := segments(r.URL.Path)
	if len(path) == 0 && r.Method == http.MethodGet {
		write(w, http.StatusOK, versions(r))
		return
	}
	if len(path) > 0 && path[0] == "identity" {
		s.serveKeystone(w, r, path[1:])
		return
	}
	if len(path) == 0 || path[0] != "v2.0" {
		noPage(w)
		return
	}
	status, body, err := s.answer(w, r, path[1:])
	if err != nil {
		refused := errInternal
		if !errors.As(err, &refused) {
			slog.ErrorContext(r.Context(), "Neutron simulator cannot answer", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		refuse(w, r, refused)
		return
	}
	write(w, status, body)
}

func (s *Simulator) answer(w http.ResponseWriter, r *http.Request, path []string) (status int, body any, err error) {
	who, err := identify(r.Header.Get("X-Auth-Token"), time.Now())
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return 0, nil, errTooLarge
	} else if err != nil {
		return 0, nil, errInvalidBody
	}
	c := &call{store: s.store, who: who, request: r, query: parseQuery(r.URL.RawQuery), body: text}
	if r.Method == http.MethodGet {
		s.store.mu.RLock()
		defer s.store.mu.RUnlock()
		return c.route(path)
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	defer s.store.discard()
	status, body, err = c.route(path)
	if err != nil {
		return 0, nil, err
	}
	return status, body, s.store.commit()
}

// segments are the parts of a path. A trailing slash and the suffix .json mean nothing.
func segments(path string) []string {
	path = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), ".json")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

func versions(r *http.Request) any {
	links := []any{map[string]any{"rel": "self", "href": origin(r) + "/v2.0/"}}
	return map[string]any{"versions": []any{map[string]any{"id": "v2.0", "status": "CURRENT", "links": links}}}
}

func origin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func refuse(w http.ResponseWriter, r *http.Request, f *fault) {
	challenge(w, r, f)
	write(w, f.status, f.body())
}

// challenge tells who is refused as unknown where to get a token.
func challenge(w http.ResponseWriter, r *http.Request, f *fault) {
	if f.status == http.StatusUnauthorized {
		w.Header().Set("Www-Authenticate", `Keystone uri="`+authURL(r)+`"`)
	}
}

func noPage(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "404 Not Found\n\nThe resource could not be found.\n\n   \n")
}

func write(w http.ResponseWriter, status int, body any) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(ascii(bytes.TrimSuffix(text.Bytes(), []byte("\n"))))
}

// ascii writes what is not ASCII as \u escapes, as Python does. Outside strings JSON is ASCII already.
func ascii(text []byte) []byte {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r < 0x7f {
			out = append(out, byte(r)) //nolint:gosec // it is ASCII
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = append(out, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
		}
	}
	return out
}
