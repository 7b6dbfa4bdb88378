package integration

import (
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/apiserver"
)

// etcdPrefix is where everything is that the server stores.
const etcdPrefix = "/network-apiserver/"

// etcd opens what the server stores in.
func (s *server) etcd(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + filepath.Join(s.dir, "etcd", "sock")},
		Logger:    zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// key is where a Network of the test is stored.
func (n networks) key(name string) string {
	return etcdPrefix + "samplecrd.k8s.io/networks/" + namespaceOf(n.t) + "/" + name
}

// stored is what etcd holds of a Network.
func (s *server) stored(t testing.TB, key string) []byte {
	t.Helper()
	response, err := s.etcd(t).Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 1 {
		t.Fatalf("got %d keys %s in etcd, want 1", len(response.Kvs), key)
	}
	return response.Kvs[0].Value
}

// store puts bytes into etcd behind the back of the server.
func (s *server) store(t testing.TB, key string, value []byte) {
	t.Helper()
	if _, err := s.etcd(t).Put(t.Context(), key, string(value)); err != nil {
		t.Fatal(err)
	}
}

// decode reads a Network as it is stored.
func decode(t testing.TB, value []byte) *samplecrdv1.Network {
	t.Helper()
	obj, _, err := apiserver.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	network, ok := obj.(*samplecrdv1.Network)
	if !ok {
		t.Fatalf("got a %T, want a Network in v1", obj)
	}
	return network
}

// encode writes a Network as that media type, in v1.
func encode(t testing.TB, network *samplecrdv1.Network, mediaType string) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(apiserver.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("there is no serializer for %s", mediaType)
	}
	value, err := runtime.Encode(apiserver.Codecs.EncoderForVersion(info.Serializer, samplecrdv1.SchemeGroupVersion), network)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
