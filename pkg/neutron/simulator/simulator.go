// Package simulator answers HTTP requests as the networking API of OpenStack does: status codes, attributes, error types and messages
// are those of a real Neutron (release Zed, ML2 plugin on SQLite). It knows networks, subnets, ports, routers with interfaces on
// subnets, quotas and tags, and the default policies. The scripts of test/contract hold it to that.
package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"
)

// maxBody is the size of the largest request body that is read, in bytes.
const maxBody = 1 << 20

// Options say where a Simulator keeps its state.
type Options struct {
	// Path is the bbolt file of the state, made if it is not there. Empty: in memory only.
	Path string
}

// Simulator is an http.Handler. A caller is who its X-Auth-Token says, in the form it:USER:PROJECT:ROLE[,ROLE][:EXPIRES_EPOCH];
// any other form, and one that has expired (seconds since 1970, UTC), is answered 401, and no token is the administrator of
// project fake_project_id. Serve it on a loopback address only.
type Simulator struct {
	store    *store
	requests atomic.Int64
}

var _ http.Handler = (*Simulator)(nil)

// New opens the state and reads it. It fails if the file cannot be opened, is held by another process, or was not written by a
// Simulator.
func New(options Options) (*Simulator, error) {
	store, err := openStore(options.Path)
	if err != nil {
		return nil, err
	}
	return &Simulator{store: store}, nil
}

// Close waits for requests in progress and closes the state file. Requests after it cannot write.
func (s *Simulator) Close() error { return s.store.close() }

// Requests is the number of requests answered since New, refused ones included.
func (s *Simulator) Requests() int64 { return s.requests.Load() }

// ServeHTTP answers one request. What a request changed is on disk, or none of it is, before the answer is sent.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.requests.Add(1)
	w.Header().Set("X-Openstack-Request-Id", "req-"+uuid.NewString())
	path := segments(r.URL.Path)
	if len(path) == 0 && r.Method == http.MethodGet {
		write(w, http.StatusOK, versions(r))
		return
	}
	if len(path) == 0 || path[0] != "v2.0" {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "404 Not Found\n\nThe resource could not be found.\n\n   \n")
		return
	}
	status, body, err := s.answer(w, r, path[1:])
	if err != nil {
		refused := errInternal
		if !errors.As(err, &refused) {
			slog.ErrorContext(r.Context(), "Neutron simulator cannot answer", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		if refused == errUnauthorized {
			w.Header().Set("Www-Authenticate", `Keystone uri="http://127.0.0.1:5000/v3"`)
		}
		status, body = refused.status, refused.body()
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
