package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each file of testdata is a script for a server of its own. A case is a title and indented lines:
//
//	as NAME                  the caller of the requests that follow in the case; without it the administrator
//	if-match TEXT            the If-Match header of the next request
//	METHOD PATH [BODY]       a request below /v2.0
//	subnet4 BODY, subnet6 BODY   a POST of such a subnet on a new network, which is then $net
//	STATUS [JSON]            the answer wanted: what the JSON names must be in it; "~EXPR" is a regular expression
//	STATUS TYPE: MESSAGE     the same for an error
//	keep NAME PATH           puts a value of the last answer into $NAME
//
// {x*3} stands for xxx.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	requests := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{url: serve(t, Options{}).URL, vars: map[string]string{}}
			for title, lines := range cases(string(text)) {
				s.caller, s.ifMatch = "", ""
				t.Run(title, func(t *testing.T) {
					for _, line := range lines {
						s.line(t, line)
					}
				})
			}
			requests += s.requests
		})
	}
	t.Logf("%d exchanges", requests)
}

// cases yields the cases of a script in order.
func cases(text string) func(yield func(string, []string) bool) {
	return func(yield func(string, []string) bool) {
		title, lines := "", []string{}
		for line := range strings.Lines(text + "\nend") {
			line = strings.TrimRight(line, "\n")
			switch {
			case strings.HasPrefix(line, "  "):
				lines = append(lines, strings.TrimSpace(line))
			case line != "" && !strings.HasPrefix(line, "#"):
				if title != "" && !yield(title, lines) {
					return
				}
				title, lines = line, nil
			}
		}
	}
}

type script struct {
	url             string
	vars            map[string]string
	caller, ifMatch string
	status          int
	body            any
	requests        int
}

const (
	projectA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	projectB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var callers = map[string]string{
	"A":         "it:user-A:" + projectA + ":member",
	"A-reader":  "it:user-A:" + projectA + ":reader",
	"B":         "it:user-B:" + projectB + ":member",
	"expired":   "it:u:p:member:1",
	"lasting":   "it:u:" + projectA + ":member:99999999999",
	"bad":       "bad-token",
	"unknown":   "gAAAAABtoken",
	"malformed": "it:u:p:member:soon",
	"many":      "it:u:" + projectA + ":member,admin",
}

var repeated = regexp.MustCompile(`\{(.)\*(\d+)\}`)

func (s *script) expand(line string) string {
	line = repeated.ReplaceAllStringFunc(line, func(match string) string {
		parts := repeated.FindStringSubmatch(match)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
	line = strings.NewReplacer("$A", projectA, "$B", projectB).Replace(line)
	for name, value := range s.vars {
		line = strings.ReplaceAll(line, "$"+name, value)
	}
	return line
}

func (s *script) line(t *testing.T, line string) {
	t.Helper()
	word, rest, _ := strings.Cut(s.expand(line), " ")
	switch {
	case word == "as":
		s.caller = callers[rest]
		if s.caller == "" {
			t.Fatalf("no caller %q", rest)
		}
	case word == "if-match":
		s.ifMatch = rest
	case word == "keep":
		name, path, _ := strings.Cut(rest, " ")
		s.vars[name] = fmt.Sprint(dig(s.body, path))
	case word == "subnet4" || word == "subnet6":
		s.send(t, http.MethodPost, "/networks", `{"network": {}}`)
		s.vars["net"] = fmt.Sprint(dig(s.body, "network.id"))
		common := fmt.Sprintf(`{"subnet": {"network_id": %q, "ip_version": %s`, s.vars["net"], word[len(word)-1:])
		s.send(t, http.MethodPost, "/subnets", strings.Replace(rest, "{", common+", ", 1)+"}")
	case len(word) == 3 && word[0] >= '1' && word[0] <= '9':
		s.check(t, word, s.expand(rest))
	default:
		path, body, _ := strings.Cut(rest, " ")
		s.send(t, word, path, body)
	}
}

func (s *script) send(t *testing.T, method, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+"/v2.0"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if s.caller != "" {
		request.Header.Set("X-Auth-Token", s.caller)
	}
	if s.ifMatch != "" {
		request.Header.Set("If-Match", s.ifMatch)
		s.ifMatch = ""
	}
	response, text := do(t, request)
	s.requests++
	s.status, s.body = response.StatusCode, nil
	if len(text) > 0 {
		if err := json.Unmarshal(text, &s.body); err != nil {
			t.Fatalf("%s %s answered %d %s", method, path, s.status, text)
		}
	}
}

func (s *script) check(t *testing.T, status, rest string) {
	t.Helper()
	if got := strconv.Itoa(s.status); got != status {
		t.Fatalf("answered %s %v, want %s %s", got, s.body, status, rest)
	}
	if rest == "" {
		return
	}
	var want any
	if json.Unmarshal([]byte(rest), &want) != nil {
		kind, message, ok := strings.Cut(rest, ": ")
		if !ok {
			t.Fatalf("cannot read the answer %q", rest)
		}
		want = map[string]any{"NeutronError": map[string]any{"type": kind, "message": message, "detail": ""}}
	}
	if diff := cmp.Diff(want, narrow(s.body, want)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// narrow leaves of got what want names.
func narrow(got, want any) any {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || len(want) == 0 {
			return got
		}
		out := map[string]any{}
		for key, v := range want {
			if value, ok := object[key]; ok {
				out[key] = narrow(value, v)
			}
		}
		return out
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return got
		}
		out := make([]any, len(list))
		for i, v := range list {
			out[i] = narrow(v, want[i])
		}
		return out
	case string:
		text, ok := got.(string)
		if expr, is := strings.CutPrefix(want, "~"); is && ok && regexp.MustCompile("^(?:"+expr+")$").MatchString(text) {
			return want
		}
	}
	return got
}

// dig takes a value out of an answer: network.subnets.0.
func dig(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(node) {
				return nil
			}
			v = node[i]
		}
	}
	return v
}

func serve(t testing.TB, options Options) *httptest.Server {
	t.Helper()
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

var client = &http.Client{Timeout: time.Minute}

func do(t testing.TB, request *http.Request) (*http.Response, []byte) {
	t.Helper()
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, text
}
