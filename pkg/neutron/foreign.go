package neutron

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"go.yaml.in/yaml/v3"
)

// maxCloudsYAML bounds a foreign clouds.yaml in bytes; a cloud has about 500.
const maxCloudsYAML = 64 << 10

// NewForeignCloud returns the cloud o.Name of a clouds.yaml that somebody else
// wrote. Nothing of the process takes part, no OS_* variable and no file: the
// library reads both, so only its types are used here. caCert is a bundle in
// PEM, empty for the CAs of the system. Nobody has spoken to the cloud yet.
//
// The error is an *Error of class Unauthorized. It names the field, and holds no
// value of one: a value may be a secret in the wrong place.
func NewForeignCloud(cloudsYAML, caCert []byte, o CloudOptions) (*Cloud, error) {
	s, err := foreignSettings(cloudsYAML, caCert, o.Name)
	if err != nil {
		return nil, &Error{Class: Unauthorized, Message: err.Error(), act: openCloud(o.Name).String()}
	}
	wrap, silence := o.WrapTransport, &breaker{}
	o.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			next = wrap(next)
		}
		return breaking{encrypted{next}, silence}
	}
	return &Cloud{connect: func(ctx context.Context) (*Client, error) { return authenticate(ctx, o, s) }}, nil
}

func foreignSettings(cloudsYAML, caCert []byte, name string) (settings, error) {
	cloud, err := foreignCloud(cloudsYAML, name)
	if err != nil {
		return settings{}, err
	}
	s := settings{
		auth:     cloud.authOptions(),
		endpoint: gophercloud.EndpointOpts{Region: cloud.text["region_name"], Availability: availability(cmp.Or(cloud.text["endpoint_type"], cloud.text["interface"]))},
		tls:      &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if len(caCert) > 0 {
		s.tls.RootCAs = x509.NewCertPool()
		if !s.tls.RootCAs.AppendCertsFromPEM(caCert) {
			return settings{}, errors.New("cacert holds no certificate in PEM")
		}
	}
	return s, nil
}

func availability(word string) gophercloud.Availability {
	return gophercloud.Availability(cmp.Or(strings.TrimSuffix(word, "URL"), string(gophercloud.AvailabilityPublic)))
}

// foreign is one cloud of a foreign clouds.yaml, checked.
type foreign struct{ text, auth map[string]string }

// The fields of a cloud and of its auth. What is not named here is refused, so
// that nobody believes in what has no effect.
var (
	cloudFields = []string{"auth_type", "region_name", "interface", "endpoint_type", "identity_api_version", "verify"}

	userFields    = []string{"username", "user_id", "user_domain_name", "user_domain_id", "domain_name", "domain_id", "default_domain"}
	projectFields = []string{"project_id", "project_name", "project_domain_name", "project_domain_id", "domain_name", "domain_id", "default_domain"}

	// authFields are by auth_type. A project beside what already has one would
	// be passed over in silence.
	authFields = map[string][]string{
		"password":                slices.Concat([]string{"auth_url", "password"}, userFields, projectFields),
		"v3applicationcredential": slices.Concat([]string{"auth_url", "application_credential_id", "application_credential_name", "application_credential_secret"}, userFields),
		"token":                   slices.Concat([]string{"auth_url", "token"}, projectFields),
	}

	// refusals tell why, of fields that are common elsewhere.
	refusals = map[string]string{
		"cacert":  "is a file: put the CA into the key cacert beside clouds.yaml",
		"cert":    "is a file, and none is read",
		"key":     "is a file, and none is read",
		"profile": "is refused: write all of the cloud here",
		"cloud":   "is refused: write all of the cloud here",
		"regions": "is refused: name one with region_name",
	}
)

func foreignCloud(cloudsYAML []byte, name string) (*foreign, error) {
	if len(cloudsYAML) > maxCloudsYAML {
		return nil, fmt.Errorf("clouds.yaml is larger than %d bytes", maxCloudsYAML)
	}
	// Into a node nothing is expanded, whatever refers to what, and no error
	// quotes a value.
	var document yaml.Node
	if err := yaml.Unmarshal(cloudsYAML, &document); err != nil {
		return nil, fmt.Errorf("clouds.yaml is not YAML%s", lineOf(err))
	}
	if len(document.Content) == 0 {
		return nil, errors.New("clouds.yaml is empty")
	}
	root, err := fieldsOf(document.Content[0], "clouds.yaml")
	if err != nil {
		return nil, err
	}
	all, err := fieldsOf(root["clouds"], "clouds")
	if err != nil {
		return nil, err
	}
	node, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("cloud %.64q is not in clouds.yaml, which has %s", name, listed(all))
	}
	path := "clouds." + name
	fields, err := fieldsOf(node, path)
	if err != nil {
		return nil, err
	}
	authNode := fields["auth"]
	delete(fields, "auth")
	cloud := &foreign{}
	if cloud.text, err = texts(fields, path, cloudFields); err != nil {
		return nil, err
	}
	if err := cloud.check(path); err != nil {
		return nil, err
	}
	path += ".auth"
	auth, err := fieldsOf(authNode, path)
	if err != nil {
		return nil, err
	}
	kind, err := authType(cloud.text["auth_type"], auth)
	if err != nil {
		return nil, fmt.Errorf("clouds.%s.%w", name, err)
	}
	if cloud.auth, err = texts(auth, path, authFields[kind]); err != nil {
		return nil, err
	}
	return cloud, cloud.checkAuth(kind, path)
}

