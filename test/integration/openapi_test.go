package integration

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitionName is what every reader of OpenAPI takes for a name in a reference.
var definitionName = regexp.MustCompile(`^[A-Za-z0-9.\-]+$`)

const networkKind = "x-kubernetes-group-version-kind"

func TestOpenAPIVersion2IsOneInJSONAndProtobuf(t *testing.T) {
	t.Parallel()
	var fromJSON spec.Swagger
	shared.get(t, "/openapi/v2", map[string]string{"Accept": jsonType}).into(t, &fromJSON)

	clients, err := discovery.NewDiscoveryClientForConfig(shared.config)
	if err != nil {
		t.Fatal(err)
	}
	document, err := clients.OpenAPISchema() // asks for protobuf
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proto.NewOpenAPIData(document); err != nil {
		t.Errorf("the models can't be read: %v", err)
	}
	var fromProtobuf spec.Swagger
	if ok, err := fromProtobuf.FromGnostic(document); err != nil || !ok {
		t.Fatalf("reading the protobuf: whole: %v, error: %v", ok, err)
	}
	names := func(s spec.Swagger) []string { return slices.Sorted(maps.Keys(s.Definitions)) }
	if diff := cmp.Diff(names(fromJSON), names(fromProtobuf)); diff != "" {
		t.Errorf("the definitions differ (-JSON +protobuf):\n%s", diff)
	}
	schemas := map[string]*spec.Schema{}
	for name, schema := range fromJSON.Definitions {
		schemas[name] = &schema
	}
	checkSchemas(t, "#/definitions/", schemas)
	for path := range fromJSON.Paths.Paths {
		if strings.Contains(path, "samplecrd") && !strings.HasPrefix(path, "/apis/samplecrd.k8s.io/") && !strings.HasPrefix(path, "/apis/pipeline.samplecrd.k8s.io/") {
			t.Errorf("got path %s of another group", path)
		}
	}
}

func TestOpenAPIVersion3OfEachVersion(t *testing.T) {
	t.Parallel()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	shared.get(t, "/openapi/v3", nil).into(t, &index)
	for _, version := range apiVersions {
		entry, ok := index.Paths["apis/samplecrd.k8s.io/"+version]
		if !ok {
			t.Errorf("got paths %v, want one of %s", slices.Sorted(maps.Keys(index.Paths)), version)
			continue
		}
		var document spec3.OpenAPI
		answer := shared.get(t, entry.ServerRelativeURL, nil)
		answer.into(t, &document)
		if answer.header.Get("Etag") == "" {
			t.Errorf("%s: got no ETag", version)
		}
		checkSchemas(t, "#/components/schemas/", document.Components.Schemas)
		if document.Paths.Paths["/apis/samplecrd.k8s.io/"+version+"/namespaces/{namespace}/networks/{name}/status"] == nil {
			t.Errorf("%s: got no path of the status", version)
		}
		if a := shared.get(t, entry.ServerRelativeURL, map[string]string{"Accept": "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}); !strings.Contains(a.header.Get("Content-Type"), "protobuf") {
			t.Errorf("%s: got type %q, want protobuf", version, a.header.Get("Content-Type"))
		}
	}
}

// checkSchemas makes sure that all references lead somewhere, and that our own
// schemas explain every field.
func checkSchemas(t *testing.T, prefix string, schemas map[string]*spec.Schema) {
	t.Helper()
	networks := 0
	for name, schema := range schemas {
		if !definitionName.MatchString(name) {
			t.Errorf("got the name %q, want only letters, digits, dots and dashes", name)
		}
		if _, ok := schema.Extensions[networkKind]; ok && strings.HasSuffix(name, ".Network") {
			networks++
		}
		walk(name, schema, func(path string, s *spec.Schema) {
			if ref := s.Ref.String(); ref != "" && schemas[strings.TrimPrefix(ref, prefix)] == nil {
				t.Errorf("%s: the reference %q leads nowhere", path, ref)
			}
			for field, property := range s.Properties {
				if strings.Contains(name, "samplecrd") && property.Description == "" && field != "metadata" {
					t.Errorf("%s.%s: got no description", path, field)
				}
			}
		})
	}
	if networks == 0 {
		t.Errorf("got no schema of a Network in %v", slices.Sorted(maps.Keys(schemas)))
	}
}

func walk(path string, s *spec.Schema, visit func(string, *spec.Schema)) {
	visit(path, s)
	for name, property := range s.Properties {
		walk(path+"."+name, &property, visit)
	}
	for i := range s.AllOf {
		walk(path, &s.AllOf[i], visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(path+"{}", s.AdditionalProperties.Schema, visit)
	}
}

func TestOpenAPIIsNotSentAgainUnchanged(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/samplecrd.k8s.io/v1"} {
		etag := shared.get(t, path, nil).header.Get("Etag")
		if got := shared.send(t, request{method: http.MethodGet, path: path, header: map[string]string{"If-None-Match": etag}}); got.status != http.StatusNotModified {
			t.Errorf("%s: got HTTP %d with the ETag %s, want 304", path, got.status, etag)
		}
	}
}
