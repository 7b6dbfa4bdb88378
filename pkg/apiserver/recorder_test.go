package apiserver

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// Each stage needs another thing that the server hands to the recorder.
func TestRequestsAreRecorded(t *testing.T) {
	recorder := pipeline.NewRecorder(pipeline.Options{
		Traces: 9, Group: samplecrd.GroupName, StoredVersion: samplecrdv1.SchemeGroupVersion, Scheme: Scheme, Codecs: Codecs,
	})
	server, err := newServer(t, nil, func(c *Config) { c.Recorder = recorder })
	if err != nil {
		t.Fatal(err)
	}
	exchange{
		request:     "POST /apis/samplecrd.k8s.io/v1/namespaces/default/networks",
		contentType: "application/yaml",
		body:        "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: a}, spec: {cidr: 192.168.0.0/16}}",
		wantCode:    http.StatusCreated,
	}.run(t, server)
	list, _ := recorder.List()
	if len(list) != 1 {
		t.Fatalf("got %d traces", len(list))
	}
	var got []string
	for _, s := range list[0].Stages() {
		got = append(got, s.Name)
		if s.Name == pipeline.Mux {
			want := []pipeline.Detail{{Name: "route", Value: "POST /apis/samplecrd.k8s.io/v1/namespaces/{namespace}/networks"}, {Name: "operation", Value: "createNamespacedNetwork"}}
			if diff := cmp.Diff(want, s.Details); diff != "" {
				t.Errorf("unexpected details (-want +got):\n%s", diff)
			}
		}
	}
	want := []string{
		pipeline.Authentication, pipeline.Audit, pipeline.Impersonation, pipeline.Authorization, pipeline.Mux,
		pipeline.Decode, pipeline.Defaulting, pipeline.ConversionToHub,
		pipeline.Strategy, pipeline.Validation, pipeline.StorageEncoding, pipeline.Etcd, pipeline.ConversionFromHub, pipeline.Encoding,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected stages (-want +got):\n%s", diff)
	}
}
