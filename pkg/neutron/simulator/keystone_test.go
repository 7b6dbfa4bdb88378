package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	demoPassword   = `"identity": {"methods": ["password"], "password": {"user": {"name": "demo", "password": "demo", "domain": {"id": "default"}}}}`
	demoProject    = `"scope": {"project": {"name": "demo", "domain": {"id": "default"}}}`
	demoCredential = `"identity": {"methods": ["application_credential"], "application_credential": {"id": "demo:p", "secret": "demo"}}`
)

func authBody(parts ...string) string { return `{"auth": {` + strings.Join(parts, ", ") + `}}` }

func TestKeystoneVersion(t *testing.T) {
	url := serve(t, Options{}).URL
	want := `{"version":{"id":"v3.14","links":[{"href":"` + url + `/identity/v3/","rel":"self"}],"media-types":[{"base":"application/json",` +
		`"type":"application/vnd.openstack.identity-v3+json"}],"status":"stable","updated":"2020-04-07T00:00:00Z"}}`
	for _, path := range []string{"/identity/v3", "/identity/v3/"} {
		response, body := do(t, request(t, http.MethodGet, url+path, ""))
		if response.StatusCode != http.StatusOK || string(body) != want {
			t.Errorf("GET %s answered %d %s, want 200 %s", path, response.StatusCode, body, want)
		}
	}
	for _, path := range []string{"/identity", "/identity/v3/auth/tokens", "/identity/v3/users"} {
		if response, _ := do(t, request(t, http.MethodGet, url+path, "")); response.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s answered %d, want 404", path, response.StatusCode)
		}
	}
}

