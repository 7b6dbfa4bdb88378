package neutron

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func neutronError(errorType, message string) string {
	return fmt.Sprintf(`{"NeutronError": {"type": %q, "message": %q, "detail": ""}}`, errorType, message)
}

func getNetwork(ctx context.Context, c *Client) error {
	_, err := c.GetNetwork(ctx, networkID)
	return err
}

func createNetwork(ctx context.Context, c *Client) error {
	_, err := c.CreateNetwork(ctx, NetworkAttributes{Name: new("web")})
	return err
}

func updateNetwork(ctx context.Context, c *Client) error {
	_, err := c.UpdateNetwork(ctx, networkID, 1, NetworkAttributes{Name: new("web")})
	return err
}

func deleteNetwork(ctx context.Context, c *Client) error { return c.DeleteNetwork(ctx, networkID) }

func createSubnet(ctx context.Context, c *Client) error {
	_, err := c.CreateSubnet(ctx, networkID, SubnetAttributes{CIDR: "10.0.0.0/24"})
	return err
}

func updateSubnet(ctx context.Context, c *Client) error {
	_, err := c.UpdateSubnet(ctx, subnetID, 1, SubnetAttributes{Gateway: new("10.0.0.2")})
	return err
}

func deleteSubnet(ctx context.Context, c *Client) error { return c.DeleteSubnet(ctx, subnetID) }

func listPorts(ctx context.Context, c *Client) error {
	_, err := c.ListPorts(ctx, networkID)
	return err
}

