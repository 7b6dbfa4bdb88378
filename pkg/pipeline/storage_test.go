package pipeline_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// detail returns what a stage tells of a name, or nothing.
func detail(s pipeline.Stage, name string) string {
	i := slices.IndexFunc(s.Details, func(d pipeline.Detail) bool { return d.Name == name })
	if i < 0 {
		return ""
	}
	return s.Details[i].Value
}

func TestKeyThatAListReads(t *testing.T) {
	for name, tc := range map[string]struct {
		watchCache       bool
		wantKey, wantFor string
	}{
		"etcd alone": {false, "/test/networks/default", ""},
		// It asks for a key that is never there, and has the revision with the answer.
		"with the watch cache": {true, "/test/networks", "the revision that the cache must have heard of"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, options{watchCache: tc.watchCache})
			r, answer := s.do(t, call{request: "GET " + v1})
			if r.Response.Code != http.StatusOK {
				t.Fatal(answer)
			}
			etcd := stage(t, r, pipeline.Etcd)
			if got := detail(etcd, "key"); got != tc.wantKey {
				t.Errorf("got key %q, want %q", got, tc.wantKey)
			}
			if got := detail(etcd, "asked for"); got != tc.wantFor {
				t.Errorf("asked for %q, want %q", got, tc.wantFor)
			}
		})
	}
}

// TestAnUpdateThatChangesNothing shows that the time of etcd is not that of the
// encoding too: what the cache has is compared before etcd is asked.
func TestAnUpdateThatChangesNothing(t *testing.T) {
	s := startServer(t, options{watchCache: true})
	for _, c := range []call{
		{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")},
		{request: "PATCH " + v1 + "/a", contentType: merge, body: "{}"},
	} {
		r, answer := s.do(t, c)
		if r.Response.Code >= http.StatusBadRequest {
			t.Fatalf("%s: %s", c.request, answer)
		}
		encoding, etcd := stage(t, r, pipeline.StorageEncoding), stage(t, r, pipeline.Etcd)
		if r.Request.Method == http.MethodPatch && etcd.Subject != "KV/Range" {
			t.Fatalf("%s calls etcd with %s, want KV/Range", c.request, etcd.Subject)
		}
		if etcd.Start < encoding.Start+encoding.Duration {
			t.Errorf("%s: etcd is asked %v after the start, within the encoding from %v for %v", c.request, etcd.Start, encoding.Start, encoding.Duration)
		}
	}
}

func TestObjectsOfAnUpdate(t *testing.T) {
	s := startServer(t, options{})
	created, answer := s.do(t, call{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")})
	if created.Response.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	r, answer := s.do(t, call{request: "PUT " + v1 + "/a", contentType: yamlType, body: newNetwork("a", ", resourceVersion: 'VERSION'", ", mtu: 1400")})
	if r.Response.Code != http.StatusOK {
		t.Fatal(answer)
	}
	strategy := stage(t, r, pipeline.Strategy)
	before, after := strategy.Before.(*samplecrd.Network), strategy.After.(*samplecrd.Network)
	if before.UID != "" || !before.CreationTimestamp.IsZero() {
		t.Errorf("the strategy begins with %+v", before.ObjectMeta)
	}
	if after.UID != created.Object.UID || after.CreationTimestamp.IsZero() || after.Generation != 2 {
		t.Errorf("the strategy makes %+v, want the uid %s, the creationTimestamp and generation 2", after.ObjectMeta, created.Object.UID)
	}
}

func TestAnswersThatAreNoNetworks(t *testing.T) {
	s := startServer(t, options{})
	if r, answer := s.do(t, call{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")}); r.Response.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	const meta = ";v=v1;g=meta.k8s.io,application/json"
	for name, tc := range map[string]struct {
		request, accept, want string
	}{
		"a Network":            {"GET " + v1 + "/a", "application/json", "hub → v1"},
		"Networks":             {"GET " + v1, "application/json", "hub → v1"},
		"a Table":              {"GET " + v1 + "/a", "application/json;as=Table" + meta, "hub → Table"},
		"a Table of several":   {"GET " + v1, "application/json;as=Table" + meta, "hub → Table"},
		"metadata":             {"GET " + v1 + "/a", "application/json;as=PartialObjectMetadata" + meta, "hub → PartialObjectMetadata"},
		"metadata of several":  {"GET " + v2, "application/json;as=PartialObjectMetadataList" + meta, "hub → PartialObjectMetadataList"},
		"metadata of a write":  {"PATCH " + v2 + "/a", "application/json;as=PartialObjectMetadata" + meta, "hub → PartialObjectMetadata"},
		"a Table of a removal": {"DELETE " + v1 + "/a", "application/json;as=Table" + meta, "hub → Table"},
	} {
		t.Run(name, func(t *testing.T) {
			c := call{request: tc.request, header: http.Header{"Accept": {tc.accept}}}
			if name == "metadata of a write" {
				c.contentType, c.body = merge, "{}"
			}
			r, answer := s.do(t, c)
			if r.Response.Code != http.StatusOK {
				t.Fatal(answer)
			}
			if got := stage(t, r, pipeline.ConversionFromHub).Subject; got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, answer)
			}
		})
	}
}
