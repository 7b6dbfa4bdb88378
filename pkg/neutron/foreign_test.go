package neutron_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-apiserver/pkg/neutron"
	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

// The user and the password are the same, as the simulator wants it; so is the
// secret of the application credential.
const foreignSecret = "Tr0ub4dor&3"

const foreignPassword = `clouds:
  OTHER: {verify: false, profile: x}
  LAB:
    region_name: RegionOne
    auth:
      auth_url: AUTH_URL
      username: Tr0ub4dor&3
      password: Tr0ub4dor&3
      user_domain_name: Default
      project_name: blue
      project_domain_name: Default
`

const foreignCredential = `clouds:
  LAB:
    auth_type: v3applicationcredential
    auth:
      auth_url: AUTH_URL
      application_credential_id: Tr0ub4dor&3:blue
      application_credential_secret: Tr0ub4dor&3
`

// line adds a line at the end of the file, as deep as it is written.
func line(text string) func(string) string {
	return func(file string) string { return file + text + "\n" }
}

func replaced(old, with string) func(string) string {
	return func(file string) string {
		if !strings.Contains(file, old) {
			panic("there is no " + old)
		}
		return strings.ReplaceAll(file, old, with)
	}
}

func all(tweaks ...func(string) string) func(string) string {
	return func(file string) string {
		for _, tweak := range tweaks {
			file = tweak(file)
		}
		return file
	}
}

func newSimulator(t *testing.T) *httptest.Server {
	t.Helper()
	sim, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return server
}

func foreignClient(t *testing.T, authURL, file string, caCert []byte) (*neutron.Client, error) {
	t.Helper()
	cloud, err := neutron.NewForeignCloud([]byte(strings.ReplaceAll(file, "AUTH_URL", authURL)), caCert, neutron.CloudOptions{Name: "LAB"})
	if err != nil {
		return nil, err
	}
	return cloud.Client(t.Context())
}

