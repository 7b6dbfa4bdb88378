package neutron

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	defaultTimeout = 30 * time.Second

	// maxAnswer bounds one answer in bytes, after decompression. A full page of
	// subnets with 20 routes and 32 pools each is about 4 MB.
	maxAnswer = 16 << 20
)

// Options says where Neutron is and as whom to speak to it.
type Options struct {
	// Endpoint is the base URL, http or https, such as http://127.0.0.1:9696.
	// A trailing /v2.0 or slash makes no difference.
	Endpoint string
	// Token is sent as X-Auth-Token. None is sent if it is empty: a Neutron
	// without Keystone needs none.
	Token string
	// ProjectID is the project the token belongs to. Required: a list without
	// it would show an administrator the networks of everyone.
	ProjectID string
	// Region is the region of the endpoint, empty where there is only one.
	Region string
	// Timeout bounds one request, its answer included. 0 means 30 seconds.
	Timeout time.Duration
	// WrapTransport, if set, sees every request.
	WrapTransport WrapTransport
}

// WrapTransport returns a transport that does more than the one it is given,
// such as to count. It must be safe for concurrent use.
type WrapTransport func(http.RoundTripper) http.RoundTripper

// Place is where the resources of a client live. An ID means nothing in
// another place.
type Place struct {
	ProjectID, Region string
}

// validate reports every fault at once. The endpoint stays out of the texts
// when it may hold a password, and so does the token.
func (o Options) validate() error {
	var errs []error
	if o.ProjectID == "" {
		errs = append(errs, errors.New("project ID is required"))
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, errors.New("token must be printable ASCII without spaces"))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout must not be negative, is %v", o.Timeout))
	}
	switch u, err := url.Parse(o.Endpoint); {
	case err != nil:
		errs = append(errs, errors.New("endpoint is not a URL"))
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		errs = append(errs, errors.New("endpoint must be an http or https URL with a host"))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		errs = append(errs, errors.New("endpoint must not hold credentials, a query or a fragment"))
	}
	return errors.Join(errs...)
}

// base is the URL of the resources, with the slash gophercloud wants.
func (o Options) base() string {
	endpoint := strings.TrimRight(o.Endpoint, "/")
	return strings.TrimSuffix(endpoint, "/v2.0") + "/v2.0/"
}

// newHTTPClient returns a client whose requests are bounded in time and in the
// size of the answer. wrap may be nil.
func newHTTPClient(timeout time.Duration, wrap WrapTransport, config *tls.Config) http.Client {
	if timeout == 0 {
		timeout = defaultTimeout
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = config
	// The default of 2 would open a connection for almost every call of eight
	// workers. The proxy of the environment is kept: net/http never uses it for
	// a loopback address.
	base.MaxIdleConnsPerHost = 32
	var transport http.RoundTripper = boundedTransport{base}
	if wrap != nil {
		transport = wrap(transport)
	}
	return http.Client{
		Timeout:   timeout,
		Transport: transport,
		// Neutron does not redirect. Following would carry the token along and
		// turn a POST into a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// boundedTransport fails the reading of an answer beyond maxAnswer.
type boundedTransport struct{ http.RoundTripper }

func (t boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	return resp, nil
}
