package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
)

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

func request(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// post creates and returns the id.
func post(t testing.TB, url, collection, body string) string {
	t.Helper()
	name := strings.TrimSuffix(collection, "s")
	response, text := do(t, request(t, http.MethodPost, url+"/v2.0/"+collection, `{"`+name+`": `+body+`}`))
	var answer map[string]map[string]any
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("POST %s %s answered %d %s", collection, body, response.StatusCode, text)
	}
	return fmt.Sprint(answer[name]["id"])
}

func TestAnswerForm(t *testing.T) {
	url := serve(t, Options{}).URL
	for name, tc := range map[string]struct {
		method, path, body, token string
		wantStatus                int
		wantBody                  string
		wantHeader                map[string]string
	}{
		"the versions need no token": {
			method: http.MethodGet, path: "/", token: "bad", wantStatus: 200,
			wantBody:   `{"versions":[{"id":"v2.0","links":[{"href":"` + url + `/v2.0/","rel":"self"}],"status":"CURRENT"}]}`,
			wantHeader: map[string]string{"Content-Type": "application/json"},
		},
		"outside v2.0 nothing is JSON": {
			method: http.MethodGet, path: "/v3/networks", wantStatus: 404,
			wantBody:   "404 Not Found\n\nThe resource could not be found.\n\n   \n",
			wantHeader: map[string]string{"Content-Type": "text/plain; charset=UTF-8"},
		},
		"a refused token names Keystone": {
			method: http.MethodGet, path: "/v2.0/networks", token: "bad", wantStatus: 401,
			wantBody:   `{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}`,
			wantHeader: map[string]string{"Www-Authenticate": `Keystone uri="` + url + `/identity/v3"`},
		},
		"JSON is ASCII": {
			method: http.MethodPut, path: "/v2.0/quotas/x", body: `{"quota": {"ñ 😀 <": 1}}`, wantStatus: 400,
			wantBody: `{"NeutronError":{"detail":"","message":"Unrecognized attribute(s) '\u00f1 \ud83d\ude00 <'","type":"HTTPBadRequest"}}`,
		},
		"a large body is refused": {
			method: http.MethodPost, path: "/v2.0/networks", body: strings.Repeat(" ", maxBody+1), wantStatus: 413,
			wantBody: `{"NeutronError":{"detail":"","message":"Request is too large.","type":"HTTPRequestEntityTooLarge"}}`,
		},
		"deep JSON is refused": {
			method: http.MethodPost, path: "/v2.0/networks", body: strings.Repeat("[", 100_000), wantStatus: 400,
			wantBody: `{"NeutronError":{"detail":"","message":"Body contains invalid data","type":"HTTPBadRequest"}}`,
		},
		"the type of a body is not looked at": {
			method: http.MethodPost, path: "/v2.0/networks?fields=name", body: `{"network": {"name": "ct"}}`, wantStatus: 201,
			wantBody: `{"network":{"name":"ct"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, tc.method, url+tc.path, tc.body)
			if tc.token != "" {
				r.Header.Set("X-Auth-Token", tc.token)
			}
			response, body := do(t, r)
			if diff := cmp.Diff(tc.wantBody, string(body)); response.StatusCode != tc.wantStatus || diff != "" {
				t.Errorf("answered %d, want %d; body (-want +got):\n%s", response.StatusCode, tc.wantStatus, diff)
			}
			got := map[string]string{}
			for header := range maps.Keys(tc.wantHeader) {
				got[header] = response.Header.Get(header)
			}
			if diff := cmp.Diff(tc.wantHeader, got); len(got) > 0 && diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if id := response.Header.Get("X-Openstack-Request-Id"); !strings.HasPrefix(id, "req-") {
				t.Errorf("request id is %q", id)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "neutron.db")
	lists := func(url string) map[string]string {
		out := map[string]string{}
		for _, list := range []string{"networks", "subnets", "ports", "routers", "quotas/p", "quotas/fake_project_id/details"} {
			_, text := do(t, request(t, http.MethodGet, url+"/v2.0/"+list, ""))
			out[list] = string(text)
		}
		return out
	}
	run := func(use func(url string)) {
		s, err := New(Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s)
		use(server.URL)
		server.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var want, got map[string]string
	run(func(url string) {
		id := post(t, url, "networks", `{"name": "kept", "description": "é"}`)
		post(t, url, "subnets", `{"network_id": "`+id+`", "ip_version": 4, "cidr": "10.0.0.0/24", "dns_nameservers": ["1.1.1.1"], "host_routes": [{"destination": "10.1.0.0/16", "nexthop": "10.0.0.9"}]}`)
		post(t, url, "subnets", `{"network_id": "`+id+`", "ip_version": 6, "cidr": "::ffff:10.0.0.0/120", "gateway_ip": null}`)
		post(t, url, "ports", `{"network_id": "`+id+`", "name": "p"}`)
		post(t, url, "routers", `{}`)
		gone := post(t, url, "networks", `{}`)
		do(t, request(t, http.MethodDelete, url+"/v2.0/networks/"+gone, ""))
		do(t, request(t, http.MethodPut, url+"/v2.0/networks/"+id+"/tags/red", ""))
		do(t, request(t, http.MethodPut, url+"/v2.0/quotas/p", `{"quota": {"network": 3}}`))
		want = lists(url)
	})
	run(func(url string) { got = lists(url) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state after a restart (-before +after):\n%s", diff)
	}
	if !strings.Contains(want["networks"], `"kept"`) || strings.Count(want["subnets"], `"cidr"`) != 2 {
		t.Errorf("the state to keep was %v", want)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, write := range map[string]func(t *testing.T, path string){
		"a file of another form": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("not bbolt ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a value of another form": func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			err = db.Update(func(tx *bolt.Tx) error {
				bucket, err := tx.CreateBucket([]byte("networks"))
				if err != nil {
					return err
				}
				return bucket.Put([]byte("id"), []byte("{"))
			})
			if err != nil {
				t.Fatal(err)
			}
		},
		"a file that is held": func(t *testing.T, path string) {
			s, err := New(Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "neutron.db")
			write(t, path)
			if _, err := New(Options{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("New returned %v, want an error that names the file", err)
			}
		})
	}
}

// A write that cannot be committed is refused and leaves nothing behind.
func TestCommitFails(t *testing.T) {
	s, err := New(Options{Path: filepath.Join(t.TempDir(), "neutron.db")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	response, _ := do(t, request(t, http.MethodPost, server.URL+"/v2.0/networks", `{"network": {}}`))
	if response.StatusCode != http.StatusInternalServerError {
		t.Errorf("POST answered %d, want 500", response.StatusCode)
	}
	if _, body := do(t, request(t, http.MethodGet, server.URL+"/v2.0/networks", "")); string(body) != `{"networks":[]}` {
		t.Errorf("networks are %s", body)
	}
}

func TestRequests(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/v2.0/networks", "/nosuch"} {
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	if got := s.Requests(); got != 3 {
		t.Errorf("Requests() = %d, want 3", got)
	}
}

func TestAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		n    int
		send func(t *testing.T, url, id string, i int) *http.Request
		want map[int]int // how often each status
	}{
		"of equal subnets one is made": {
			n: 6,
			send: func(t *testing.T, url, id string, _ int) *http.Request {
				return request(t, http.MethodPost, url+"/v2.0/subnets", `{"subnet": {"network_id": "`+id+`", "ip_version": 4, "cidr": "10.0.0.0/24"}}`)
			},
			want: map[int]int{201: 1, 400: 5},
		},
		"of deletes one is done": {
			n: 8,
			send: func(t *testing.T, url, id string, _ int) *http.Request {
				return request(t, http.MethodDelete, url+"/v2.0/networks/"+id, "")
			},
			want: map[int]int{204: 1, 404: 7},
		},
		"of updates at one revision one is done": {
			n: 8,
			send: func(t *testing.T, url, id string, i int) *http.Request {
				r := request(t, http.MethodPut, url+"/v2.0/networks/"+id, fmt.Sprintf(`{"network": {"name": "n%d"}}`, i))
				r.Header.Set("If-Match", "revision_number=1")
				return r
			},
			want: map[int]int{200: 1, 412: 7},
		},
		"reads go on": {
			n: 8,
			send: func(t *testing.T, url, id string, i int) *http.Request {
				if i%2 == 0 {
					return request(t, http.MethodPost, url+"/v2.0/networks", `{"network": {}}`)
				}
				return request(t, http.MethodGet, url+"/v2.0/networks?id="+id, "")
			},
			want: map[int]int{200: 4, 201: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, Options{Path: filepath.Join(t.TempDir(), "neutron.db")}).URL
			id := post(t, url, "networks", `{}`)
			statuses := make(chan int, tc.n)
			var group sync.WaitGroup
			for i := range tc.n {
				r := tc.send(t, url, id, i)
				group.Go(func() {
					response, err := client.Do(r)
					if err != nil {
						t.Error(err)
						return
					}
					_ = response.Body.Close()
					statuses <- response.StatusCode
				})
			}
			group.Wait()
			close(statuses)
			got := map[int]int{}
			for status := range statuses {
				got[status]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}
