package integration

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

// protobufMagic begins whatever Kubernetes writes as protobuf.
var protobufMagic = []byte("k8s\x00")

func TestProtobufIsAnsweredWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	const withJSON = protobufType + "," + jsonType
	for name, tc := range map[string]struct {
		method, path, accept string
		wantType             string
	}{
		"a Network":                             {http.MethodGet, "/one", protobufType, protobufType},
		"the status":                            {http.MethodGet, "/one/status", protobufType, protobufType},
		"a list":                                {http.MethodGet, "", protobufType, protobufType},
		"a list out of the cache":               {http.MethodGet, "?resourceVersion=0", protobufType, protobufType},
		"a watch":                               {http.MethodGet, "?watch=true&timeoutSeconds=1&resourceVersion=0", protobufType, protobufType + ";stream=watch"},
		"protobuf first, then JSON":             {http.MethodGet, "", withJSON, protobufType},
		"JSON first, then protobuf":             {http.MethodGet, "", jsonType + "," + protobufType, jsonType},
		"a table, which has no protobuf":        {http.MethodGet, "", protobufType + ";as=Table;v=v1;g=meta.k8s.io," + jsonType + ";as=Table;v=v1;g=meta.k8s.io", jsonType},
		"metadata of a list":                    {http.MethodGet, "", protobufType + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io," + withJSON, protobufType},
		"metadata of a Network":                 {http.MethodGet, "/one", protobufType + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io," + withJSON, protobufType},
		"a refusal":                             {http.MethodGet, "/other", protobufType, protobufType},
		"a deletion":                            {http.MethodDelete, "/one?dryRun=All", withJSON, protobufType},
		"a deletion of the whole":               {http.MethodDelete, "?dryRun=All", withJSON, protobufType},
		"metadata of a deletion of the whole":   {http.MethodDelete, "?dryRun=All", protobufType + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io," + withJSON, protobufType},
		"YAML is answered where it is asked":    {http.MethodGet, "/one", yamlType, yamlType},
		"whoever asks for nothing gets JSON":    {http.MethodGet, "/one", "", jsonType},
		"whoever takes anything gets JSON":      {http.MethodGet, "/one", "*/*", jsonType},
		"what nobody can answer leaves no body": {http.MethodGet, "/one", "image/png", jsonType},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := shared.networks(t)
			n.create(newNetwork("one"))
			n.awaitReady("one")
			for _, version := range apiVersions {
				r := request{method: tc.method, path: n.path(version) + tc.path, header: map[string]string{"Accept": tc.accept}}
				got := shared.send(t, r)
				if contentType := got.header.Get("Content-Type"); contentType != tc.wantType {
					t.Errorf("%s: got HTTP %d of type %q, want type %q", version, got.status, contentType, tc.wantType)
				}
				body := got.body
				if strings.HasSuffix(tc.wantType, "stream=watch") && len(body) > 4 {
					body = body[4:] // the length of the first event; events are bare, the objects in them are not
					if !bytes.Contains(body, protobufMagic) {
						t.Errorf("%s: no object in the events is protobuf: %q", version, got.body)
					}
				} else if bytes.HasPrefix(body, protobufMagic) != (tc.wantType == protobufType) {
					t.Errorf("%s: got a body of the wrong type: %.100q", version, body)
				}
			}
		})
	}
}

func TestAClientThatSpeaksProtobufOnly(t *testing.T) {
	t.Parallel()
	config := rest.CopyConfig(shared.config)
	config.ContentType, config.AcceptContentTypes = protobufType, protobufType
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	networks := clients.SamplecrdV2alpha1().Networks(namespaceOf(t))
	created, err := networks.Create(t.Context(), &samplecrdv2alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       samplecrdv2alpha1.NetworkSpec{Subnets: []samplecrdv2alpha1.Subnet{{CIDR: "10.0.0.0/24"}, {CIDR: "10.0.1.0/24"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watched, err := networks.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	if event, ok := (<-watched.ResultChan()).Object.(*samplecrdv2alpha1.Network); !ok || event.Name != "one" {
		t.Errorf("got event %v, want a Network", event)
	}
	v1, err := clients.SamplecrdV1().Networks(namespaceOf(t)).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(v1.Spec.AdditionalSubnets) != 1 || v1.Spec.CIDR != "10.0.0.0/24" {
		t.Errorf("got spec %+v, want one subnet flat and one more", v1.Spec)
	}
	if _, err := networks.Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want NotFound", err)
	}
	if err := networks.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Errorf("deleting all: %v", err)
	}
	shared.networks(t).awaitGone("one")
}

// It is with this client that a namespace is emptied before it goes.
func TestAClientThatReadsMetadataOnly(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("one"))
	clients, err := metadata.NewForConfig(metadata.ConfigFor(shared.config))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range apiVersions {
		resource := samplecrd.Resource("networks").WithVersion(version)
		list, err := clients.Resource(resource).Namespace(namespaceOf(t)).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if len(list.Items) != 1 || list.Items[0].Name != "one" || list.Items[0].Generation != 1 {
			t.Errorf("%s: got %+v, want the metadata of one Network", version, list.Items)
		}
	}
	resource := samplecrd.Resource("networks").WithVersion("v1")
	if err := clients.Resource(resource).Namespace(namespaceOf(t)).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	n.awaitGone("one")
}

func TestEtcdHoldsProtobufInTheFirstVersion(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	got := shared.send(t, request{
		method: http.MethodPost, path: n.path("v2alpha1"), header: map[string]string{"Content-Type": jsonType},
		body: `{"apiVersion":"samplecrd.k8s.io/v2alpha1","kind":"Network","metadata":{"name":"one"},"spec":{"subnets":[{"cidr":"10.0.0.0/24"}]}}`,
	})
	if got.status != http.StatusCreated {
		t.Fatalf("got HTTP %d %s", got.status, got.body)
	}
	value := shared.stored(t, etcdPrefix+"samplecrd.k8s.io/networks/"+namespaceOf(t)+"/one")
	if !bytes.HasPrefix(value, protobufMagic) {
		t.Errorf("got %.20q in etcd, want protobuf", value)
	}
	if network := decode(t, value); network.Spec.CIDR != "10.0.0.0/24" {
		t.Errorf("got spec %+v in etcd, want that of the first version", network.Spec)
	}
}

func TestJSONInEtcdIsReadAndRewritten(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("old"))
	want := n.awaitReady("old")
	shared.store(t, n.key("old"), encode(t, decode(t, shared.stored(t, n.key("old"))), jsonType))
	ignoreVersion := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ResourceVersion" }, cmp.Ignore())
	if diff := cmp.Diff(want, n.get("old"), ignoreVersion); diff != "" {
		t.Errorf("the Network reads differently from JSON (-protobuf +JSON):\n%s", diff)
	}
	n.edit("old", func(network *samplecrdv1.Network) { network.Labels = map[string]string{"a": "b"} })
	if value := shared.stored(t, n.key("old")); !bytes.HasPrefix(value, protobufMagic) {
		t.Errorf("got %.20q in etcd after a change, want protobuf", value)
	}
}
