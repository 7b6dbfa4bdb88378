package neutron

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	token     = "gAAAAABtoken-of-the-test"
	project   = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	networkID = "5083b37c-d324-41ce-986e-aed9d56b442f"
	subnetID  = "0a2455b2-7b41-4b04-999e-3586427cb41c"

	memberNetwork = `{"network":{"id":"5083b37c-d324-41ce-986e-aed9d56b442f","name":"basic","tenant_id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","admin_state_up":true,"mtu":1450,"status":"ACTIVE","subnets":[],"shared":false,"project_id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","port_security_enabled":true,"router:external":false,"description":"d","tags":[],"created_at":"2026-11-29T11:17:31Z","updated_at":"2026-11-29T11:17:31Z","revision_number":1}}`
	adminNetwork  = `{"network":{"id":"5083b37c-d324-41ce-986e-aed9d56b442f","name":"basic","admin_state_up":false,"mtu":1450,"status":"ACTIVE","shared":true,"project_id":"fake_project_id","router:external":true,"provider:network_type":"vxlan","provider:physical_network":null,"provider:segmentation_id":3483,"description":"","revision_number":2}}`
	localNetwork  = `{"network":{"id":"5083b37c-d324-41ce-986e-aed9d56b442f","provider:network_type":"local","provider:physical_network":null,"provider:segmentation_id":null}}`
	v4Subnet      = `{"subnet":{"id":"0a2455b2-7b41-4b04-999e-3586427cb41c","name":"s","network_id":"5083b37c-d324-41ce-986e-aed9d56b442f","ip_version":4,"subnetpool_id":null,"enable_dhcp":true,"ipv6_ra_mode":null,"ipv6_address_mode":null,"gateway_ip":"10.9.0.1","cidr":"10.9.0.0/24","allocation_pools":[{"start":"10.9.0.2","end":"10.9.0.254"}],"host_routes":[{"destination":"10.1.0.0/16","nexthop":"10.9.0.9"}],"dns_nameservers":["1.1.1.1"],"description":"","revision_number":0,"project_id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}`
	v6Subnet      = `{"subnet":{"id":"0a2455b2-7b41-4b04-999e-3586427cb41c","ip_version":6,"enable_dhcp":true,"ipv6_ra_mode":"slaac","ipv6_address_mode":"slaac","gateway_ip":null,"cidr":"fd00::/64","allocation_pools":[],"host_routes":[],"dns_nameservers":[]}}`
)

