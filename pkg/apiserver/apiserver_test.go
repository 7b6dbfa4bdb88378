package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/generated/openapi"
	"github.com/samplecrd/network-apiserver/pkg/standalone"
)

// newServer lets everybody in and has no admission: those are the options'.
func newServer(t *testing.T, runtimeConfig map[string]string, tweaks ...func(*Config)) (*Server, error) {
	t.Helper()
	etcd, err := standalone.StartEtcd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	config := genericapiserver.NewRecommendedConfig(Codecs)
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &rest.Config{}
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.37", "", "")
	namer := openapinamer.NewDefinitionNamer(Scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)

	storage := storagebackend.NewDefaultConfig("/test", Codecs.LegacyCodec(samplecrdv1.SchemeGroupVersion))
	storage.Transport.ServerList = []string{etcd.Endpoint}
	config.RESTOptionsGetter = generic.RESTOptions{
		StorageConfig:  storage.ForResource(samplecrd.Resource("networks")),
		Decorator:      genericregistry.StorageWithCacher(),
		ResourcePrefix: "networks",
	}
	versions := genericoptions.NewAPIEnablementOptions()
	versions.RuntimeConfig = runtimeConfig
	if err := versions.ApplyTo(&config.Config, DefaultResources(), Scheme); err != nil {
		t.Fatal(err)
	}
	c := &Config{GenericConfig: config}
	for _, tweak := range tweaks {
		tweak(c)
	}
	server, err := c.Complete().New()
	if err != nil {
		return nil, err
	}
	t.Cleanup(server.GenericAPIServer.Destroy)
	server.GenericAPIServer.PrepareRun()
	return server, nil
}

// exchange is a request and what is looked at in the answer.
type exchange struct {
	request           string // method and path
	contentType, body string
	accept, auditID   string
	wantCode          int
	want              string // a part of the body
}

func (e exchange) run(t *testing.T, server *Server) []byte {
	t.Helper()
	method, path, _ := strings.Cut(e.request, " ")
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(e.body))
	request.Header.Set("Content-Type", e.contentType)
	request.Header.Set("Accept", e.accept)
	request.Header.Set("Audit-ID", e.auditID)
	answer := httptest.NewRecorder()
	server.GenericAPIServer.Handler.ServeHTTP(answer, request)
	if answer.Code != e.wantCode || !strings.Contains(answer.Body.String(), e.want) {
		t.Errorf("%s: got %d, want %d and %q in it:\n%s", e.request, answer.Code, e.wantCode, e.want, answer.Body)
	}
	return answer.Body.Bytes()
}

func get(t *testing.T, server *Server, path string, into any) {
	t.Helper()
	answer := exchange{request: "GET " + path, wantCode: http.StatusOK}.run(t, server)
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatal(err)
	}
}

func TestVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		runtimeConfig map[string]string
		want          []string // the preferred one first
	}{
		"all are served by default":             {nil, []string{"v1", "v2alpha1"}},
		"the newer one can be switched off":     {map[string]string{"samplecrd.k8s.io/v2alpha1": "false"}, []string{"v1"}},
		"without v1 the other one is preferred": {map[string]string{"samplecrd.k8s.io/v1": "false"}, []string{"v2alpha1"}},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := newServer(t, tc.runtimeConfig)
			if err != nil {
				t.Fatal(err)
			}
			var group metav1.APIGroup
			get(t, server, "/apis/samplecrd.k8s.io", &group)
			var got []string
			for _, version := range group.Versions {
				got = append(got, version.Version)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected versions (-want +got):\n%s", diff)
			}
			if got := group.PreferredVersion.Version; got != tc.want[0] {
				t.Errorf("the preferred version is %s, want %s", got, tc.want[0])
			}
		})
	}
}

func TestAServerWithNothingToServeIsRefused(t *testing.T) {
	_, err := newServer(t, map[string]string{"api/all": "false"})
	if err == nil || !strings.Contains(err.Error(), "no version is enabled") {
		t.Errorf("got %v", err)
	}
}

