// Package neutron speaks to the Networking service of OpenStack in plain
// structs and classed errors.
//
// Each method makes its requests once: trying again is the caller's decision,
// which only the class of the error allows. Every error of a call is an *Error.
package neutron

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
)

// Client is bound to one place. It is safe for concurrent use.
type Client struct {
	service  *gophercloud.ServiceClient
	place    Place
	identity string
	secrets  []string    // that no error text may hold
	refused  atomic.Bool // the credentials do not serve any more
}

// New returns a client and makes no request. The error names every option that
// is wrong.
func New(o Options) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("neutron options: %w", err)
	}
	// ReauthFunc, RetryFunc and RetryBackoffFunc stay nil: with one of them
	// gophercloud sends requests again by itself, POST too.
	provider := &gophercloud.ProviderClient{HTTPClient: newHTTPClient(o.Timeout, o.WrapTransport, nil)}
	provider.UserAgent.Prepend("network-apiserver")
	provider.UseTokenLock()
	provider.SetToken(o.Token)
	return &Client{
		service: &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: o.base(), Type: "network"},
		place:   Place{ProjectID: o.ProjectID, Region: o.Region},
	}, nil
}

// Place returns where the resources of the client live.
func (c *Client) Place() Place { return c.place }

// Identity returns the URL of the identity service that knows the project; empty
// where there is none.
func (c *Client) Identity() string { return c.identity }

// GetNetwork returns the network. An absent one is NotFound.
func (c *Client) GetNetwork(ctx context.Context, id string) (*Network, error) {
	what := call{"get network", "Network", id}
	if err := what.checkID(); err != nil {
		return nil, err
	}
	n, err := extractNetwork(networks.Get(ctx, c.service, id).Result)
	return n, c.failure(what, err)
}

// ListNetworks returns the networks of the project that the filter selects, in
// no particular order, all or none.
func (c *Client) ListNetworks(ctx context.Context, f NetworkFilter) ([]Network, error) {
	answers, err := list[networkAnswer](ctx, networks.List(c.service, networks.ListOpts{
		Description: f.Description,
		ProjectID:   c.place.ProjectID,
		Limit:       pageSize,
	}), "networks")
	if err != nil {
		return nil, c.failure(call{act: "list networks"}, err)
	}
	var selected []Network
	for _, a := range answers {
		if matches(f.Description, a.Description) {
			selected = append(selected, a.network())
		}
	}
	return selected, nil
}

// CreateNetwork makes a network in the project. After a Transient error it may
// exist.
func (c *Client) CreateNetwork(ctx context.Context, a NetworkAttributes) (*Network, error) {
	what := call{act: "create network"}
	if a.Name != nil {
		what.act += fmt.Sprintf(" %q", *a.Name)
	}
	n, err := extractNetwork(networks.Create(ctx, c.service, networkCreate{a}).Result)
	return n, c.failure(what, err)
}

// UpdateNetwork changes the attributes that are set, Provider excepted, if the
// network still has that revision; else the error is a Conflict.
func (c *Client) UpdateNetwork(ctx context.Context, id string, revision int, a NetworkAttributes) (*Network, error) {
	what := call{"update network", "Network", id}
	if err := what.checkID(); err != nil {
		return nil, err
	}
	n, err := extractNetwork(networks.Update(ctx, c.service, id, networkUpdate{a, &revision}).Result)
	return n, c.failure(what, err)
}

// DeleteNetwork deletes the network and its subnets, or nothing: InUse if it
// has ports other than those of DHCP, NotFound if it is gone already.
func (c *Client) DeleteNetwork(ctx context.Context, id string) error {
	what := call{"delete network", "Network", id}
	if err := what.checkID(); err != nil {
		return err
	}
	return c.failure(what, networks.Delete(ctx, c.service, id).ExtractErr())
}

// ListSubnets returns the subnets that the filter selects, in no particular
// order, all or none.
func (c *Client) ListSubnets(ctx context.Context, f SubnetFilter) ([]Subnet, error) {
	what := call{act: "list subnets"}
	opts := subnets.ListOpts{Description: f.Description, Limit: pageSize}
	if f.NetworkID == "" {
		opts.ProjectID = c.place.ProjectID
	} else {
		// A shared network may hold subnets of other projects.
		opts.NetworkID = f.NetworkID
		what = call{act: "list subnets of network", id: f.NetworkID}
		if err := what.checkID(); err != nil {
			return nil, err
		}
	}
	found, err := list[Subnet](ctx, subnets.List(c.service, opts), "subnets")
	if err != nil {
		return nil, c.failure(what, err)
	}
	var selected []Subnet
	for _, s := range found {
		if matches(f.Description, s.Description) {
			selected = append(selected, s)
		}
	}
	return selected, nil
}

// CreateSubnet makes a subnet in the network; the IP version follows from the
// CIDR. A network that is gone is NotFound. After a Transient error the subnet
// may exist.
func (c *Client) CreateSubnet(ctx context.Context, networkID string, a SubnetAttributes) (*Subnet, error) {
	what := call{fmt.Sprintf("create subnet %.64q in network", a.CIDR), "Network", networkID}
	if err := what.checkID(); err != nil {
		return nil, err
	}
	cidr, err := netip.ParsePrefix(a.CIDR)
	if err != nil {
		return nil, &Error{Class: Invalid, Message: "CIDR cannot be parsed", act: what.String()}
	}
	version := 6
	if cidr.Addr().Is4() {
		version = 4
	}
	s, err := extractSubnet(subnets.Create(ctx, c.service, subnetCreate{a, networkID, version}).Result)
	return s, c.failure(what, err)
}

// UpdateSubnet changes the attributes that are set, CIDR and IPv6 modes
// excepted, if the subnet still has that revision; else the error is a Conflict.
func (c *Client) UpdateSubnet(ctx context.Context, id string, revision int, a SubnetAttributes) (*Subnet, error) {
	what := call{"update subnet", "Subnet", id}
	if err := what.checkID(); err != nil {
		return nil, err
	}
	s, err := extractSubnet(subnets.Update(ctx, c.service, id, subnetUpdate{a, &revision}).Result)
	return s, c.failure(what, err)
}

// DeleteSubnet deletes the subnet: InUse if a port has an address of it,
// NotFound if it is gone already.
func (c *Client) DeleteSubnet(ctx context.Context, id string) error {
	what := call{"delete subnet", "Subnet", id}
	if err := what.checkID(); err != nil {
		return err
	}
	return c.failure(what, subnets.Delete(ctx, c.service, id).ExtractErr())
}

// ListPorts returns the ports of the network that the project may see, in no
// particular order, all or none.
func (c *Client) ListPorts(ctx context.Context, networkID string) ([]Port, error) {
	what := call{act: "list ports of network", id: networkID}
	if err := what.checkID(); err != nil {
		return nil, err
	}
	found, err := list[Port](ctx, ports.List(c.service, ports.ListOpts{NetworkID: networkID, Limit: pageSize}), "ports")
	return found, c.failure(what, err)
}

// matches compares exactly: MariaDB ignores case, accents and trailing spaces
// when Neutron filters.
func matches(want, got string) bool { return want == "" || want == got }