func newClient(t *testing.T, endpoint string, tweaks ...func(*Options)) *Client {
	t.Helper()
	o := Options{Endpoint: endpoint, Token: token, ProjectID: project, Region: "RegionOne"}
	for _, tweak := range tweaks {
		tweak(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.service.HTTPClient.CloseIdleConnections() })
	return c
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

type request struct {
	Method, Path string
	Query        url.Values
	Token        string
	IfMatch      string
	Body         any
}

func TestRequests(t *testing.T) {
	tests := map[string]struct {
		call        func(context.Context, *Client) (any, error)
		status      int
		answer      string
		wantRequest request
		want        any
	}{
		"get a network as a member, who sees no provider": {
			call:        func(ctx context.Context, c *Client) (any, error) { return c.GetNetwork(ctx, networkID) },
			status:      200,
			answer:      memberNetwork,
			wantRequest: request{Method: "GET", Path: "/v2.0/networks/" + networkID},
			want: &Network{
				ID: networkID, Name: "basic", Description: "d", ProjectID: project, Status: "ACTIVE",
				AdminStateUp: true, MTU: 1450, PortSecurity: new(true), Revision: 1,
			},
		},
		"get a network as an administrator": {
			call:        func(ctx context.Context, c *Client) (any, error) { return c.GetNetwork(ctx, networkID) },
			status:      200,
			answer:      adminNetwork,
			wantRequest: request{Method: "GET", Path: "/v2.0/networks/" + networkID},
			want: &Network{
				ID: networkID, Name: "basic", ProjectID: "fake_project_id", Status: "ACTIVE",
				Shared: true, External: true, MTU: 1450, Revision: 2,
				Provider: &Provider{NetworkType: "vxlan", SegmentationID: 3483},
			},
		},
		"a network without a segment has a provider with a type alone": {
			call:        func(ctx context.Context, c *Client) (any, error) { return c.GetNetwork(ctx, networkID) },
			status:      200,
			answer:      localNetwork,
			wantRequest: request{Method: "GET", Path: "/v2.0/networks/" + networkID},
			want:        &Network{ID: networkID, Provider: &Provider{NetworkType: "local"}},
		},
		"create a network sends all attributes in one body": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.CreateNetwork(ctx, NetworkAttributes{
					Name: new("basic"), Description: new(""), AdminStateUp: new(false), Shared: new(true),
					External: new(true), PortSecurity: new(false), MTU: new(1400),
					Provider: &Provider{NetworkType: "vlan", PhysicalNetwork: "physnet1", SegmentationID: 150},
				})
			},
			status: 201,
			answer: localNetwork,
			wantRequest: request{Method: "POST", Path: "/v2.0/networks", Body: map[string]any{"network": map[string]any{
				"name": "basic", "description": "", "admin_state_up": false, "shared": true,
				"router:external": true, "port_security_enabled": false, "mtu": 1400.0,
				"provider:network_type": "vlan", "provider:physical_network": "physnet1", "provider:segmentation_id": 150.0,
			}}},
			want: &Network{ID: networkID, Provider: &Provider{NetworkType: "local"}},
		},
		"create a network sends nothing that is not set": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.CreateNetwork(ctx, NetworkAttributes{Provider: &Provider{NetworkType: "local"}})
			},
			status: 201,
			answer: localNetwork,
			wantRequest: request{Method: "POST", Path: "/v2.0/networks", Body: map[string]any{"network": map[string]any{
				"provider:network_type": "local",
			}}},
			want: &Network{ID: networkID, Provider: &Provider{NetworkType: "local"}},
		},
		"update a network names the revision and leaves the provider out": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.UpdateNetwork(ctx, networkID, 7, NetworkAttributes{
					Name: new("n"), Provider: &Provider{NetworkType: "local"},
				})
			},
			status: 200,
			answer: localNetwork,
			wantRequest: request{
				Method: "PUT", Path: "/v2.0/networks/" + networkID, IfMatch: "revision_number=7",
				Body: map[string]any{"network": map[string]any{"name": "n"}},
			},
			want: &Network{ID: networkID, Provider: &Provider{NetworkType: "local"}},
		},
		"delete a network": {
			call:        func(ctx context.Context, c *Client) (any, error) { return nil, c.DeleteNetwork(ctx, networkID) },
			status:      204,
			wantRequest: request{Method: "DELETE", Path: "/v2.0/networks/" + networkID},
		},
		"create an IPv4 subnet": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.CreateSubnet(ctx, networkID, SubnetAttributes{
					Name: new("s"), Description: new("d"), CIDR: "10.9.0.7/24", Gateway: new("10.9.0.1"), EnableDHCP: new(true),
					AllocationPools: &[]AllocationPool{{Start: "10.9.0.2", End: "10.9.0.254"}},
					DNSNameservers:  &[]string{"1.1.1.1"},
					HostRoutes:      &[]HostRoute{{Destination: "10.1.0.0/16", NextHop: "10.9.0.9"}},
				})
			},
			status: 201,
			answer: v4Subnet,
			wantRequest: request{Method: "POST", Path: "/v2.0/subnets", Body: map[string]any{"subnet": map[string]any{
				"network_id": networkID, "ip_version": 4.0, "cidr": "10.9.0.7/24", "name": "s", "description": "d",
				"gateway_ip": "10.9.0.1", "enable_dhcp": true,
				"allocation_pools": []any{map[string]any{"start": "10.9.0.2", "end": "10.9.0.254"}},
				"dns_nameservers":  []any{"1.1.1.1"},
				"host_routes":      []any{map[string]any{"destination": "10.1.0.0/16", "nexthop": "10.9.0.9"}},
			}}},
			want: &Subnet{
				ID: subnetID, NetworkID: networkID, Name: "s", ProjectID: project, CIDR: "10.9.0.0/24", IPVersion: 4,
				Gateway: "10.9.0.1", EnableDHCP: true,
				AllocationPools: []AllocationPool{{Start: "10.9.0.2", End: "10.9.0.254"}},
				DNSNameservers:  []string{"1.1.1.1"},
				HostRoutes:      []HostRoute{{Destination: "10.1.0.0/16", NextHop: "10.9.0.9"}},
			},
		},
		"create an IPv6 subnet with modes": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.CreateSubnet(ctx, networkID, SubnetAttributes{
					CIDR: "fd00::/64", IPv6AddressMode: "slaac", IPv6RAMode: "slaac",
				})
			},
			status: 201,
			answer: v6Subnet,
			wantRequest: request{Method: "POST", Path: "/v2.0/subnets", Body: map[string]any{"subnet": map[string]any{
				"network_id": networkID, "ip_version": 6.0, "cidr": "fd00::/64",
				"ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac",
			}}},
			want: &Subnet{
				ID: subnetID, CIDR: "fd00::/64", IPVersion: 6, EnableDHCP: true,
				AllocationPools: []AllocationPool{}, DNSNameservers: []string{}, HostRoutes: []HostRoute{},
				IPv6AddressMode: "slaac", IPv6RAMode: "slaac",
			},
		},
		"no gateway is null, empty lists are lists, and revision 0 is named": {
			call: func(ctx context.Context, c *Client) (any, error) {
				var none []string
				return c.UpdateSubnet(ctx, subnetID, 0, SubnetAttributes{
					CIDR: "10.0.0.0/8", IPv6RAMode: "slaac",
					Gateway: new(""), AllocationPools: &[]AllocationPool{}, DNSNameservers: &none, HostRoutes: &[]HostRoute{},
				})
			},
			status: 200,
			answer: v6Subnet,
			wantRequest: request{
				Method: "PUT", Path: "/v2.0/subnets/" + subnetID, IfMatch: "revision_number=0",
				Body: map[string]any{"subnet": map[string]any{
					"gateway_ip": nil, "allocation_pools": []any{}, "dns_nameservers": []any{}, "host_routes": []any{},
				}},
			},
			want: &Subnet{
				ID: subnetID, CIDR: "fd00::/64", IPVersion: 6, EnableDHCP: true,
				AllocationPools: []AllocationPool{}, DNSNameservers: []string{}, HostRoutes: []HostRoute{},
				IPv6AddressMode: "slaac", IPv6RAMode: "slaac",
			},
		},
		"delete a subnet": {
			call:        func(ctx context.Context, c *Client) (any, error) { return nil, c.DeleteSubnet(ctx, subnetID) },
			status:      204,
			wantRequest: request{Method: "DELETE", Path: "/v2.0/subnets/" + subnetID},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []request
			c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = append(got, record(t, r))
				answer(w, tc.status, tc.answer)
			}))
			result, err := tc.call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			tc.wantRequest.Token = token
			tc.wantRequest.Query = url.Values{}
			if diff := cmp.Diff([]request{tc.wantRequest}, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func record(t *testing.T, r *http.Request) request {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	var body any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Errorf("body %q: %v", raw, err)
		}
	}
	return request{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(),
		Token: r.Header.Get("X-Auth-Token"), IfMatch: r.Header.Get("If-Match"), Body: body,
	}
}

