package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// project is that of a standalone server in the simulator.
const project = "standalone"

// neutronCalls counts, by address, what the servers of this process write to
// their Neutron. Clients of Neutron derive from the default transport, and
// those of Kubernetes do not.
var neutronCalls sync.Map // string -> *atomic.Int64

// countNeutronCalls must run before the first server is started.
func countNeutronCalls() {
	transport := http.DefaultTransport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return countingConn{conn, neutronCounter(address)}, nil
	}
}

func neutronCounter(address string) *atomic.Int64 {
	counter, _ := neutronCalls.LoadOrStore(address, &atomic.Int64{})
	return counter.(*atomic.Int64)
}

// countingConn counts writes: each request is at least one.
type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// neutronCalls is how often the server has written to its Neutron.
func (s *server) neutronCalls(t testing.TB) int64 {
	t.Helper()
	u, err := url.Parse(s.neutron)
	if err != nil {
		t.Fatal(err)
	}
	return neutronCounter(u.Host).Load()
}

func (s *server) awaitNeutronCalls(t testing.TB, count int64) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return s.neutronCalls(t) >= count, nil
	})
	if err != nil {
		t.Fatalf("got %d calls to Neutron, want %d", s.neutronCalls(t), count)
	}
}

// object is a resource of Neutron as JSON has it.
type object map[string]any

func (o object) id() string { return o.text("id") }

func (o object) text(attribute string) string {
	text, _ := o[attribute].(string)
	return text
}

// operator is the administrator of the cloud, who does by hand what he likes.
// His connections are none of the server's.
var operator = &http.Client{Transport: &http.Transport{}}

// ask makes one request to the simulator, which knows the caller without a
// token as its administrator.
func (s *server) ask(t testing.TB, method, path string, body, answer any) (status int) {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.neutron+"/v2.0"+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	response, err := operator.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer != nil && response.StatusCode < 300 {
		if err := json.Unmarshal(content, answer); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, content)
		}
	}
	return response.StatusCode
}

// make creates a network, subnet or port by hand, in the project of the server.
func (s *server) make(t testing.TB, kind string, attributes object) object {
	t.Helper()
	return s.makeAll(t, kind, []object{attributes})[0]
}

// makeAll creates many in one request.
func (s *server) makeAll(t testing.TB, kind string, attributes []object) []object {
	t.Helper()
	for _, a := range attributes {
		a["project_id"] = project
	}
	answer := map[string][]object{}
	if status := s.ask(t, http.MethodPost, "/"+kind+"s", map[string]any{kind + "s": attributes}, &answer); status != http.StatusCreated {
		t.Fatalf("making %d %ss in Neutron: got HTTP %d", len(attributes), kind, status)
	}
	return answer[kind+"s"]
}

// change updates a resource by hand.
func (s *server) change(t testing.TB, kind, id string, attributes object) {
	t.Helper()
	if status := s.ask(t, http.MethodPut, "/"+kind+"s/"+id, map[string]any{kind: attributes}, nil); status != http.StatusOK {
		t.Fatalf("changing %s %s in Neutron: got HTTP %d", kind, id, status)
	}
}

// look returns the resource, nil where there is none.
func (s *server) look(t testing.TB, kind, id string) object {
	t.Helper()
	answer := map[string]object{}
	switch status := s.ask(t, http.MethodGet, "/"+kind+"s/"+id, nil, &answer); status {
	case http.StatusOK:
		return answer[kind]
	case http.StatusNotFound:
		return nil
	default:
		t.Fatalf("reading %s %s in Neutron: got HTTP %d", kind, id, status)
		return nil
	}
}

// list returns the resources that the query selects.
func (s *server) list(t testing.TB, kind string, query url.Values) []object {
	t.Helper()
	answer := map[string][]object{}
	if status := s.ask(t, http.MethodGet, "/"+kind+"s?"+query.Encode(), nil, &answer); status != http.StatusOK {
		t.Fatalf("listing %ss in Neutron: got HTTP %d", kind, status)
	}
	return answer[kind+"s"]
}

// remove deletes a resource by hand.
func (s *server) remove(t testing.TB, kind, id string) {
	t.Helper()
	if status := s.ask(t, http.MethodDelete, "/"+kind+"s/"+id, nil, nil); status != http.StatusNoContent {
		t.Fatalf("deleting %s %s in Neutron: got HTTP %d", kind, id, status)
	}
}