// The whole body is that of a real Keystone, but for the random parts and what is a name here and an ID there.
func TestTokenBody(t *testing.T) {
	url := serve(t, Options{}).URL
	person := func(name string) string {
		return `"user": {"domain": {"id": "default", "name": "Default"}, "id": "` + name + `", "name": "` + name + `", "password_expires_at": null}`
	}
	project := func(name, role string) string {
		endpoints := func(name, url string) string {
			var list []string
			for _, access := range []string{"public", "internal", "admin"} {
				list = append(list, `{"id": "`+name+`-`+access+`", "interface": "`+access+`", "region_id": "RegionOne", "url": "`+url+`", "region": "RegionOne"}`)
			}
			return strings.Join(list, ", ")
		}
		return `"project": {"domain": {"id": "default", "name": "Default"}, "id": "` + name + `", "name": "` + name + `"}, "is_domain": false,
			"roles": [{"id": "` + role + `", "name": "` + role + `"}],
			"catalog": [{"endpoints": [` + endpoints("keystone", url+"/identity/v3") + `], "id": "keystone", "type": "identity", "name": "keystone"},
				{"endpoints": [` + endpoints("neutron", url) + `], "id": "neutron", "type": "network", "name": "neutron"}]`
	}
	for name, tc := range map[string]struct {
		body, wantToken string
		want            []string // parts of the token's body
	}{
		"a member by names": {
			body:      authBody(demoPassword, demoProject),
			wantToken: "it:demo:demo:member",
			want:      []string{`"methods": ["password"]`, person("demo"), project("demo", "member")},
		},
		"the administrator by ids": {
			body: authBody(`"identity": {"methods": ["password"], "password": {"user": {"id": "admin", "password": "admin"}}}`,
				`"scope": {"project": {"id": "some-project"}}`),
			wantToken: "it:admin:some-project:admin",
			want:      []string{`"methods": ["password"]`, person("admin"), project("some-project", "admin")},
		},
		"an application credential": {
			body:      authBody(demoCredential),
			wantToken: "it:demo:p:member",
			want: []string{`"methods": ["application_credential"]`, person("demo"), project("p", "member"),
				`"application_credential": {"id": "demo:p", "name": "demo:p", "restricted": true}`},
		},
		"no scope": {
			body:      authBody(demoPassword),
			wantToken: "it:demo::",
			want:      []string{`"methods": ["password"]`, person("demo")},
		},
		"a scope that says so": {
			body:      authBody(demoPassword, `"scope": "unscoped"`),
			wantToken: "it:demo::",
			want:      []string{`"methods": ["password"]`, person("demo")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			response, text := do(t, request(t, http.MethodPost, url+"/identity/v3/auth/tokens", tc.body))
			if response.StatusCode != http.StatusCreated {
				t.Fatalf("answered %d %s, want 201", response.StatusCode, text)
			}
			var got, want map[string]map[string]any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(`{"token": {`+strings.Join(tc.want, ", ")+`}}`), &want); err != nil {
				t.Fatal(err)
			}
			token := response.Header.Get("X-Subject-Token")
			at := strings.LastIndexByte(token, ':')
			if token[:at] != tc.wantToken {
				t.Errorf("token is %q, want %q and the time", token, tc.wantToken)
			}
			if expires := parseTime(t, got["token"]["expires_at"]); fmt.Sprint(expires.Unix()) != token[at+1:] {
				t.Errorf("token is %q, and expires_at is %v", token, expires)
			}
			parseTime(t, got["token"]["issued_at"])
			if ids, _ := got["token"]["audit_ids"].([]any); len(ids) != 1 || len(fmt.Sprint(ids[0])) != 22 {
				t.Errorf("audit_ids are %v", ids)
			}
			for _, random := range []string{"expires_at", "issued_at", "audit_ids"} {
				delete(got["token"], random)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func parseTime(t *testing.T, text any) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", fmt.Sprint(text))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A token is good for its lifetime at least, and not a second longer.
func TestTokenLifetime(t *testing.T) {
	for name, tc := range map[string]struct{ given, want time.Duration }{
		"an hour is the default": {0, time.Hour},
		"a second":               {time.Second, time.Second},
		"less than a second":     {time.Millisecond, time.Millisecond},
		"two days":               {48 * time.Hour, 48 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, Options{TokenLifetime: tc.given}).URL
			before := time.Now()
			response, _ := do(t, request(t, http.MethodPost, url+"/identity/v3/auth/tokens", authBody(demoCredential)))
			after := time.Now()
			token := response.Header.Get("X-Subject-Token")
			seconds, err := strconv.ParseInt(token[strings.LastIndexByte(token, ':')+1:], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			expires := time.Unix(seconds, 0)
			if earliest, latest := before.Add(tc.want), after.Add(tc.want+time.Second); expires.Before(earliest) || !expires.Before(latest) {
				t.Errorf("expires %v, want from %v to %v", expires, earliest, latest)
			}
		})
	}
	if _, err := New(Options{TokenLifetime: -time.Second}); err == nil {
		t.Error("a negative lifetime is not refused")
	}
}

func TestTokenServes(t *testing.T) {
	url := serve(t, Options{}).URL
	for name, tc := range map[string]struct {
		body string
		want int
	}{
		"a project's": {authBody(demoCredential), http.StatusOK},
		"nobody's":    {authBody(demoPassword), http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			response, _ := do(t, request(t, http.MethodPost, url+"/identity/v3/auth/tokens", tc.body))
			list := request(t, http.MethodGet, url+"/v2.0/networks", "")
			list.Header.Set("X-Auth-Token", response.Header.Get("X-Subject-Token"))
			if response, text := do(t, list); response.StatusCode != tc.want {
				t.Errorf("answered %d %s, want %d", response.StatusCode, text, tc.want)
			}
		})
	}
}

func TestTokenRefused(t *testing.T) {
	url := serve(t, Options{}).URL
	const (
		unauthorized = "The request you have made requires authentication."
		malformed    = " The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error."
	)
	user := func(text string) string {
		return `"identity": {"methods": ["password"], "password": {"user": ` + text + `}}`
	}
	credential := func(text string) string {
		return `"identity": {"methods": ["application_credential"], "application_credential": ` + text + `}`
	}
	for name, tc := range map[string]struct {
		body        string
		wantStatus  int
		wantMessage string
	}{
		"a wrong password":                {authBody(user(`{"id": "demo", "password": "admin"}`), demoProject), 401, unauthorized},
		"no password":                     {authBody(user(`{"id": "demo"}`), demoProject), 401, unauthorized},
		"a name that fits no token":       {authBody(user(`{"id": "a:b", "password": "a:b"}`), demoProject), 401, unauthorized},
		"a project that fits no token":    {authBody(demoPassword, `"scope": {"project": {"id": "a b"}}`), 401, unauthorized},
		"a domain":                        {authBody(demoPassword, `"scope": {"domain": {"id": "default"}}`), 401, unauthorized},
		"the system":                      {authBody(demoPassword, `"scope": {"system": {"all": true}}`), 401, unauthorized},
		"a wrong secret":                  {authBody(credential(`{"id": "demo:p", "secret": "p"}`)), 401, unauthorized},
		"an unknown credential":           {authBody(credential(`{"id": "demo", "secret": "demo"}`)), 404, "Could not find Application Credential: demo."},
		"a credential for two projects":   {authBody(credential(`{"id": "demo:p:q", "secret": "demo"}`)), 404, "Could not find Application Credential: demo:p:q."},
		"a credential with a scope":       {authBody(demoCredential, demoProject), 401, "Error authenticating with application credential: Application credentials cannot request a scope."},
		"another method":                  {authBody(`"identity": {"methods": ["token"], "token": {"id": "x"}}`), 401, "Attempted to authenticate with an unsupported method."},
		"no JSON":                         {`{`, 400, "Expecting to find valid JSON in request body." + malformed},
		"too much":                        {strings.Repeat(" ", maxBody) + authBody(demoCredential), 400, "Expecting to find valid JSON in request body." + malformed},
		"nothing":                         {`{}`, 400, "Expecting to find auth in request body." + malformed},
		"a method without its part":       {authBody(`"identity": {"methods": ["password"]}`), 400, "Expecting to find password in identity." + malformed},
		"another method without its part": {authBody(`"identity": {"methods": ["application_credential"]}`), 400, "Expecting to find application_credential in identity." + malformed},
		"nobody":                          {authBody(user(`{"password": "x"}`)), 400, "Invalid input for field identity/password/user: id or name must be present."},
		"a name without a domain":         {authBody(user(`{"name": "demo", "password": "demo"}`)), 400, "Expecting to find domain in user." + malformed},
		"a project without a domain":      {authBody(demoPassword, `"scope": {"project": {"name": "demo"}}`), 400, "Expecting to find domain in project." + malformed},
		"a project without a name":        {authBody(demoPassword, `"scope": {"project": {}}`), 400, "Invalid input for field scope/project: id or name must be present."},
		"a scope of nothing":              {authBody(demoPassword, `"scope": {}`), 400, "Expecting to find system, project, domain, OS-TRUST:trust or unscoped in scope." + malformed},
		"a scope that is a word":          {authBody(demoPassword, `"scope": "x"`), 400, "Expecting to find system, project, domain, OS-TRUST:trust or unscoped in scope." + malformed},
	} {
		t.Run(name, func(t *testing.T) {
			response, text := do(t, request(t, http.MethodPost, url+"/identity/v3/auth/tokens", tc.body))
			want := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"title":%q}}`, tc.wantStatus, tc.wantMessage, http.StatusText(tc.wantStatus))
			if response.StatusCode != tc.wantStatus || string(text) != want {
				t.Errorf("answered %d %s, want %s", response.StatusCode, text, want)
			}
			if token := response.Header.Get("X-Subject-Token"); token != "" {
				t.Errorf("came with the token %q", token)
			}
			asked := response.Header.Get("Www-Authenticate")
			if wantAsked := `Keystone uri="` + url + `/identity/v3"`; (asked == wantAsked) != (tc.wantStatus == 401) {
				t.Errorf("Www-Authenticate is %q", asked)
			}
		})
	}
}
