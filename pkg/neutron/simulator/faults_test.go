package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// answer is what a client gets.
type answer struct {
	Status     int
	Body       string
	Missing    int64 // of the length that was announced
	RetryAfter string
	Anonymous  bool  // bears no request ID
	Err        error // io.EOF: the connection ended before an answer; io.ErrUnexpectedEOF: it ended in it
}

// send tells what a client gets.
func send(t *testing.T, r *http.Request) (got answer) {
	t.Helper()
	response, err := client.Do(r)
	if err == nil {
		defer response.Body.Close()
		var text []byte
		text, err = io.ReadAll(response.Body)
		got = answer{
			Status:     response.StatusCode,
			Body:       string(text),
			Missing:    response.ContentLength - int64(len(text)),
			RetryAfter: response.Header.Get("Retry-After"),
			Anonymous:  response.Header.Get(requestID) == "",
		}
	}
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, ended) {
			got.Err = ended
		}
	}
	if err != nil && got.Err == nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	return got
}

// addFault makes a rule.
func addFault(t *testing.T, url, rule string) {
	t.Helper()
	if response, text := do(t, request(t, http.MethodPost, url+"/faults", rule)); response.StatusCode != http.StatusCreated {
		t.Fatalf("POST /faults %s answered %d %s", rule, response.StatusCode, text)
	}
}

// hits are those of all rules, in their order.
func hits(t *testing.T, url string) []int {
	t.Helper()
	_, text := do(t, request(t, http.MethodGet, url+"/faults", ""))
	var list struct{ Faults []struct{ Hits int } }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := make([]int, len(list.Faults))
	for i, fault := range list.Faults {
		out[i] = fault.Hits
	}
	return out
}

func networkNames(t *testing.T, url string) string {
	t.Helper()
	_, text := do(t, request(t, http.MethodGet, url+"/v2.0/networks?fields=name", ""))
	return string(text)
}

// eventually waits for a condition. The minute is for a test that fails.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
}

func TestFaultKinds(t *testing.T) {
	const whole = `{"network":{"name":"n"}}`
	for name, tc := range map[string]struct {
		rule     string
		want     answer
		wantMade bool
	}{
		"a status as from a proxy": {
			rule: `{"kind": "status", "status": 502}`,
			want: answer{Status: 502, Anonymous: true},
		},
		"a status with the time to wait": {
			rule: `{"kind": "status", "status": 429, "retryAfter": 7}`,
			want: answer{Status: 429, RetryAfter: "7", Anonymous: true},
		},
		"a status of Neutron": {
			rule: `{"kind": "status", "status": 409, "type": "OverQuota", "message": "no more"}`,
			want: answer{Status: 409, Body: `{"NeutronError":{"detail":"","message":"no more","type":"OverQuota"}}`},
		},
		"an expired token": {
			rule: `{"kind": "expire"}`,
			want: answer{Status: 401, Body: `{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}`},
		},
		"cut before anything is done": {
			rule: `{"kind": "drop"}`,
			want: answer{Err: io.EOF},
		},
		"cut after all is done": {
			rule:     `{"kind": "lost"}`,
			want:     answer{Err: io.EOF},
			wantMade: true,
		},
		"an error after all is done": {
			rule:     `{"kind": "commit-500"}`,
			want:     answer{Status: 500, Body: `{"NeutronError":{"detail":"","message":"Request Failed: internal server error while processing your request.","type":"HTTPInternalServerError"}}`},
			wantMade: true,
		},
		"cut in the middle of the answer": {
			rule:     `{"kind": "truncate"}`,
			want:     answer{Status: 201, Body: whole[:12], Missing: 12, Err: io.ErrUnexpectedEOF},
			wantMade: true,
		},
		"half an answer that ends well": {
			rule:     `{"kind": "garble"}`,
			want:     answer{Status: 201, Body: whole[:12]},
			wantMade: true,
		},
		"late": {
			rule:     `{"kind": "delay", "delay": "1ms"}`,
			want:     answer{Status: 201, Body: whole},
			wantMade: true,
		},
		"any kind may be late": {
			rule: `{"kind": "drop", "delay": "1ms"}`,
			want: answer{Err: io.EOF},
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, Options{Faults: true}).URL
			networkNames(t, url) // the connection that is cut is one that served before
			addFault(t, url, strings.TrimSuffix(tc.rule, "}")+`, "method": "POST", "times": 1}`)
			create := func() answer {
				return send(t, request(t, http.MethodPost, url+"/v2.0/networks?fields=name", `{"network": {"name": "n"}}`))
			}
			if diff := cmp.Diff(tc.want, create(), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			made := networkNames(t, url) != `{"networks":[]}`
			if made != tc.wantMade {
				t.Errorf("done is %t, want %t", made, tc.wantMade)
			}
			if diff := cmp.Diff([]int{1}, hits(t, url)); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
			if got := create(); got != (answer{Status: 201, Body: whole}) {
				t.Errorf("the request after it is answered %+v", got)
			}
		})
	}
}

