package neutron

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The links of the answers name a host that is not the server's: a client that
// follows them as they are fails.
const elsewhere = "http://neutron.invalid:9696/v2.0/"

func TestListRequests(t *testing.T) {
	tests := map[string]struct {
		list      func(context.Context, *Client) (any, error)
		answer    string
		wantPath  string
		wantQuery url.Values
		want      any
	}{
		"networks of the project": {
			list: func(ctx context.Context, c *Client) (any, error) {
				return c.ListNetworks(ctx, NetworkFilter{})
			},
			answer:    `{"networks":[{"id":"n1","description":"x"},{"id":"n2","provider:network_type":"flat","provider:physical_network":"physnet1","provider:segmentation_id":null}]}`,
			wantPath:  "/v2.0/networks",
			wantQuery: url.Values{"project_id": {project}, "limit": {"1000"}},
			want: []Network{
				{ID: "n1", Description: "x"},
				{ID: "n2", Provider: &Provider{NetworkType: "flat", PhysicalNetwork: "physnet1"}},
			},
		},
		"networks whose description differs in case or spaces are dropped": {
			list: func(ctx context.Context, c *Client) (any, error) {
				return c.ListNetworks(ctx, NetworkFilter{Description: "a/B c&d"})
			},
			answer:    `{"networks":[{"id":"n1","description":"a/b c&d"},{"id":"n2","description":"a/B c&d"},{"id":"n3","description":"a/B c&d "}]}`,
			wantPath:  "/v2.0/networks",
			wantQuery: url.Values{"project_id": {project}, "limit": {"1000"}, "description": {"a/B c&d"}},
			want:      []Network{{ID: "n2", Description: "a/B c&d"}},
		},
		"no networks": {
			list: func(ctx context.Context, c *Client) (any, error) {
				return c.ListNetworks(ctx, NetworkFilter{})
			},
			answer:    `{"networks":[]}`,
			wantPath:  "/v2.0/networks",
			wantQuery: url.Values{"project_id": {project}, "limit": {"1000"}},
			want:      []Network(nil),
		},
		"subnets of the project": {
			list: func(ctx context.Context, c *Client) (any, error) {
				return c.ListSubnets(ctx, SubnetFilter{Description: "m"})
			},
			answer:    `{"subnets":[{"id":"s1","description":"M"},{"id":"s2","description":"m","gateway_ip":null}]}`,
			wantPath:  "/v2.0/subnets",
			wantQuery: url.Values{"project_id": {project}, "limit": {"1000"}, "description": {"m"}},
			want:      []Subnet{{ID: "s2", Description: "m"}},
		},
		"subnets of a network, whoever owns them": {
			list: func(ctx context.Context, c *Client) (any, error) {
				return c.ListSubnets(ctx, SubnetFilter{NetworkID: networkID})
			},
			answer:    `{"subnets":[{"id":"s1","project_id":"other"}]}`,
			wantPath:  "/v2.0/subnets",
			wantQuery: url.Values{"network_id": {networkID}, "limit": {"1000"}},
			want:      []Subnet{{ID: "s1", ProjectID: "other"}},
		},
		"ports of a network": {
			list:      func(ctx context.Context, c *Client) (any, error) { return c.ListPorts(ctx, networkID) },
			answer:    `{"ports":[{"id":"p1","name":"p","network_id":"n1","device_owner":"compute:nova","device_id":"d1","fixed_ips":[]}]}`,
			wantPath:  "/v2.0/ports",
			wantQuery: url.Values{"network_id": {networkID}, "limit": {"1000"}},
			want:      []Port{{ID: "p1", Name: "p", NetworkID: "n1", DeviceOwner: "compute:nova", DeviceID: "d1"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []request
			c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = append(got, record(t, r))
				answer(w, 200, tc.answer)
			}))
			result, err := tc.list(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			want := []request{{Method: "GET", Path: tc.wantPath, Query: tc.wantQuery, Token: token}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListReadsAllPages(t *testing.T) {
	links := func(marker string) string {
		return fmt.Sprintf(`"networks_links":[{"rel":"previous","href":"%[1]snetworks?limit=1000&page_reverse=True"},{"rel":"next","href":"%[1]snetworks?limit=1000&marker=%[2]s"}]`, elsewhere, marker)
	}
	pages := map[string]string{
		"":   `{"networks":[{"id":"n1"},{"id":"n2"}],` + links("n2") + `}`,
		"n2": `{"networks":[{"id":"n3"},{"id":"n4"}],` + links("n4") + `}`,
		"n4": `{"networks":[]}`,
	}
	var got []url.Values
	c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Query())
		answer(w, 200, pages[r.URL.Query().Get("marker")])
	}))
	networks, err := c.ListNetworks(t.Context(), NetworkFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Network{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}, {ID: "n4"}}, networks); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	want := []url.Values{
		{"project_id": {project}, "limit": {"1000"}},
		{"project_id": {project}, "limit": {"1000"}, "marker": {"n2"}},
		{"project_id": {project}, "limit": {"1000"}, "marker": {"n4"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

// A list that cannot be trusted must never read as "there are none".
func TestBadListIsAnError(t *testing.T) {
	const next = `{"networks":[{"id":"n1"}],"networks_links":[{"rel":"next","href":"` + elsewhere + `networks?marker=n1"}]}`
	tests := map[string]struct {
		status int
		bodies []string // one a request, the last one again
	}{
		"an object without the list":              {200, []string{`{}`}},
		"another list":                            {200, []string{`{"subnets":[]}`}},
		"null for the list":                       {200, []string{`{"networks":null}`}},
		"an object for the list":                  {200, []string{`{"networks":{}}`}},
		"a list of numbers":                       {200, []string{`{"networks":[1]}`}},
		"truncated JSON":                          {200, []string{`{"networks":[{"id":"n1"},`}},
		"an empty body":                           {200, []string{``}},
		"no content":                              {204, []string{``}},
		"a second page that fails":                {200, []string{next, `{"networks":`}},
		"a link that leads to the same page":      {200, []string{next}},
		"a link without a marker":                 {200, []string{`{"networks":[{"id":"n1"}],"networks_links":[{"rel":"next","href":"` + elsewhere + `"}]}`}},
		"a link that is not a URL":                {200, []string{`{"networks":[{"id":"n1"}],"networks_links":[{"rel":"next","href":":"}]}`}},
		"links that are no list":                  {200, []string{`{"networks":[{"id":"n1"}],"networks_links":7}`}},
		"a marker that was deleted between pages": {404, []string{neutronError("NetworkNotFound", "Network n1 could not be found.")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var requests int
			c := newClient(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				body := tc.bodies[min(requests, len(tc.bodies)-1)]
				if requests++; requests > 5 {
					t.Error("endless list")
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				answer(w, tc.status, body)
			}))
			networks, err := c.ListNetworks(t.Context(), NetworkFilter{})
			if got := ClassOf(err); got != Transient {
				t.Errorf("class %q (%v), want %q", got, err, Transient)
			}
			if networks != nil {
				t.Errorf("got %v beside the error", networks)
			}
		})
	}
}