func (f *foreign) check(path string) error {
	if v, ok := f.text["verify"]; ok && !strings.EqualFold(v, "true") {
		return fmt.Errorf("%s.verify must be true: put the CA into the key cacert beside clouds.yaml", path)
	}
	if v := f.text["identity_api_version"]; v != "" && v != "3" && !strings.HasPrefix(v, "3.") {
		return fmt.Errorf("%s.identity_api_version must be 3", path)
	}
	for _, field := range []string{"interface", "endpoint_type"} {
		switch availability(f.text[field]) {
		case gophercloud.AvailabilityPublic, gophercloud.AvailabilityInternal, gophercloud.AvailabilityAdmin:
		default:
			return fmt.Errorf("%s.%s must be public, internal or admin", path, field)
		}
	}
	return nil
}

// authType is what the cloud says, or what follows from the fields there are.
func authType(word string, auth map[string]*yaml.Node) (string, error) {
	switch word {
	case "":
		switch {
		case auth["application_credential_id"] != nil || auth["application_credential_name"] != nil || auth["application_credential_secret"] != nil:
			return "v3applicationcredential", nil
		case auth["token"] != nil:
			return "token", nil
		}
		return "password", nil
	case "password", "v3password":
		return "password", nil
	case "token", "v3token":
		return "token", nil
	case "v3applicationcredential":
		return word, nil
	}
	return "", errors.New("auth_type must be password, v3password, v3applicationcredential, token or v3token")
}

// checkAuth finds what the identity service would refuse for lack of a field.
func (f *foreign) checkAuth(kind, path string) error {
	if err := checkAuthURL(f.auth["auth_url"]); err != nil {
		return fmt.Errorf("%s.auth_url %w", path, err)
	}
	var missing string
	lacks := func(fields ...string) bool {
		return !slices.ContainsFunc(fields, func(field string) bool { return f.auth[field] != "" })
	}
	require := func(fields ...string) {
		if missing == "" && lacks(fields...) {
			missing = strings.Join(fields, " or ")
		}
	}
	switch kind {
	case "password":
		require("username", "user_id")
		require("password")
	case "token":
		require("token")
	case "v3applicationcredential":
		require("application_credential_id", "application_credential_name")
		require("application_credential_secret")
		if lacks("application_credential_id") {
			require("username", "user_id")
		}
	}
	if f.auth["username"] != "" && lacks("user_id") && lacks("application_credential_id") {
		require("user_domain_name", "user_domain_id", "domain_name", "domain_id", "default_domain")
	}
	if kind != "v3applicationcredential" {
		require("project_id", "project_name")
		if lacks("project_id") {
			require("project_domain_name", "project_domain_id", "domain_name", "domain_id", "default_domain")
		}
	}
	if missing != "" {
		return fmt.Errorf("%s.%s is missing", path, missing)
	}
	return nil
}