func TestForeignCloud(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string
		tweak func(string) string
	}{
		"a user and a password":           {file: foreignPassword},
		"an application credential":       {file: foreignCredential},
		"the type follows from the field": {foreignCredential, replaced("    auth_type: v3applicationcredential\n", "")},
		"a type of version 3":             {foreignPassword, line("    auth_type: v3password")},
		"an id of the user":               {foreignPassword, replaced("username:", "user_id:")},
		"an id of the project":            {foreignPassword, replaced("project_name:", "project_id:")},
		"both id and name":                {foreignPassword, line("      project_id: blue")},
		"one domain for all":              {foreignPassword, all(replaced("      user_domain_name: Default\n", ""), replaced("project_domain_name", "default_domain"))},
		"versions of other services":      {foreignPassword, line("    identity_api_version: 3\n    volume_api_version: 3")},
		"TLS that is verified":            {foreignPassword, line("    verify: true")},
		"an interface":                    {foreignPassword, line("    interface: internal")},
		"an interface by its old name":    {foreignPassword, line("    endpoint_type: adminURL")},
		"a value by an alias":             {foreignPassword, all(replaced("username: Tr", "username: &me Tr"), replaced("password: Tr0ub4dor&3", "password: *me"))},
		"no region":                       {foreignPassword, replaced("    region_name: RegionOne\n", "")},
		"a region that is null":           {foreignPassword, replaced("RegionOne", "~")},
		"a project that looks a number":   {foreignPassword, replaced("blue", "0123")},
	} {
		t.Run(name, func(t *testing.T) {
			server := newSimulator(t)
			file, project := tc.file, "blue"
			if tc.tweak != nil {
				file = tc.tweak(file)
			}
			if strings.Contains(file, "0123") {
				project = "0123"
			}
			client, err := foreignClient(t, server.URL+"/identity/v3", file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(neutron.Place{ProjectID: project, Region: "RegionOne"}, client.Place()); diff != "" {
				t.Errorf("place (-want +got):\n%s", diff)
			}
			if got, want := client.Identity(), server.URL+"/identity/"; got != want {
				t.Errorf("identity %s, want %s", got, want)
			}
			if _, err := client.CreateNetwork(t.Context(), neutron.NetworkAttributes{Name: new("n")}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestForeignToken(t *testing.T) {
	server := newSimulator(t)
	file := "clouds: {LAB: {auth: {auth_url: AUTH_URL, token: gAAAA-secret, project_id: blue}}}"
	// The simulator knows no tokens to begin with: that it says so shows what was sent.
	_, err := foreignClient(t, server.URL+"/identity/v3", file, nil)
	if got, want := fmt.Sprint(err), `open cloud "LAB": HTTP 401 Unauthorized`; got != want {
		t.Errorf("error %s, want %s", got, want)
	}
}

func TestForeignCloudRefused(t *testing.T) {
	bomb := "x0: &x0 [" + strings.Repeat("a,", 100) + "a]\n"
	for i := 1; i < 9; i++ {
		bomb += fmt.Sprintf("x%d: &x%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d,", i-1), 100), ","))
	}
	var many strings.Builder
	many.WriteString("clouds:\n")
	for i := range 12 {
		fmt.Fprintf(&many, "  c%02d: {}\n", i)
	}
	password := func(tweak func(string) string) string { return tweak(foreignPassword) }
	credential := func(tweak func(string) string) string { return tweak(foreignCredential) }
	const lab, auth = "clouds.LAB.", "clouds.LAB.auth."
	for name, tc := range map[string]struct{ file, want string }{
		"nothing":                     {"", "clouds.yaml is empty"},
		"a comment alone":             {"# nothing\n", "clouds.yaml is empty"},
		"not YAML":                    {"clouds:\n  LAB: {" + foreignSecret, "clouds.yaml is not YAML, at line 1"},
		"a password that is an alias": {password(replaced("password: Tr0ub4dor&3", "password: *Tr0ub4dor")), "clouds.yaml is not YAML"},
		"a text":                      {foreignSecret, "clouds.yaml must be a mapping"},
		"a list":                      {"- " + foreignSecret, "clouds.yaml must be a mapping"},
		"no clouds":                   {"LAB: {}", "clouds is missing"},
		"clouds that are a list":      {"clouds: [LAB]", "clouds must be a mapping"},
		"no such cloud":               {password(replaced("LAB", "PROD")), `cloud "LAB" is not in clouds.yaml, which has "OTHER", "PROD"`},
		"no cloud at all":             {"clouds: {}", `cloud "LAB" is not in clouds.yaml, which has none`},
		"many clouds": {many.String(), `cloud "LAB" is not in clouds.yaml, which has "c00", "c01", "c02", "c03", "c04", "c05", ` +
			`"c06", "c07", "c08", "c09", and more`},
		"a cloud that is a text":          {"clouds: {LAB: " + foreignSecret + "}", "clouds.LAB must be a mapping"},
		"a cloud twice":                   {"clouds: {LAB: {}, LAB: {}}", "clouds.LAB stands there twice"},
		"a field twice":                   {password(line("    verify: true\n    verify: true")), lab + "verify stands there twice"},
		"TLS that is not verified":        {password(line("    verify: false")), lab + "verify must be true: put the CA into the key cacert beside clouds.yaml"},
		"TLS that is verified as a text":  {password(line("    verify: 'no'")), lab + "verify must be true: put the CA into the key cacert beside clouds.yaml"},
		"a CA from a file":                {password(line("    cacert: /etc/passwd")), lab + "cacert is a file: put the CA into the key cacert beside clouds.yaml"},
		"a certificate from a file":       {password(line("    cert: /etc/passwd")), lab + "cert is a file, and none is read"},
		"a key from a file":               {password(line("    key: /etc/passwd")), lab + "key is a file, and none is read"},
		"a key from no file":              {password(line("    key:")), lab + "key is a file, and none is read"},
		"a profile":                       {password(line("    profile: rackspace")), lab + "profile is refused: write all of the cloud here"},
		"a profile by its old name":       {password(line("    cloud: rackspace")), lab + "cloud is refused: write all of the cloud here"},
		"more than one region":            {password(line("    regions: [a, b]")), lab + "regions is refused: name one with region_name"},
		"insecure, which no cloud has":    {password(line("    insecure: true")), lab + "insecure is not known here"},
		"a merge":                         {password(replaced("  LAB:\n", "  LAB:\n    <<: {verify: false}\n")), lab + "<< is not known here"},
		"a field that is a mapping":       {password(replaced("region_name: RegionOne", "region_name: {a: b}")), lab + "region_name must be a text"},
		"another interface":               {password(line("    interface: private")), lab + "interface must be public, internal or admin"},
		"version 2":                       {password(line("    identity_api_version: 2")), lab + "identity_api_version must be 3"},
		"another way to authenticate":     {password(line("    auth_type: v3oidcpassword")), lab + "auth_type must be password, v3password, v3applicationcredential, token or v3token"},
		"no auth":                         {"clouds: {LAB: {region_name: a}}", "clouds.LAB.auth is missing"},
		"an auth that is a text":          {"clouds: {LAB: {auth: " + foreignSecret + "}}", "clouds.LAB.auth must be a mapping"},
		"a password that is a list":       {password(replaced("password: Tr0ub4dor&3", "password: [Tr0ub4dor&3]")), auth + "password must be a text"},
		"a field that is misspelt":        {password(line("      pasword: x")), auth + "pasword is not known here"},
		"a scope of the system":           {password(line("      system_scope: all")), auth + "system_scope is not known here"},
		"a trust":                         {password(line("      trust_id: x")), auth + "trust_id is not known here"},
		"a credential and a project":      {credential(line("      project_id: red")), auth + "project_id is not known here"},
		"a credential and a password":     {credential(line("      password: Tr0ub4dor&3")), auth + "password is not known here"},
		"a credential of another type":    {credential(replaced("v3applicationcredential", "password")), "clouds.LAB.auth.application_credential_"},
		"no auth_url":                     {password(replaced("      auth_url: AUTH_URL\n", "")), auth + "auth_url is missing"},
		"an auth_url that is a word":      {password(replaced("AUTH_URL", "keystone")), auth + "auth_url must be a URL with a host"},
		"an auth_url that is a file":      {password(replaced("AUTH_URL", "file:///etc/passwd")), auth + "auth_url must be a URL with a host"},
		"an auth_url in the clear":        {password(replaced("AUTH_URL", "http://keystone.example/v3")), auth + "auth_url must be https; http is for a loopback address alone"},
		"an auth_url that looks loopback": {password(replaced("AUTH_URL", "http://127.0.0.1.example/v3")), auth + "auth_url must be https; http is for a loopback address alone"},
		"an auth_url of another scheme":   {password(replaced("AUTH_URL", "gopher://127.0.0.1/v3")), auth + "auth_url must be https; http is for a loopback address alone"},
		"an auth_url with a password":     {password(replaced("AUTH_URL", "https://me:Tr0ub4dor@k.example/v3")), auth + "auth_url must not hold credentials, a query or a fragment"},
		"an auth_url with a query":        {password(replaced("AUTH_URL", "https://k.example/v3?a=b")), auth + "auth_url must not hold credentials, a query or a fragment"},
		"no user":                         {password(replaced("      username: Tr0ub4dor&3\n", "")), auth + "username or user_id is missing"},
		"no password":                     {password(replaced("      password: Tr0ub4dor&3\n", "")), auth + "password is missing"},
		"a password that is null":         {password(replaced("password: Tr0ub4dor&3", "password:")), auth + "password is missing"},
		"no domain of the user":           {password(replaced("      user_domain_name: Default\n", "")), auth + "user_domain_name or user_domain_id or domain_name or domain_id or default_domain is missing"},
		"no project":                      {password(replaced("      project_name: blue\n", "")), auth + "project_id or project_name is missing"},
		"no domain of the project":        {password(replaced("      project_domain_name: Default\n", "")), auth + "project_domain_name or project_domain_id or domain_name or domain_id or default_domain is missing"},
		"no id of the credential":         {credential(replaced("      application_credential_id: Tr0ub4dor&3:blue\n", "")), auth + "application_credential_id or application_credential_name is missing"},
		"a credential by name alone":      {credential(replaced("application_credential_id:", "application_credential_name:")), auth + "username or user_id is missing"},
		"no secret of the credential":     {credential(replaced("      application_credential_secret: Tr0ub4dor&3\n", "")), auth + "application_credential_secret is missing"},
		"no token":                        {"clouds: {LAB: {auth_type: token, auth: {auth_url: 'https://k', project_id: p}}}", auth + "token is missing"},
		"a token without a project":       {"clouds: {LAB: {auth: {auth_url: 'https://k', token: Tr0ub4dor&3}}}", auth + "project_id or project_name is missing"},
		"megabytes":                       {foreignPassword + strings.Repeat("# "+foreignSecret+"\n", 1<<17), "clouds.yaml is larger than 65536 bytes"},
		"a bomb of aliases":               {bomb + "clouds: *x8\n", "clouds must be a mapping"},
		"a cloud that is itself":          {"clouds: &all {LAB: *all}", "clouds.LAB.LAB is not known here"},
		"a deep nest":                     {"clouds: " + strings.Repeat("[", 20000), "clouds.yaml is not YAML"},
		"two roots in one":                {"clouds: {LAB: {}}\nclouds: {LAB: {}}", "clouds.yaml.clouds stands there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := neutron.NewForeignCloud([]byte(strings.ReplaceAll(tc.file, "AUTH_URL", "https://k.example/v3")), nil, neutron.CloudOptions{Name: "LAB"})
			if err == nil {
				t.Fatal("no error")
			}
			if got := neutron.ClassOf(err); got != neutron.Unauthorized {
				t.Errorf("class %s, want %s", got, neutron.Unauthorized)
			}
			if want := `open cloud "LAB": ` + tc.want; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error\n%s\nwant\n%s", err, want)
			}
			if strings.Contains(err.Error(), "Tr0ub4dor") {
				t.Errorf("the error holds a secret: %v", err)
			}
			if len(err.Error()) > 512 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestForeignCACert(t *testing.T) {
	sim, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(sim)
	t.Cleanup(server.Close)
	authURL := server.URL + "/identity/v3"
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	if _, err := foreignClient(t, authURL, foreignPassword, ca); err != nil {
		t.Errorf("with the CA: %v", err)
	}
	_, err = foreignClient(t, authURL, foreignPassword, nil)
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: error %v, want one of the certificate", err)
	}
	if got := neutron.ClassOf(err); got != neutron.Transient {
		t.Errorf("class %s, want %s", got, neutron.Transient)
	}
	_, err = foreignClient(t, authURL, foreignPassword, []byte("no PEM, but "+foreignSecret))
	if got, want := fmt.Sprint(err), `open cloud "LAB": cacert holds no certificate in PEM`; got != want {
		t.Errorf("error %s, want %s", got, want)
	}
}

// TestForeignCloudTakesNothingFromTheProcess would go to another cloud, or
// nowhere, if any of it counted.
func TestForeignCloudTakesNothingFromTheProcess(t *testing.T) {
	server := newSimulator(t)
	home, work := t.TempDir(), t.TempDir()
	poison := strings.ReplaceAll(foreignPassword, "AUTH_URL", "http://127.0.0.1:1/poison")
	for _, folder := range []string{filepath.Join(home, ".config", "openstack"), work} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"clouds.yaml":        poison,
			"secure.yaml":        poison,
			"clouds-public.yaml": strings.Replace(poison, "clouds:", "public-clouds:", 1),
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(work)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("OS_CLIENT_CONFIG_FILE", filepath.Join(work, "clouds.yaml"))
	for name := range strings.FieldsSeq(`OS_CLOUD OS_AUTH_URL OS_AUTH_TYPE OS_USERNAME OS_USER_ID OS_USERID OS_PASSWORD OS_PASSCODE OS_TOKEN
		OS_PROJECT_ID OS_PROJECT_NAME OS_PROJECT_DOMAIN_ID OS_PROJECT_DOMAIN_NAME OS_TENANT_ID OS_TENANT_NAME OS_DOMAIN_ID OS_DOMAIN_NAME
		OS_USER_DOMAIN_ID OS_USER_DOMAIN_NAME OS_DEFAULT_DOMAIN OS_SYSTEM_SCOPE OS_TRUST_ID OS_REGION_NAME OS_INTERFACE OS_ENDPOINT_TYPE
		OS_APPLICATION_CREDENTIAL_ID OS_APPLICATION_CREDENTIAL_NAME OS_APPLICATION_CREDENTIAL_SECRET OS_IDENTITY_API_VERSION
		OS_CACERT OS_CERT OS_KEY OS_INSECURE OS_VERIFY OS_ENDPOINT_OVERRIDE OS_NETWORK_ENDPOINT_OVERRIDE`) {
		t.Setenv(name, "/poison")
	}
	for name, file := range map[string]string{"password": foreignPassword, "credential": foreignCredential} {
		client, err := foreignClient(t, server.URL+"/identity/v3", file, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(neutron.Place{ProjectID: "blue", Region: "RegionOne"}, client.Place()); diff != "" {
			t.Errorf("%s: place (-want +got):\n%s", name, diff)
		}
		if _, err := client.ListNetworks(t.Context(), neutron.NetworkFilter{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingIsSentInTheClear has an identity service that names others.
func TestNothingIsSentInTheClear(t *testing.T) {
	const refused = "the cloud names an endpoint that is not https; http is for a loopback address alone"
	k, authURL := newKeystone(t)
	k.neutron = "http://neutron.example:9696"
	file := strings.NewReplacer("Tr0ub4dor&3:blue", "22222222222222222222222222222222", foreignSecret, cloudSecret).Replace(foreignCredential)
	client, err := foreignClient(t, authURL+"/v3", file, nil)
	if err == nil {
		_, err = client.ListNetworks(t.Context(), neutron.NetworkFilter{})
	}
	if err == nil || !strings.HasSuffix(err.Error(), refused) {
		t.Errorf("a catalog: error %v, want %s", err, refused)
	}

	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"versions": {"values": [{"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": "http://keystone.example/v3/"}]}]}}`)
	}))
	t.Cleanup(elsewhere.Close)
	if _, err := foreignClient(t, elsewhere.URL, foreignPassword, nil); err == nil || !strings.HasSuffix(err.Error(), refused) {
		t.Errorf("a list of versions: error %v, want %s", err, refused)
	}
}

// TestNoErrorHoldsWhatAServerRepeats has a server that answers with what it was sent.
// Others wait while it is waited for.
func TestASilentCloudIsLeftAlone(t *testing.T) {
	sim := newSimulator(t)
	for silent, path := range map[string]string{"Keystone": "/identity/", "Neutron": "/v2.0/"} {
		t.Run(silent, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, path) {
					asked.Add(1)
					_, _ = io.ReadAll(r.Body) // only then it is noticed that nobody waits
					<-r.Context().Done()
					return
				}
				sim.Config.Handler.ServeHTTP(w, r)
			}))
			defer front.Close()
			file := strings.ReplaceAll(foreignPassword, "AUTH_URL", front.URL+"/identity/v3")
			cloud, err := neutron.NewForeignCloud([]byte(file), nil, neutron.CloudOptions{Name: "LAB", Timeout: 1500 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				client, err := cloud.Client(t.Context())
				if err == nil {
					_, err = client.ListNetworks(t.Context(), neutron.NetworkFilter{})
				}
				if neutron.ClassOf(err) != neutron.Transient || !strings.HasSuffix(err.Error(), ": no answer in time") {
					t.Errorf("got %v, want one error as the other", err)
				}
			}
			if got := asked.Load(); got != 2 {
				t.Errorf("it was asked %d times, want 2", got)
			}
		})
	}
}

func TestNoErrorHoldsWhatAServerRepeats(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"NeutronError": {"type": "Odd", "message": "no %s here"}}`, foreignSecret)
	}))
	t.Cleanup(server.Close)
	_, err := foreignClient(t, server.URL+"/v3", foreignPassword, nil)
	if err == nil || strings.Contains(err.Error(), foreignSecret) || !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("error %v, want one with [secret]", err)
	}
}

func FuzzForeignCloud(f *testing.F) {
	f.Add(foreignPassword)
	f.Add(foreignCredential)
	f.Add("clouds: &a {LAB: {<<: *a, auth: *a}}")
	f.Fuzz(func(_ *testing.T, file string) {
		_, _ = neutron.NewForeignCloud([]byte(file), nil, neutron.CloudOptions{Name: "LAB"})
	})
}