func TestBadInputMakesNoRequest(t *testing.T) {
	c := newClient(t, serve(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("unexpected %s %s", r.Method, r.URL)
	}))
	ctx := t.Context()
	calls := map[string]func(id string) error{
		"get network":    func(id string) error { _, err := c.GetNetwork(ctx, id); return err },
		"update network": func(id string) error { _, err := c.UpdateNetwork(ctx, id, 1, NetworkAttributes{}); return err },
		"delete network": func(id string) error { return c.DeleteNetwork(ctx, id) },
		"create subnet": func(id string) error {
			_, err := c.CreateSubnet(ctx, id, SubnetAttributes{CIDR: "10.0.0.0/24"})
			return err
		},
		"update subnet": func(id string) error { _, err := c.UpdateSubnet(ctx, id, 1, SubnetAttributes{}); return err },
		"delete subnet": func(id string) error { return c.DeleteSubnet(ctx, id) },
		"list ports":    func(id string) error { _, err := c.ListPorts(ctx, id); return err },
		"list subnets": func(id string) error {
			if id == "" {
				id = "?"
			}
			_, err := c.ListSubnets(ctx, SubnetFilter{NetworkID: id})
			return err
		},
		"create subnet with that CIDR": func(cidr string) error {
			_, err := c.CreateSubnet(ctx, networkID, SubnetAttributes{CIDR: cidr})
			return err
		},
	}
	inputs := map[string]string{
		"empty":        "",
		"another path": "../ports",
		"a query":      networkID + "?force=true",
		"a slash":      networkID + "/tags",
		"a line break": networkID[:35] + "\n",
		"too long":     networkID + "0",
	}
	for call, do := range calls {
		for name, input := range inputs {
			t.Run(call+", "+name, func(t *testing.T) {
				if got := ClassOf(do(input)); got != Invalid {
					t.Errorf("class %q, want %q", got, Invalid)
				}
			})
		}
	}
}
