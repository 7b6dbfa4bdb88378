package contract

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a run of one file of testdata. The cases of a file follow each other in projects that no other run has: $A and $B, each
// with members, and $P with the administrator; $tag is a VLAN that Neutron gives to nobody by itself. A case is a title and indented lines:
//
//	as NAME                  the caller of the requests that follow in the case; without it the administrator
//	if-match TEXT            the If-Match header of the next request
//	METHOD PATH [BODY]       a request below /v2.0
//	subnet4 BODY, subnet6 BODY   a POST of such a subnet on a new network, which is then $net
//	STATUS [JSON]            the answer wanted: what the JSON names must be in it; "~EXPR" is a regular expression
//	STATUS TYPE: MESSAGE     the same for an error
//	keep NAME PATH           puts a value of the last answer into $NAME
//	only DATABASE            what follows in the case is true of that database; up to the next such line
//
// {x*3} stands for xxx. A line that starts with # is a comment.
type script struct {
	url, database   string
	vars            map[string]string
	callers         map[string]string // tokens
	caller, ifMatch string
	status          int
	body            any
	exchanges       int
}

func newScript(url, database string) *script {
	var random [15]byte
	_, _ = rand.Read(random[:])
	suffix := hex.EncodeToString(random[:])
	a, b, p := "aa"+suffix, "bb"+suffix, "cc"+suffix
	return &script{
		url:      url,
		database: database,
		vars:     map[string]string{"A": a, "B": b, "P": p, "tag": strconv.Itoa(200 + mathrand.IntN(3894))},
		callers: map[string]string{
			"administrator": "it:admin:" + p + ":admin",
			"nobody":        "",
			"A":             "it:user-A:" + a + ":member",
			"A-reader":      "it:user-A:" + a + ":reader",
			"A-several":     "it:user-A:" + a + ":member,admin",
			"A-lasting":     "it:user-A:" + a + ":member:99999999999",
			"A-expired":     "it:user-A:" + a + ":member:1",
			"A-malformed":   "it:user-A:" + a + ":member:soon",
			"B":             "it:user-B:" + b + ":member",
			"bad":           "bad-token",
			"unknown":       "gAAAAABtoken",
		},
	}
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

func (s *script) run(t *testing.T, lines []string) {
	s.caller, s.ifMatch = s.callers["administrator"], ""
	applies := true
	for _, line := range lines {
		if database, ok := strings.CutPrefix(line, "only "); ok {
			if !slices.Contains(databases, database) {
				t.Fatalf("no database %q", database)
			}
			applies = database == s.database
		} else if applies {
			s.line(t, line)
		}
	}
}

var repeated = regexp.MustCompile(`\{(.)\*(\d+)\}`)

func (s *script) expand(t *testing.T, line string) string {
	t.Helper()
	line = repeated.ReplaceAllStringFunc(line, func(match string) string {
		parts := repeated.FindStringSubmatch(match)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
	return os.Expand(line, func(name string) string {
		value, ok := s.vars[name]
		if !ok {
			t.Fatalf("no variable %q", name)
		}
		return value
	})
}

func (s *script) line(t *testing.T, line string) {
	t.Helper()
	word, rest, _ := strings.Cut(s.expand(t, line), " ")
	switch {
	case word == "as":
		caller, ok := s.callers[rest]
		if !ok {
			t.Fatalf("no caller %q", rest)
		}
		s.caller = caller
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
		s.check(t, word, rest)
	default:
		path, body, _ := strings.Cut(rest, " ")
		s.send(t, word, path, body)
	}
}

// client waits longer than Neutron takes for anything here.
var client = &http.Client{Timeout: time.Minute}

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
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	s.exchanges++
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