// checkAuthURL does not quote the URL, which may hold a password.
func checkAuthURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("is missing")
	case err != nil || u.Hostname() == "":
		return errors.New("must be a URL with a host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must not hold credentials, a query or a fragment")
	case !isEncrypted(u):
		return errors.New("must be https; http is for a loopback address alone")
	}
	return nil
}

func isEncrypted(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && (ip != nil && ip.IsLoopback() || u.Hostname() == "localhost")
}

// encrypted refuses to send a password or a token in the clear. A foreign
// identity service may name any URL, of itself and in its catalog.
type encrypted struct{ http.RoundTripper }

var errNotEncrypted = errors.New("the cloud names an endpoint that is not https; http is for a loopback address alone")

func (t encrypted) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isEncrypted(r.URL) {
		return nil, errNotEncrypted
	}
	return t.RoundTripper.RoundTrip(r)
}

func (f *foreign) authOptions() gophercloud.AuthOptions {
	a := f.auth
	o := gophercloud.AuthOptions{
		IdentityEndpoint:            a["auth_url"],
		UserID:                      a["user_id"],
		Password:                    a["password"],
		TokenID:                     a["token"],
		ApplicationCredentialID:     a["application_credential_id"],
		ApplicationCredentialSecret: a["application_credential_secret"],
	}
	if o.ApplicationCredentialID == "" {
		o.ApplicationCredentialName = a["application_credential_name"]
	} else {
		o.UserID = "" // the credential knows its user
		return o
	}
	// The library refuses an id beside a name; the id is the surer one.
	if o.UserID == "" && o.TokenID == "" {
		o.Username = a["username"]
		o.DomainID, o.DomainName = f.domain("user_domain")
	}
	if o.ApplicationCredentialName != "" {
		return o
	}
	o.Scope = &gophercloud.AuthScope{ProjectID: a["project_id"]}
	if o.Scope.ProjectID == "" {
		o.Scope.ProjectName = a["project_name"]
		o.Scope.DomainID, o.Scope.DomainName = f.domain("project_domain")
	}
	return o
}

func (f *foreign) domain(field string) (id, name string) {
	for _, prefix := range []string{field, "domain"} {
		if id = f.auth[prefix+"_id"]; id != "" {
			return id, ""
		}
		if name = f.auth[prefix+"_name"]; name != "" {
			return "", name
		}
	}
	return f.auth["default_domain"], ""
}

// fieldsOf returns the values of a mapping by their keys.
func fieldsOf(node *yaml.Node, path string) (map[string]*yaml.Node, error) {
	node = followed(node)
	if node == nil {
		return nil, fmt.Errorf("%.128s is missing", path)
	}
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%.128s must be a mapping", path)
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i].Value
		if fields[key] != nil {
			return nil, fmt.Errorf("%.128s.%.64s stands there twice", path, key)
		}
		fields[key] = node.Content[i+1]
	}
	return fields, nil
}

// texts returns the values of the fields that are known. Those that choose a
// version of another service are common and without effect.
func texts(fields map[string]*yaml.Node, path string, known []string) (map[string]string, error) {
	out := map[string]string{}
	for key, node := range fields {
		switch node = followed(node); {
		case refusals[key] != "":
			return nil, fmt.Errorf("%.128s.%s %s", path, key, refusals[key])
		case slices.Contains(known, key):
		case strings.HasSuffix(key, "_api_version"):
			continue
		default:
			return nil, fmt.Errorf("%.128s.%.64s is not known here", path, key)
		}
		if node.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%.128s.%s must be a text", path, key)
		}
		if node.Tag != "!!null" {
			out[key] = node.Value
		}
	}
	return out, nil
}

// followed returns what an alias stands for.
func followed(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

var yamlLine = regexp.MustCompile(`line \d+`)

// lineOf takes from an error of the library the only thing that can't be a
// secret: it names an anchor, which a password with an asterisk may be.
func lineOf(err error) string {
	if line := yamlLine.FindString(err.Error()); line != "" {
		return ", at " + line
	}
	return ""
}

// listed names the clouds there are, the first few.
func listed(clouds map[string]*yaml.Node) string {
	const most = 10
	var names []string
	for name := range clouds {
		names = append(names, fmt.Sprintf("%.64q", name))
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	if len(names) > most {
		names = append(names[:most], "and more")
	}
	return strings.Join(names, ", ")
}