func TestClasses(t *testing.T) {
	const html = "<html><body>404</body></html>"
	tests := map[string]struct {
		call   func(context.Context, *Client) error
		status int
		body   string
		header http.Header
		want   Error
	}{
		// 404
		"the network asked for is gone": {
			call: getNetwork, status: 404,
			body: neutronError("NetworkNotFound", "Network "+networkID+" could not be found."),
			want: Error{Class: NotFound, Type: "NetworkNotFound", Message: "Network " + networkID + " could not be found."},
		},
		"the subnet asked for is gone": {
			call: deleteSubnet, status: 404,
			body: neutronError("SubnetNotFound", "Subnet "+subnetID+" could not be found."),
			want: Error{Class: NotFound, Type: "SubnetNotFound", Message: "Subnet " + subnetID + " could not be found."},
		},
		"the network of a new subnet is gone": {
			call: createSubnet, status: 404,
			body: neutronError("NetworkNotFound", "Network "+networkID+" could not be found."),
			want: Error{Class: NotFound, Type: "NetworkNotFound", Message: "Network " + networkID + " could not be found."},
		},
		"the network of another ID is gone": {
			call: getNetwork, status: 404,
			body: neutronError("NetworkNotFound", "Network None could not be found."),
			want: Error{Class: Transient, Type: "NetworkNotFound", Message: "Network None could not be found."},
		},
		"the network of an updated subnet is gone": {
			call: updateSubnet, status: 404,
			body: neutronError("NetworkNotFound", "Network "+networkID+" could not be found."),
			want: Error{Class: Transient, Type: "NetworkNotFound", Message: "Network " + networkID + " could not be found."},
		},
		"a list has nothing that could be gone": {
			call: listPorts, status: 404,
			body: neutronError("NotFound", "Not found: "+networkID),
			want: Error{Class: Transient, Type: "NotFound", Message: "Not found: " + networkID},
		},
		"a collection that Neutron does not have": {
			call: getNetwork, status: 404,
			body: neutronError("HTTPNotFound", "The resource could not be found."),
			want: Error{Class: Transient, Type: "HTTPNotFound", Message: "The resource could not be found."},
		},
		"the plain 404 of a wrong path": {
			call: deleteNetwork, status: 404, body: "404 Not Found\n\nThe resource could not be found.\n\n",
			want: Error{Class: Transient, Message: "HTTP 404 Not Found"},
		},
		"the page of a proxy": {
			call: deleteNetwork, status: 404, body: html,
			want: Error{Class: Transient, Message: "HTTP 404 Not Found"},
		},
		"the error of another service": {
			call: deleteNetwork, status: 404, body: `{"error":{"code":404,"title":"Not Found","message":"Could not find ` + networkID + `"}}`,
			want: Error{Class: Transient, Message: "HTTP 404 Not Found"},
		},
		// 409
		"quota": {
			call: createNetwork, status: 409,
			body: neutronError("OverQuota", "Quota exceeded for resources: ['network']."),
			want: Error{Class: QuotaExceeded, Type: "OverQuota", Message: "Quota exceeded for resources: ['network']."},
		},
		"network with ports, whose list may change": {
			call: deleteNetwork, status: 409,
			body: neutronError("NetworkInUse", "Unable to complete operation on network "+networkID+". There are one or more ports still in use on the network, id for these ports is: 9ed97bf1-fc92-465f-95fd-9cdbe9e6fb36."),
			want: Error{Class: InUse, Type: "NetworkInUse", Message: "one or more ports are still in use on the network"},
		},
		"subnet with an allocated address": {
			call: deleteSubnet, status: 409,
			body: neutronError("SubnetInUse", "Unable to complete operation on subnet "+subnetID+": One or more ports have an IP allocation from this subnet."),
			want: Error{Class: InUse, Type: "SubnetInUse", Message: "Unable to complete operation on subnet " + subnetID + ": One or more ports have an IP allocation from this subnet."},
		},
		"gateway held by a router": {
			call: updateSubnet, status: 409,
			body: neutronError("GatewayIpInUse", "Current gateway ip 10.0.0.1 already in use by port 9ed97bf1-fc92-465f-95fd-9cdbe9e6fb36. Unable to update."),
			want: Error{Class: InUse, Type: "GatewayIpInUse", Message: "Current gateway ip 10.0.0.1 already in use by port 9ed97bf1-fc92-465f-95fd-9cdbe9e6fb36. Unable to update."},
		},
		"address allocated already": {
			call: updateSubnet, status: 409,
			body: neutronError("IpAddressAlreadyAllocated", "IP address 10.7.0.9 already allocated in subnet "+subnetID),
			want: Error{Class: InUse, Type: "IpAddressAlreadyAllocated", Message: "IP address 10.7.0.9 already allocated in subnet " + subnetID},
		},
		"address in use": {
			call: updateSubnet, status: 409, body: neutronError("IpAddressInUse", "Unable to complete operation."),
			want: Error{Class: InUse, Type: "IpAddressInUse", Message: "Unable to complete operation."},
		},
		"external network with gateways": {
			call: updateNetwork, status: 409, body: neutronError("ExternalNetworkInUse", "External network cannot be updated."),
			want: Error{Class: InUse, Type: "ExternalNetworkInUse", Message: "External network cannot be updated."},
		},
		"shared network that others use": {
			call: updateNetwork, status: 409, body: neutronError("InvalidSharedSetting", "Unable to reconfigure sharing settings."),
			want: Error{Class: InUse, Type: "InvalidSharedSetting", Message: "Unable to reconfigure sharing settings."},
		},
		"gateway inside a pool": {
			call: updateSubnet, status: 409,
			body: neutronError("GatewayConflictWithAllocationPools", "Gateway ip 10.0.0.254 conflicts with allocation pool 10.0.0.2-10.0.0.254."),
			want: Error{Class: Invalid, Type: "GatewayConflictWithAllocationPools", Message: "Gateway ip 10.0.0.254 conflicts with allocation pool 10.0.0.2-10.0.0.254."},
		},
		"pools that overlap": {
			call: updateSubnet, status: 409,
			body: neutronError("OverlappingAllocationPools", "Found overlapping allocation pools: 10.0.0.10-10.0.0.20 10.0.0.15-10.0.0.30 for subnet 10.0.0.0/24."),
			want: Error{Class: Invalid, Type: "OverlappingAllocationPools", Message: "Found overlapping allocation pools: 10.0.0.10-10.0.0.20 10.0.0.15-10.0.0.30 for subnet 10.0.0.0/24."},
		},
		"gateway that cannot be allocated": {
			call: createSubnet, status: 409,
			body: neutronError("IpamValueInvalid", "Gateway IP 10.1.0.1 cannot be allocated in CIDR 10.1.0.0/31"),
			want: Error{Class: Invalid, Type: "IpamValueInvalid", Message: "Gateway IP 10.1.0.1 cannot be allocated in CIDR 10.1.0.0/31"},
		},
		"VLAN of another network": {
			call: createNetwork, status: 409,
			body: neutronError("VlanIdInUse", "Unable to create the network. The VLAN 150 on physical network physnet1 is in use."),
			want: Error{Class: Invalid, Type: "VlanIdInUse", Message: "Unable to create the network. The VLAN 150 on physical network physnet1 is in use."},
		},
		"tunnel of another network": {
			call: createNetwork, status: 409,
			body: neutronError("TunnelIdInUse", "Unable to create the network. The tunnel ID 77 is in use."),
			want: Error{Class: Invalid, Type: "TunnelIdInUse", Message: "Unable to create the network. The tunnel ID 77 is in use."},
		},
		"physical network of another flat network": {
			call: createNetwork, status: 409, body: neutronError("FlatNetworkInUse", "Unable to create the flat network."),
			want: Error{Class: Invalid, Type: "FlatNetworkInUse", Message: "Unable to create the flat network."},
		},
		"a 409 of a type unknown here is never final": {
			call: createNetwork, status: 409,
			body: neutronError("IpAddressGenerationFailure", "No more IP addresses available on network "+networkID+"."),
			want: Error{Class: Transient, Type: "IpAddressGenerationFailure", Message: "No more IP addresses available on network " + networkID + "."},
		},
		"a 409 that is not Neutron's": {
			call: createNetwork, status: 409, body: html,
			want: Error{Class: Transient, Message: "HTTP 409 Conflict"},
		},
		// 412
		"another revision, whose number is left out": {
			call: updateNetwork, status: 412,
			body: neutronError("RevisionNumberConstraintFailed", "Constrained to 1, but current revision is 2"),
			want: Error{Class: Conflict, Type: "RevisionNumberConstraintFailed", Message: "changed since it was read"},
		},
		"a 412 that is not Neutron's": {
			call: updateNetwork, status: 412, body: html,
			want: Error{Class: Transient, Message: "HTTP 412 Precondition Failed"},
		},
		// 400
		"overlapping subnet": {
			call: createSubnet, status: 400,
			body: neutronError("InvalidInput", "Invalid input for operation: Requested subnet with cidr: 10.5.0.0/24 for network: "+networkID+" overlaps with another subnet."),
			want: Error{Class: Invalid, Type: "InvalidInput", Message: "Invalid input for operation: Requested subnet with cidr: 10.5.0.0/24 for network: " + networkID + " overlaps with another subnet."},
		},
		"attribute that Neutron does not know": {
			call: createNetwork, status: 400,
			body: neutronError("HTTPBadRequest", "Unrecognized attribute(s) 'bogus'"),
			want: Error{Class: Invalid, Type: "HTTPBadRequest", Message: "Unrecognized attribute(s) 'bogus'"},
		},
		"bad request": {
			call: createSubnet, status: 400,
			body: neutronError("BadRequest", "Bad subnets request: a subnetpool must be specified in the absence of a cidr."),
			want: Error{Class: Invalid, Type: "BadRequest", Message: "Bad subnets request: a subnetpool must be specified in the absence of a cidr."},
		},
		"pool outside the CIDR": {
			call: updateSubnet, status: 400,
			body: neutronError("OutOfBoundsAllocationPool", "The allocation pool 10.0.1.10-10.0.1.20 spans beyond the subnet cidr 10.0.0.0/24."),
			want: Error{Class: Invalid, Type: "OutOfBoundsAllocationPool", Message: "The allocation pool 10.0.1.10-10.0.1.20 spans beyond the subnet cidr 10.0.0.0/24."},
		},
		"pool that ends before it starts": {
			call: updateSubnet, status: 400,
			body: neutronError("InvalidAllocationPool", "The allocation pool 10.0.0.20-10.0.0.10 is not valid."),
			want: Error{Class: Invalid, Type: "InvalidAllocationPool", Message: "The allocation pool 10.0.0.20-10.0.0.10 is not valid."},
		},
		"too many name servers": {
			call: updateSubnet, status: 400,
			body: neutronError("DNSNameServersExhausted", "Unable to complete operation for "+subnetID+". The number of DNS nameservers exceeds the limit 5."),
			want: Error{Class: Invalid, Type: "DNSNameServersExhausted", Message: "Unable to complete operation for " + subnetID + ". The number of DNS nameservers exceeds the limit 5."},
		},
		"plain HTTP sent to a TLS port of a proxy": {
			call: getNetwork, status: 400, body: html,
			want: Error{Class: Transient, Message: "HTTP 400 Bad Request"},
		},
		// 401 and 403
		"token that has expired": {
			call: getNetwork, status: 401,
			body: `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`,
			want: Error{Class: Unauthorized, Message: "HTTP 401 Unauthorized"},
		},
		"policy": {
			call: deleteNetwork, status: 403,
			body: neutronError("PolicyNotAuthorized", "rule:delete_network is disallowed by policy"),
			want: Error{Class: Forbidden, Type: "PolicyNotAuthorized", Message: "rule:delete_network is disallowed by policy"},
		},
		"a 403 that is not Neutron's": {
			call: deleteNetwork, status: 403, body: html,
			want: Error{Class: Transient, Message: "HTTP 403 Forbidden"},
		},
		// 429 and 5xx
		"too many requests": {
			call: getNetwork, status: 429, header: http.Header{"Retry-After": {"17"}},
			want: Error{Class: Transient, Message: "HTTP 429 Too Many Requests", RetryAfter: 17 * time.Second},
		},
		"service unavailable for a day": {
			call: createNetwork, status: 503, body: html, header: http.Header{"Retry-After": {"86400"}},
			want: Error{Class: Transient, Message: "HTTP 503 Service Unavailable", RetryAfter: time.Hour},
		},
		"service available since long": {
			call: createNetwork, status: 503, header: http.Header{"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}},
			want: Error{Class: Transient, Message: "HTTP 503 Service Unavailable"},
		},
		"a wait that is garbage": {
			call: createNetwork, status: 503, header: http.Header{"Retry-After": {"-3"}},
			want: Error{Class: Transient, Message: "HTTP 503 Service Unavailable"},
		},
		"internal error": {
			call: createNetwork, status: 500,
			body: neutronError("HTTPInternalServerError", "Request Failed: internal server error while processing your request."),
			want: Error{Class: Transient, Type: "HTTPInternalServerError", Message: "Request Failed: internal server error while processing your request."},
		},
		"internal error of a locked database": {
			call: createNetwork, status: 500,
			body: `{"message": "The server has either erred or is incapable of performing the requested operation.", "code": "500 Internal Server Error", "title": "Internal Server Error"}`,
			want: Error{Class: Transient, Message: "HTTP 500 Internal Server Error"},
		},
		"bad gateway": {
			call: createNetwork, status: 502, body: html,
			want: Error{Class: Transient, Message: "HTTP 502 Bad Gateway"},
		},
		"status that nobody defined": {
			call: createNetwork, status: 599,
			want: Error{Class: Transient, Message: "HTTP 599"},
		},
		// Other statuses and odd bodies
		"redirect": {
			call: createNetwork, status: 307, header: http.Header{"Location": {"http://127.0.0.1:1/"}},
			want: Error{Class: Transient, Message: "HTTP 307 Temporary Redirect"},
		},
		"method not allowed": {
			call: getNetwork, status: 405, body: neutronError("HTTPMethodNotAllowed", "The server could not comply."),
			want: Error{Class: Transient, Type: "HTTPMethodNotAllowed", Message: "The server could not comply."},
		},
		"NeutronError that is a string": {
			call: createNetwork, status: 400, body: `{"NeutronError": "broken"}`,
			want: Error{Class: Transient, Message: "HTTP 400 Bad Request"},
		},
		"message with a request ID": {
			call: createNetwork, status: 500, body: neutronError("MechanismDriverError", "create_network_postcommit failed. (Request-ID: req-d1092824-7e0b-409d-b09b-f65fd10b8f14)"),
			want: Error{Class: Transient, Type: "MechanismDriverError", Message: "create_network_postcommit failed."},
		},
		"message without end": {
			call: createNetwork, status: 400, body: neutronError("HTTPBadRequest", strings.Repeat("é", 4000)),
			want: Error{Class: Invalid, Type: "HTTPBadRequest", Message: strings.Repeat("é", 512) + "..."},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), tc.header)
				w.Header().Set("X-Openstack-Request-Id", "req-d1092824-7e0b-409d-b09b-f65fd10b8f14")
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			err := tc.call(t.Context(), c)
			got, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %T (%v), want *Error", err, err)
			}
			tc.want.Status = tc.status
			if diff := cmp.Diff(tc.want, *got, cmpopts.IgnoreUnexported(Error{})); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClassOf(t *testing.T) {
	tests := map[string]struct {
		err  error
		want Class
	}{
		"no error":               {nil, ""},
		"an error of the client": {&Error{Class: InUse}, InUse},
		"a wrapped one":          {fmt.Errorf("x: %w", &Error{Class: NotFound}), NotFound},
		"any other error":        {context.Canceled, Transient},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ClassOf(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestErrorNamesActAndObject(t *testing.T) {
	tests := map[string]struct {
		call func(context.Context, *Client) error
		want string
	}{
		"get":           {getNetwork, "get network " + networkID + ": m"},
		"create":        {createNetwork, `create network "web": m`},
		"create subnet": {createSubnet, `create subnet "10.0.0.0/24" in network ` + networkID + ": m"},
		"delete subnet": {deleteSubnet, "delete subnet " + subnetID + ": m"},
		"list ports":    {listPorts, "list ports of network " + networkID + ": m"},
		"bad ID": {
			func(ctx context.Context, c *Client) error { return c.DeleteNetwork(ctx, "a/b") },
			`delete network: "a/b" is not an ID of Neutron`,
		},
	}
	c := newClient(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 400, neutronError("BadRequest", "m"))
	}))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.call(t.Context(), c).Error(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestPanicInOpeningACloud(t *testing.T) {
	panics := true
	cloud := &Cloud{connect: func(context.Context) (*Client, error) {
		if panics {
			panic("no such key")
		}
		return &Client{}, nil
	}}
	if _, err := cloud.Client(t.Context()); ClassOf(err) != Transient {
		t.Errorf("got %v, want an error that passes", err)
	}
	panics = false
	if client, err := cloud.Client(t.Context()); client == nil || err != nil {
		t.Errorf("then got %v, %v", client, err)
	}
}