// What was carried out is on disk when the connection is cut: a copy of the file shows what a crash at that moment would leave.
func TestLostIsDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "neutron.db")
	url := serve(t, Options{Path: path, Faults: true}).URL
	addFault(t, url, `{"kind": "lost", "method": "POST"}`)
	for _, name := range []string{"a", "b"} {
		if got := send(t, request(t, http.MethodPost, url+"/v2.0/networks", `{"network": {"name": "`+name+`"}}`)); !errors.Is(got.Err, io.EOF) {
			t.Fatalf("answered %+v", got)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	crashed := filepath.Join(t.TempDir(), "neutron.db")
	if err := os.WriteFile(crashed, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got := networkNames(t, serve(t, Options{Path: crashed}).URL)
	if !strings.Contains(got, `"a"`) || !strings.Contains(got, `"b"`) {
		t.Errorf("after a crash the networks are %s", got)
	}
}

// A client that gives up does not take back what it asked for.
func TestDelayOutlivesTheClient(t *testing.T) {
	url := serve(t, Options{Faults: true}).URL
	addFault(t, url, `{"kind": "delay", "delay": "1h", "method": "POST"}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := request(t, http.MethodPost, url+"/v2.0/networks", `{"network": {"name": "late"}}`).WithContext(ctx)
	ended := make(chan error, 1)
	go func() {
		response, err := client.Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	eventually(t, "the request is late", func() bool { return hits(t, url)[0] == 1 })
	if got := networkNames(t, url); got != `{"networks":[]}` {
		t.Errorf("networks are %s before the delay is over", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	eventually(t, "it is carried out", func() bool { return networkNames(t, url) == `{"networks":[{"name":"late"}]}` })
}

func TestFaultStrikes(t *testing.T) {
	const get, del = "GET /v2.0/networks", "DELETE /v2.0/networks/x"
	for name, tc := range map[string]struct {
		rules    []string
		requests []string
		want     []int
		wantHits []int
	}{
		"each third, twice in all": {
			rules:    []string{`{"kind": "status", "status": 503, "every": 3, "times": 2}`},
			requests: []string{get, get, get, get, get, get, get, get, get},
			want:     []int{200, 200, 503, 200, 200, 503, 200, 200, 200},
			wantHits: []int{2},
		},
		"only those of the method count": {
			rules:    []string{`{"kind": "status", "status": 503, "method": "GET", "every": 2}`},
			requests: []string{get, del, del, get, get, get},
			want:     []int{200, 404, 404, 503, 200, 503},
			wantHits: []int{2},
		},
		"only those of the path count": {
			rules:    []string{`{"kind": "status", "status": 503, "path": "^/v2.0/(sub)?nets?$", "every": 2}`},
			requests: []string{"GET /v2.0/net", get, "GET /v2.0/subnet", "GET /v2.0/subnets/x", "GET /v2.0/nets"},
			want:     []int{404, 200, 503, 404, 404},
			wantHits: []int{1},
		},
		"the first wins": {
			rules:    []string{`{"kind": "status", "status": 502, "times": 1}`, `{"kind": "status", "status": 503, "times": 2}`},
			requests: []string{get, get, get, get},
			want:     []int{502, 503, 503, 200},
			wantHits: []int{1, 2},
		},
		"rules of one rhythm both have their turn": {
			rules:    []string{`{"kind": "status", "status": 502, "every": 2}`, `{"kind": "status", "status": 503, "every": 2}`},
			requests: []string{get, get, get, get, get, get, get},
			want:     []int{200, 502, 503, 502, 200, 502, 503},
			wantHits: []int{3, 2},
		},
		"a delay leaves the request to the others": {
			rules:    []string{`{"kind": "delay", "delay": "1ms"}`, `{"kind": "delay", "delay": "1ms"}`, `{"kind": "expire", "every": 2}`},
			requests: []string{get, get, get},
			want:     []int{200, 401, 200},
			wantHits: []int{3, 3, 1},
		},
		"an answer without a body can't be halved": {
			rules:    []string{`{"kind": "truncate"}`, `{"kind": "garble"}`, `{"kind": "commit-500"}`},
			requests: []string{del},
			want:     []int{500},
			wantHits: []int{0, 0, 1},
		},
		"the versions can fail as well": {
			rules:    []string{`{"kind": "status", "status": 503}`},
			requests: []string{"GET /"},
			want:     []int{503},
			wantHits: []int{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, Options{Faults: true}).URL
			for _, rule := range tc.rules {
				addFault(t, url, rule)
			}
			var got []int
			for _, line := range tc.requests {
				method, path, _ := strings.Cut(line, " ")
				got = append(got, send(t, request(t, method, url+path, "")).Status)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantHits, hits(t, url)); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsEndpoint(t *testing.T) {
	s, err := New(Options{Faults: true})
	if err != nil {
		t.Fatal(err)
	}
	const (
		ofFirst = `"method":"POST","path":"/v2.0/networks","every":3,"times":5,"kind":"status","delay":"20ms","status":503,"type":"T","message":"m","retryAfter":7}`
		given   = `{` + ofFirst
		first   = `{"id":1,"hits":0,` + ofFirst
		third   = `{"id":3,"hits":1,"every":1,"kind":"expire"}`
	)
	for i, step := range []struct {
		method, path, body string
		wantStatus         int
		want               string
	}{
		{"GET", "/faults", "", 200, `{"faults":[]}`},
		{"POST", "/faults", given, 201, first},
		{"POST", "/faults", `{"kind": "drop", "path": "nosuch"}`, 201, `{"id":2,"hits":0,"path":"nosuch","every":1,"kind":"drop"}`},
		{"POST", "/faults", `{"kind": "expire"}`, 201, `{"id":3,"hits":0,"every":1,"kind":"expire"}`},
		{"DELETE", "/faults/2", "", 204, ""},
		{"DELETE", "/faults/2", "", 404, "no rule has the id \"2\"\n"},
		{"DELETE", "/faults/x", "", 404, "no rule has the id \"x\"\n"},
		{"GET", "/v2.0/networks?fields=id", "", 401, string(mustJSON(t, errUnauthorized.body()))},
		{"GET", "/faults", "", 200, `{"faults":[` + first + `,` + third + `]}`},
		{"PUT", "/faults", "", 405, "Method Not Allowed\n"},
		{"DELETE", "/faults", "", 204, ""},
		{"GET", "/faults", "", 200, `{"faults":[]}`},
		{"GET", "/v2.0/networks?fields=id", "", 200, `{"networks":[]}`},
		{"POST", "/faults", `{"kind": "drop"}`, 201, `{"id":4,"hits":0,"every":1,"kind":"drop"}`},
	} {
		status, text := handler{s}.answer(request(t, step.method, "http://127.0.0.1"+step.path, step.body))
		if status != step.wantStatus || string(text) != step.want {
			t.Errorf("%d: %s %s answered %d %s, want %d %s", i, step.method, step.path, status, text, step.wantStatus, step.want)
		}
	}
	if got := s.Requests(); got != 2 {
		t.Errorf("Requests() = %d, want those for Neutron alone, 2", got)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFaultsAreOff(t *testing.T) {
	url := serve(t, Options{}).URL
	unknown, _ := do(t, request(t, http.MethodGet, url+"/nosuch", ""))
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		response, _ := do(t, request(t, method, url+"/faults", `{"kind": "drop"}`))
		if response.StatusCode != unknown.StatusCode {
			t.Errorf("%s /faults answered %d, want %d as any unknown path", method, response.StatusCode, unknown.StatusCode)
		}
	}
}

func TestFaultsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ rule, want string }{
		"no JSON":                           {`{`, "decode rule: unexpected EOF"},
		"more than one":                     {`{"kind": "drop"} {"kind": "drop"}`, "decode rule: must be one JSON object"},
		"an unknown field":                  {`{"kind": "drop", "evry": 2}`, `decode rule: json: unknown field "evry"`},
		"an id":                             {`{"kind": "drop", "id": 2}`, `decode rule: json: unknown field "id"`},
		"a number that is text":             {`{"kind": "drop", "every": "2"}`, "every: must be of type int, not string"},
		"a text that is a number":           {`{"kind": "delay", "delay": 20}`, "delay: must be of type string, not number"},
		"no kind":                           {`{}`, "kind: must be one of status, delay, drop, lost, commit-500, expire, truncate, garble"},
		"an unknown kind":                   {`{"kind": "explode"}`, "kind: must be one of status, delay, drop, lost, commit-500, expire, truncate, garble"},
		"an unknown method":                 {`{"kind": "drop", "method": "post"}`, "method: must be GET, POST, PUT, DELETE or empty for any"},
		"half of nothing":                   {`{"kind": "garble", "method": "DELETE"}`, "method: must not be DELETE with kind garble, its answer has no body"},
		"a path that is no expression":      {`{"kind": "drop", "path": "("}`, "path: must be a regular expression: error parsing regexp: missing closing ): `(`"},
		"a negative rhythm":                 {`{"kind": "drop", "every": -1}`, "every: must be 1 or more, or 0 for 1"},
		"a negative end":                    {`{"kind": "drop", "times": -1}`, "times: must be 1 or more, or 0 for no end"},
		"a delay that is none":              {`{"kind": "drop", "delay": "20"}`, "delay: must be a duration such as 20ms"},
		"a negative delay":                  {`{"kind": "drop", "delay": "-1s"}`, "delay: must be a duration such as 20ms"},
		"a delay without one":               {`{"kind": "delay"}`, "delay: must be more than 0 with kind delay"},
		"a status without one":              {`{"kind": "status"}`, "status: must be from 400 to 599"},
		"a status that is none":             {`{"kind": "status", "status": 600}`, "status: must be from 400 to 599"},
		"a status of another kind":          {`{"kind": "drop", "status": 500}`, "status: must be left out unless kind is status"},
		"a type of another kind":            {`{"kind": "drop", "type": "OverQuota"}`, "type: must be left out unless kind is status"},
		"a message without a type":          {`{"kind": "status", "status": 500, "message": "m"}`, "message: must be left out unless there is a type"},
		"a negative time to wait":           {`{"kind": "status", "status": 503, "retryAfter": -1}`, "retryAfter: must be a number of seconds, 1 or more"},
		"a status that says no such time":   {`{"kind": "status", "status": 500, "retryAfter": 1}`, "retryAfter: must be left out unless status is 429 or 503"},
		"all that is wrong is told at once": {`{"kind": "drop", "every": -1, "times": -1}`, "every: must be 1 or more, or 0 for 1\ntimes: must be 1 or more, or 0 for no end"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, Options{Faults: true}).URL
			response, text := do(t, request(t, http.MethodPost, url+"/faults", tc.rule))
			if response.StatusCode != http.StatusBadRequest || string(text) != tc.want+"\n" {
				t.Errorf("answered %d %s, want 400 %s", response.StatusCode, text, tc.want)
			}
			if got := hits(t, url); len(got) > 0 {
				t.Errorf("%d rules are in force", len(got))
			}
		})
	}
}

func TestFaultsAtOnce(t *testing.T) {
	const workers, each, times = 8, 20, 25
	url := serve(t, Options{Faults: true}).URL
	addFault(t, url, fmt.Sprintf(`{"kind": "status", "status": 503, "every": 3, "times": %d}`, times))
	statuses := make(chan int, workers*each)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range each {
				statuses <- send(t, request(t, http.MethodGet, url+"/v2.0/networks", "")).Status
			}
		})
		group.Go(func() {
			// Rules come and go beside it.
			text := send(t, request(t, http.MethodPost, url+"/faults", `{"kind": "delay", "delay": "1ms"}`)).Body
			var made struct{ ID int }
			if err := json.Unmarshal([]byte(text), &made); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			send(t, request(t, http.MethodDelete, fmt.Sprintf("%s/faults/%d", url, made.ID), ""))
		})
	}
	group.Wait()
	close(statuses)
	got := map[int]int{}
	for status := range statuses {
		got[status]++
	}
	if diff := cmp.Diff(map[int]int{503: times, 200: workers*each - times}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{times}, hits(t, url)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}