func TestResources(t *testing.T) {
	server, err := newServer(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.APIResource{
		{
			Name: "networks", SingularName: "network", Namespaced: true, Kind: "Network",
			Verbs:      metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			ShortNames: []string{"snet"}, Categories: []string{"samplecrd"},
		},
		{Name: "networks/status", Namespaced: true, Kind: "Network", Verbs: metav1.Verbs{"get", "patch", "update"}},
	}
	for _, version := range []string{"v1", "v2alpha1"} {
		t.Run(version, func(t *testing.T) {
			var got metav1.APIResourceList
			get(t, server, "/apis/samplecrd.k8s.io/"+version, &got)
			for i := range got.APIResources {
				got.APIResources[i].StorageVersionHash = ""
			}
			if diff := cmp.Diff(want, got.APIResources); diff != "" {
				t.Errorf("unexpected resources (-want +got):\n%s", diff)
			}
		})
	}
}

// Each answer needs something that the scheme, the codecs or the OpenAPI of the
// server can lack.
func TestOneObjectInBothVersions(t *testing.T) {
	server, err := newServer(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	const (
		v1       = "/apis/samplecrd.k8s.io/v1/namespaces/default/networks"
		v2alpha1 = "/apis/samplecrd.k8s.io/v2alpha1/namespaces/default/networks"
		apply    = "application/apply-patch+yaml"
		merge    = "application/merge-patch+json"
		protobuf = "application/vnd.kubernetes.protobuf"
	)
	for _, e := range []exchange{
		{request: "POST " + v1, contentType: "application/yaml",
			body:     "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: a}, spec: {cidr: 192.168.0.0/16}}",
			wantCode: 201, want: `"finalizers":["samplecrd.k8s.io/neutron"]`},
		{request: "POST " + v2alpha1, contentType: "application/json",
			body:     `{"apiVersion":"samplecrd.k8s.io/v2alpha1","kind":"Network","metadata":{"name":"b"},"spec":{"subnets":[{"cidr":"10.0.0.0/24"}]}}`,
			wantCode: 201, want: `"subnets":[{"cidr":"10.0.0.0/24","dhcp":"Enabled"}]`},

		{request: "GET " + v2alpha1 + "/a", wantCode: 200, want: `"subnets":[{"cidr":"192.168.0.0/16","dhcp":"Enabled"}]`},
		{request: "GET " + v1 + "/b", wantCode: 200, want: `"spec":{"cidr":"10.0.0.0/24","dhcp":"Enabled"`},
		{request: "GET " + v1 + "/c", wantCode: 404, want: `networks.samplecrd.k8s.io \"c\" not found`},
		{request: "GET " + v1 + "/a", accept: protobuf, wantCode: 200, want: "k8s\x00"},
		{request: "GET " + v2alpha1, accept: protobuf, wantCode: 200, want: "k8s\x00"},
		{request: "GET " + v1, accept: "application/json;as=Table;g=meta.k8s.io;v=v1", wantCode: 200, want: `"cells":["a","192.168.0.0/16"`},
		{request: "GET " + v1, accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", wantCode: 200, want: `"name":"a"`},
		{request: "GET " + v1 + "?fieldSelector=spec.cidr%3D10.0.0.0/24", wantCode: 200, want: `"name":"b"`},
		{request: "GET " + v2alpha1 + "?fieldSelector=spec.cidr%3D10.0.0.0/24", wantCode: 400, want: "is not a known field selector"},

		{request: "PATCH " + v1 + "/a", contentType: merge, body: `{"spec":{"cidr":"garbage"}}`, wantCode: 422, want: `"field":"spec.cidr"`},
		{request: "PATCH " + v2alpha1 + "/a", contentType: merge, body: `{"spec":{"subnets":[{"cidr":"garbage"}]}}`, wantCode: 422, want: `"field":"spec.subnets[0].cidr"`},
		{request: "PATCH " + v1 + "/a/status", contentType: merge, body: `{"spec":{"cidr":"10.0.0.0/16"},"status":{"networkID":"1c7d"}}`,
			wantCode: 200, want: `"spec":{"cidr":"192.168.0.0/16"`},

		{request: "PATCH " + v1 + "/c?fieldManager=test", contentType: apply,
			body:     "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: c}, spec: {cidr: 10.1.0.0/16}, status: {networkID: stolen}}",
			wantCode: 201, want: `"fieldsV1":{"f:spec":{"f:cidr":{}}}`},
		{request: "PATCH " + v2alpha1 + "/c/status?fieldManager=test", contentType: apply,
			body:     "{apiVersion: samplecrd.k8s.io/v2alpha1, kind: Network, metadata: {name: c}, spec: {mtu: 1400}, status: {networkID: 1c7e}}",
			wantCode: 200, want: `"fieldsV1":{"f:status":{"f:networkID":{}}}`},

		{request: "DELETE " + v2alpha1 + "/a", contentType: "application/json",
			body:     `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`,
			wantCode: 200, want: `"deletionTimestamp":`},
	} {
		e.run(t, server)
	}
}
