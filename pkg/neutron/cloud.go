package neutron

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"golang.org/x/sync/singleflight"
)

// CloudOptions name a cloud.
type CloudOptions struct {
	// Name is a cloud of clouds.yaml. That of the operator is looked for where
	// OpenStack's own client looks. The variables OS_CLIENT_CONFIG_FILE, OS_REGION_NAME,
	// OS_INTERFACE, OS_CACERT, OS_CERT and OS_KEY count as they do there.
	// https://docs.openstack.org/python-openstackclient/latest/configuration/
	Name string
	// Timeout bounds one request, its answer included, and getting a token as a
	// whole. 0 means 30 seconds.
	Timeout time.Duration
	// WrapTransport, if set, sees every request, those to Keystone too.
	WrapTransport WrapTransport
}

// Cloud gives the client of one cloud, authenticated when it is
// first needed. It is safe for concurrent use.
type Cloud struct {
	connect func(context.Context) (*Client, error)
	dialing singleflight.Group
	client  atomic.Pointer[Client]
}

// NewCloud returns the operator's cloud. Nobody has spoken to it yet.
func NewCloud(o CloudOptions) *Cloud {
	return &Cloud{connect: func(ctx context.Context) (*Client, error) { return dial(ctx, o) }}
}

// NewStaticCloud returns a cloud whose client is there already.
func NewStaticCloud(client *Client) *Cloud {
	return &Cloud{connect: func(context.Context) (*Client, error) { return client, nil }}
}

// Client returns the one client of the cloud. Who asks while a first one is
// being made shares it, or its error: behind a Keystone that hangs everybody
// waits once. The error is an *Error, of class Unauthorized if the credentials
// are wrong or can't be read, else Transient; the next call tries again, with
// clouds.yaml read anew. So does who asks after the client was refused: other
// credentials may be in there now.
func (c *Cloud) Client(ctx context.Context) (*Client, error) {
	if client := c.client.Load(); client != nil && !client.refused.Load() {
		return client, nil
	}
	made := c.dialing.DoChan("", func() (any, error) {
		client, err := c.open(ctx)
		if err == nil {
			c.client.Store(client)
		}
		return client, err
	})
	select {
	case r := <-made:
		return r.Val.(*Client), r.Err
	case <-ctx.Done():
		return nil, &Error{Class: Transient, Message: reason(ctx.Err()), act: "open the cloud", cause: ctx.Err()}
	}
}

// open turns a panic, whatever a Keystone answers, into an error: nobody else
// would hear of it in time, and the process would end.
func (c *Cloud) open(ctx context.Context) (client *Client, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Class: Transient, Message: fmt.Sprintf("panic: %v", r), act: "open the cloud", cause: fmt.Errorf("%s", debug.Stack())}
		}
	}()
	return c.connect(ctx)
}

// settings are what clouds.yaml says of one cloud.
type settings struct {
	auth     gophercloud.AuthOptions
	endpoint gophercloud.EndpointOpts
	tls      *tls.Config
}

func openCloud(name string) call { return call{act: fmt.Sprintf("open cloud %.64q", name)} }

// dial opens the operator's cloud.
func dial(ctx context.Context, o CloudOptions) (*Client, error) {
	unusable := func(message string) error {
		return &Error{Class: Unauthorized, Message: message, act: openCloud(o.Name).String()}
	}
	where := []clouds.ParseOption{clouds.WithCloudName(o.Name)}
	if path := os.Getenv("OS_CLIENT_CONFIG_FILE"); path != "" {
		// Left to itself the library also wants a home to look for secure.yaml in.
		where = append(where, clouds.WithLocations(path))
	}
	auth, endpoint, tlsConfig, err := clouds.Parse(where...)
	if err != nil {
		return nil, unusable(err.Error())
	}
	if tlsConfig.InsecureSkipVerify {
		return nil, unusable("verify: false is refused: name the CA with cacert")
	}
	return authenticate(ctx, o, settings{auth, endpoint, tlsConfig})
}

// authenticate gets a token and finds Neutron in the catalog.
func authenticate(ctx context.Context, o CloudOptions, s settings) (*Client, error) {
	what := openCloud(o.Name)
	unusable := func(message string) error {
		return &Error{Class: Unauthorized, Message: message, act: what.String()}
	}
	// Without it a token that expired would be an error for good. A request
	// that was refused with 401 was not carried out: sending it again is safe.
	s.auth.AllowReauth = s.auth.TokenID == ""
	provider, err := openstack.NewClient(s.auth.IdentityEndpoint)
	if err != nil {
		return nil, unusable("auth_url: " + err.Error())
	}
	provider.HTTPClient = newHTTPClient(o.Timeout, o.WrapTransport, s.tls)
	provider.UserAgent.Prepend("network-apiserver")
	c := &Client{
		service:  &gophercloud.ServiceClient{ProviderClient: provider},
		identity: provider.IdentityBase,
		secrets:  []string{s.auth.Password, s.auth.ApplicationCredentialSecret, s.auth.TokenID},
	}
	ctx, cancel := context.WithTimeout(ctx, provider.HTTPClient.Timeout)
	defer cancel()
	if err := openstack.Authenticate(ctx, provider, s.auth); err != nil {
		return nil, c.authFailure(what, err)
	}
	if c.place, err = placeOf(provider, s.endpoint); err != nil {
		return nil, unusable(err.Error())
	}
	service, err := openstack.NewNetworkV2(provider, s.endpoint)
	if err != nil {
		if _, ok := errors.AsType[*gophercloud.ErrEndpointNotFound](err); ok {
			return nil, unusable(fmt.Sprintf("region %q has no endpoint for the network service", s.endpoint.Region))
		}
		return nil, c.failure(what, err)
	}
	c.service = service
	return c, nil
}

// authFailure classes an answer of Keystone: whatever it refuses, the
// credentials do not serve.
func (c *Client) authFailure(what call, err error) *Error {
	e := c.classed(what, err)
	if e.Status >= 400 && e.Status < 500 && e.Status != http.StatusTooManyRequests {
		e.Class = Unauthorized
	}
	return e
}

// plainProject is what Keystone's ID column holds. It goes into a status.
var plainProject = regexp.MustCompile(`^[!-~]{1,64}$`)

// placeOf reads the project from the token, and the region from the catalog
// where the cloud names none: it must not seem to move when it is named later.
func placeOf(provider *gophercloud.ProviderClient, o gophercloud.EndpointOpts) (Place, error) {
	token, ok := provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return Place{}, errors.New("the identity service is not version 3")
	}
	project, err := token.ExtractProject()
	if err != nil || project == nil || project.ID == "" {
		return Place{}, errors.New("the credentials are not for a project: name one with project_id or project_name")
	}
	if !plainProject.MatchString(project.ID) {
		return Place{}, errors.New("the id of the project is not one of the identity service")
	}
	place := Place{ProjectID: project.ID, Region: o.Region}
	if place.Region != "" {
		return place, nil
	}
	catalog, err := token.ExtractServiceCatalog()
	if err != nil {
		return Place{}, errors.New("the token holds no catalog")
	}
	for _, entry := range catalog.Entries {
		if entry.Type != "network" {
			continue
		}
		i := slices.IndexFunc(entry.Endpoints, func(e tokens.Endpoint) bool { return e.Interface == string(o.Availability) })
		if i >= 0 {
			place.Region = entry.Endpoints[i].RegionID
			break
		}
	}
	return place, nil
}
