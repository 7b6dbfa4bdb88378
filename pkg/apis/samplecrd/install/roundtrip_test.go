package install

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	apifuzzer "k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/fuzzer"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
)

// TestRoundTripJSONAndProtobuf covers defaulting, conversion and both encodings.
func TestRoundTripJSONAndProtobuf(t *testing.T) {
	roundtrip.RoundTripProtobufTestForAPIGroup(t, Install, fuzzer.Funcs)
}

func TestRoundTripYAML(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	filler := apifuzzer.FuzzerFor(apifuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzer.Funcs), rand.NewSource(rand.Int63()), codecs)
	yaml := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})

	for _, version := range []schema.GroupVersion{samplecrdv1.SchemeGroupVersion, samplecrdv2alpha1.SchemeGroupVersion} {
		t.Run(version.Version, func(t *testing.T) {
			codec := codecs.CodecForVersions(yaml, yaml, version, samplecrd.SchemeGroupVersion)
			for range *roundtrip.FuzzIters {
				network := &samplecrd.Network{}
				filler.Fill(network)
				data, err := runtime.Encode(codec, network)
				if err != nil {
					t.Fatalf("encoding: %v", err)
				}
				got, err := runtime.Decode(codec, data)
				if err != nil {
					t.Fatalf("decoding: %v\n%s", err, data)
				}
				if !equality.Semantic.DeepEqual(network, got) {
					t.Fatalf("the object changed (-want +got):\n%s\n%s", cmp.Diff(network, got), data)
				}
			}
		})
	}
}

// TestCompatibility compares with what earlier builds wrote: a renamed field or
// a moved protobuf number would lose what is stored in etcd.
func TestCompatibility(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	options := roundtrip.NewCompatibilityTestOptions(scheme)
	for _, version := range []schema.GroupVersion{samplecrdv1.SchemeGroupVersion, samplecrdv2alpha1.SchemeGroupVersion} {
		options.Kinds = append(options.Kinds, version.WithKind("Network"))
	}
	options.Complete(t).Run(t)
}

func TestAllVersionsAreOfOneGroup(t *testing.T) {
	for version, got := range map[string]string{"v1": samplecrdv1.GroupName, "v2alpha1": samplecrdv2alpha1.GroupName} {
		if got != samplecrd.GroupName {
			t.Errorf("the group of %s is %q, that of the hub is %q", version, got, samplecrd.GroupName)
		}
	}
}
