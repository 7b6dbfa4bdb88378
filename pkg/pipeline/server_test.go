package pipeline_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/compatibility"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/install"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/generated/openapi"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
	"github.com/samplecrd/network-apiserver/pkg/registry/network"
	"github.com/samplecrd/network-apiserver/pkg/standalone"
)

// patience is how long a test waits for what shall happen.
const patience = time.Minute

// spies note, each in its place and knowing nothing of the recorder, that they
// were called, by the audit ID of the request.
type spies struct {
	mu    sync.Mutex
	calls map[string][]string
	// What has no context notes for the one request that is on its way.
	requests  int
	current   string
	decoding  bool
	storing   bool
	answering runtime.Object
}

func (s *spies) call(ctx context.Context, name string) {
	s.callOf(audit.GetAuditIDTruncated(ctx), name)
}

func (s *spies) callOf(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[id] = append(s.calls[id], name)
}

func (s *spies) of(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls[id])
}

// server is a real server on a real etcd, with a recorder and spies.
type server struct {
	*spies
	recorder *pipeline.Recorder
	scheme   *runtime.Scheme
	codecs   serializer.CodecFactory
	url      string
	version  string // of the last object: VERSION in a body
}

type options struct {
	watchCache bool
	recorder   pipeline.Options
}

func startServer(t *testing.T, o options) *server {
	t.Helper()
	s := &server{spies: &spies{calls: map[string][]string{}}}
	s.scheme = s.newScheme()
	s.codecs = serializer.NewCodecFactory(s.scheme)
	o.recorder.Traces = cmp.Or(o.recorder.Traces, 100)
	o.recorder.Group, o.recorder.StoredVersion = samplecrd.GroupName, samplecrdv1.SchemeGroupVersion
	o.recorder.Scheme, o.recorder.Codecs = s.scheme, s.codecs
	s.recorder = pipeline.NewRecorder(o.recorder)

	etcd, err := standalone.StartEtcd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	config := genericapiserver.NewRecommendedConfig(s.codecs)
	config.Serializer = spyingCodecs{s.codecs, s.spies}
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &restclient.Config{}
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.37", "", "")
	namer := openapinamer.NewDefinitionNamer(s.scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.Authentication.Authenticator = authenticator.RequestFunc(s.authenticate)
	config.Authorization.Authorizer = authorizer.AuthorizerFunc(s.authorize)
	config.AuditBackend = auditBackend{s.spies}
	config.AuditPolicyRuleEvaluator = policy.NewFakePolicyRuleEvaluator(auditinternal.LevelMetadata, []auditinternal.Stage{
		auditinternal.StageResponseStarted, auditinternal.StageResponseComplete, auditinternal.StagePanic,
	})
	config.AdmissionControl = admission.NewChainHandler(
		s.recorder.Decorator().Decorate(mutator{s.spies}, "Labeler"),
		s.recorder.Decorator().Decorate(validator{s.spies}, "Judge"),
	)
	config.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			s.call(req.Context(), pipeline.Mux)
			api.ServeHTTP(w, req)
		}), c)
	}
	config.RESTOptionsGetter = s.storage(etcd.Endpoint, o.watchCache)

	s.recorder.Observe(&config.Config)
	generic, err := config.Complete().New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(generic.Destroy)
	networks, err := network.NewStorage(s.scheme, config.RESTOptionsGetter)
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range networks.Stores() {
		store.CreateStrategy = createStrategy{store.CreateStrategy, s.spies}
		store.UpdateStrategy = updateStrategy{store.UpdateStrategy, s.spies}
		s.recorder.ObserveStore(store)
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(samplecrd.GroupName, s.scheme, runtime.NewParameterCodec(s.scheme), s.codecs)
	group.NegotiatedSerializer = spyingCodecs{s.codecs, s.spies}
	for _, version := range []string{"v1", "v2alpha1"} {
		group.VersionedResourcesStorageMap[version] = map[string]rest.Storage{"networks": networks.Network, "networks/status": networks.Status}
	}
	if err := generic.InstallAPIGroup(&group); err != nil {
		t.Fatal(err)
	}
	s.recorder.ObserveRoutes(generic)
	generic.PrepareRun()
	listener := httptest.NewServer(generic.Handler)
	t.Cleanup(listener.Close)
	s.url = listener.URL
	return s
}

// newScheme has spies in place of the functions that fill in and convert.
func (s *spies) newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{},
		&metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})

	scheme.AddTypeDefaultingFunc(&samplecrdv1.Network{}, func(obj any) {
		s.decodes(obj.(*samplecrdv1.Network), pipeline.Defaulting)
		samplecrdv1.SetObjectDefaults_Network(obj.(*samplecrdv1.Network))
	})
	scheme.AddTypeDefaultingFunc(&samplecrdv2alpha1.Network{}, func(obj any) {
		s.decodes(obj.(*samplecrdv2alpha1.Network), pipeline.Defaulting)
		samplecrdv2alpha1.SetObjectDefaults_Network(obj.(*samplecrdv2alpha1.Network))
	})
	for _, err := range []error{
		scheme.AddConversionFunc((*samplecrdv1.Network)(nil), (*samplecrd.Network)(nil), func(a, b any, scope conversion.Scope) error {
			s.decodes(a.(*samplecrdv1.Network), pipeline.ConversionToHub)
			return samplecrdv1.Convert_v1_Network_To_samplecrd_Network(a.(*samplecrdv1.Network), b.(*samplecrd.Network), scope)
		}),
		scheme.AddConversionFunc((*samplecrdv2alpha1.Network)(nil), (*samplecrd.Network)(nil), func(a, b any, scope conversion.Scope) error {
			s.decodes(a.(*samplecrdv2alpha1.Network), pipeline.ConversionToHub)
			return samplecrdv2alpha1.Convert_v2alpha1_Network_To_samplecrd_Network(a.(*samplecrdv2alpha1.Network), b.(*samplecrd.Network), scope)
		}),
		scheme.AddConversionFunc((*samplecrd.Network)(nil), (*samplecrdv1.Network)(nil), func(a, b any, scope conversion.Scope) error {
			s.answers(a.(*samplecrd.Network))
			return samplecrdv1.Convert_samplecrd_Network_To_v1_Network(a.(*samplecrd.Network), b.(*samplecrdv1.Network), scope)
		}),
		scheme.AddConversionFunc((*samplecrd.Network)(nil), (*samplecrdv2alpha1.Network)(nil), func(a, b any, scope conversion.Scope) error {
			s.answers(a.(*samplecrd.Network))
			return samplecrdv2alpha1.Convert_samplecrd_Network_To_v2alpha1_Network(a.(*samplecrd.Network), b.(*samplecrdv2alpha1.Network), scope)
		}),
		scheme.AddConversionFunc((*samplecrd.NetworkList)(nil), (*samplecrdv1.NetworkList)(nil), func(a, b any, scope conversion.Scope) error {
			s.answers(a.(*samplecrd.NetworkList))
			return samplecrdv1.Convert_samplecrd_NetworkList_To_v1_NetworkList(a.(*samplecrd.NetworkList), b.(*samplecrdv1.NetworkList), scope)
		}),
	} {
		if err != nil {
			panic(err)
		}
	}
	return scheme
}

// decodes notes a step between a body and the hub: what comes from etcd has a
// UID, and goes the same way.
func (s *spies) decodes(obj metav1.Object, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decoding && obj.GetUID() == "" {
		s.calls[s.current] = append(s.calls[s.current], name)
	}
}

// answers notes the conversion of an answer, and not that of what is stored.
func (s *spies) answers(obj runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answering == obj {
		s.calls[s.current] = append(s.calls[s.current], pipeline.ConversionFromHub)
	}
}

// spyingCodecs read bodies and write answers.
type spyingCodecs struct {
	serializer.CodecFactory
	spies *spies
}

func (c spyingCodecs) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return outerDecoder{c.CodecFactory.DecoderToVersion(innerDecoder{decoder, c.spies}, version), c.spies}
}

func (c spyingCodecs) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	return outerEncoder{c.CodecFactory.EncoderForVersion(innerEncoder{encoder, c.spies}, version), c.spies}
}

type innerDecoder struct {
	runtime.Decoder
	spies *spies
}

func (d innerDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	d.spies.mu.Lock()
	current, decoding := d.spies.current, d.spies.decoding
	d.spies.mu.Unlock()
	if _, options := into.(*metav1.DeleteOptions); decoding && !options {
		d.spies.callOf(current, pipeline.Decode)
	}
	return d.Decoder.Decode(data, defaults, into)
}

type outerDecoder struct {
	runtime.Decoder
	spies *spies
}

func (d outerDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	d.set(true)
	defer d.set(false)
	return d.Decoder.Decode(data, defaults, into)
}

func (d outerDecoder) set(decoding bool) {
	d.spies.mu.Lock()
	defer d.spies.mu.Unlock()
	d.spies.decoding = decoding
}

type innerEncoder struct {
	runtime.Encoder
	spies *spies
}

func (e innerEncoder) Encode(obj runtime.Object, w io.Writer) error {
	e.spies.mu.Lock()
	current, answering := e.spies.current, e.spies.answering
	e.spies.mu.Unlock()
	if answering != nil {
		e.spies.callOf(current, pipeline.Encoding)
	}
	return e.Encoder.Encode(obj, w)
}

type outerEncoder struct {
	runtime.Encoder
	spies *spies
}

func (e outerEncoder) Encode(obj runtime.Object, w io.Writer) error {
	// A patch encodes too, to have what it is applied to.
	if _, answers := w.(*bytes.Buffer); answers {
		return e.Encoder.Encode(obj, w)
	}
	e.set(obj)
	defer e.set(nil)
	return e.Encoder.Encode(obj, w)
}

func (e outerEncoder) set(obj runtime.Object) {
	e.spies.mu.Lock()
	defer e.spies.mu.Unlock()
	e.spies.answering = obj
}

func (s *spies) authenticate(req *http.Request) (*authenticator.Response, bool, error) {
	s.call(req.Context(), pipeline.Authentication)
	if req.Header.Get("Authorization") != "Bearer "+token {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "alice", Groups: []string{"staff"}}}, true, nil
}

func (s *spies) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if strings.HasPrefix(a.GetVerb(), "impersonate") {
		if !slices.Contains(s.of(audit.GetAuditIDTruncated(ctx)), pipeline.Impersonation) {
			s.call(ctx, pipeline.Impersonation)
		}
		if a.GetResource() == "userextras" {
			return authorizer.DecisionDeny, "by the test", nil
		}
		return authorizer.DecisionAllow, "", nil
	}
	s.call(ctx, pipeline.Authorization)
	if a.GetName() == "broken" {
		return authorizer.DecisionNoOpinion, "", errors.New("nobody decides")
	}
	if a.GetName() == "forbidden" || a.GetName() == "not-to-create" && a.GetVerb() == "create" {
		return authorizer.DecisionDeny, "by the test", nil
	}
	return authorizer.DecisionAllow, "", nil
}

type auditBackend struct{ spies *spies }

func (b auditBackend) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, e := range events {
		b.spies.callOf(string(e.AuditID), pipeline.Audit)
	}
	return true
}

func (auditBackend) Run(<-chan struct{}) error { return nil }
func (auditBackend) Shutdown()                 {}
func (auditBackend) String() string            { return "spy" }

// mutator sets a label.
type mutator struct{ spies *spies }

func (mutator) Handles(admission.Operation) bool { return true }

func (m mutator) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	network, ok := a.GetObject().(*samplecrd.Network)
	if !ok {
		return nil // of a deletion
	}
	m.spies.call(ctx, pipeline.MutatingAdmission)
	if network.Labels["refuse"] == "mutator" {
		return admission.NewForbidden(a, fmt.Errorf("the mutator does not like it"))
	}
	metav1.SetMetaDataLabel(&network.ObjectMeta, "mutated", "true")
	return nil
}

// validator refuses what asks for it.
type validator struct{ spies *spies }

func (validator) Handles(admission.Operation) bool { return true }

func (v validator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	v.spies.call(ctx, pipeline.ValidatingAdmission)
	if network, ok := a.GetObject().(*samplecrd.Network); ok && network.Labels["refuse"] == "validator" {
		return admission.NewForbidden(a, fmt.Errorf("the validator does not like it"))
	}
	return nil
}

type createStrategy struct {
	rest.RESTCreateStrategy
	spies *spies
}

func (s createStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.spies.call(ctx, pipeline.Strategy)
	s.RESTCreateStrategy.PrepareForCreate(ctx, obj)
}

func (s createStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	s.spies.call(ctx, pipeline.Validation)
	return s.RESTCreateStrategy.Validate(ctx, obj)
}

type updateStrategy struct {
	rest.RESTUpdateStrategy
	spies *spies
}

func (s updateStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.spies.call(ctx, pipeline.Strategy)
	s.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old)
}

func (s updateStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	s.spies.call(ctx, pipeline.Validation)
	return s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old)
}

// storage returns where Networks are kept, with spies on the codec, on the calls
// of etcd and below the store that the registry sees.
func (s *server) storage(endpoint string, watchCache bool) generic.RESTOptionsGetter {
	config := storagebackend.NewDefaultConfig("/test", codecSpy{s.codecs.LegacyCodec(samplecrdv1.SchemeGroupVersion), s.spies})
	config.Transport.ServerList = []string{endpoint}
	config.Transport.TracerProvider = etcdSpy{spies: s.spies}
	decorate := generic.UndecoratedStorage
	if watchCache {
		decorate = genericregistry.StorageWithCacher()
	}
	return generic.RESTOptions{
		StorageConfig: config.ForResource(samplecrd.Resource("networks")),
		Decorator: func(config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
			newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			inner, destroy, err := decorate(config, resourcePrefix, keyFunc, newFunc, newListFunc, attributes, trigger, indexers)
			return storeSpy{inner, s.spies, watchCache}, destroy, err
		},
		ResourcePrefix: "networks",
	}
}

// etcdSpy sees the calls of the etcd client.
type etcdSpy struct {
	noop.TracerProvider
	spies *spies
}

func (e etcdSpy) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return etcdTracer{spies: e.spies}
}

type etcdTracer struct {
	noop.Tracer
	spies *spies
}

func (e etcdTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	e.spies.call(ctx, pipeline.Etcd)
	return e.Tracer.Start(ctx, name, options...)
}

// codecSpy makes the bytes that are stored.
type codecSpy struct {
	runtime.Codec
	spies *spies
}

func (c codecSpy) Encode(obj runtime.Object, w io.Writer) error {
	// What the watch cache has is encoded too, to stand for what is stored.
	if c.spies.store(false) {
		c.spies.mu.Lock()
		current := c.spies.current
		c.spies.mu.Unlock()
		c.spies.callOf(current, pipeline.StorageEncoding)
	}
	return c.Codec.Encode(obj, w)
}

// store notes whether what is encoded next is to be stored, and returns what was
// noted before.
func (s *spies) store(next bool) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.storing = s.storing, next
	return before
}

type storeSpy struct {
	storage.Interface
	spies      *spies
	watchCache bool
}

func (s storeSpy) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	tryUpdate storage.UpdateFunc, existing runtime.Object) error {
	info, _ := request.RequestInfoFrom(ctx)
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, func(obj runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if !strings.HasPrefix(info.Verb, "delete") {
			s.spies.call(ctx, pipeline.Merge)
		}
		updated, ttl, err := tryUpdate(obj, meta)
		if err == nil && strings.HasPrefix(info.Verb, "delete") {
			s.spies.call(ctx, pipeline.Strategy) // rest.BeforeDelete
		}
		s.spies.store(err == nil)
		return updated, ttl, err
	}, existing)
}

func (s storeSpy) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	s.spies.store(true)
	return s.Interface.Create(ctx, key, obj, out, ttl)
}

func (s storeSpy) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	if s.watchCache && options.ResourceVersion != "" {
		s.spies.call(ctx, pipeline.WatchCache)
	}
	return s.Interface.Get(ctx, key, options, out)
}

func (s storeSpy) GetList(ctx context.Context, key string, options storage.ListOptions, list runtime.Object) error {
	if s.watchCache {
		s.spies.call(ctx, pipeline.WatchCache)
	}
	return s.Interface.GetList(ctx, key, options, list)
}

func (s storeSpy) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	if s.watchCache {
		s.spies.call(ctx, pipeline.WatchCache)
	}
	w, err := s.Interface.Watch(ctx, key, options)
	s.spies.call(ctx, pipeline.Watch)
	return w, err
}

const (
	token = "TOKENCANARY"
	v1    = "/apis/samplecrd.k8s.io/v1/namespaces/default/networks"
	v2    = "/apis/samplecrd.k8s.io/v2alpha1/namespaces/default/networks"

	jsonType  = "application/json"
	yamlType  = "application/yaml"
	jsonPatch = "application/json-patch+json"
	merge     = "application/merge-patch+json"
	apply     = "application/apply-patch+yaml"
)

// call is a request.
type call struct {
	request           string // method and path
	contentType, body string
	header            http.Header
}

// do sends a request, and returns its trace when it is over.
func (s *server) do(t *testing.T, c call) (*pipeline.Record, string) {
	t.Helper()
	response := s.send(t, c)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := s.trace(t, response.Header.Get(auditinternal.HeaderAuditID))
	if r.Object.Version != "" {
		s.version = r.Object.Version
	}
	return r, string(body)
}

func (s *server) send(t *testing.T, c call) *http.Response {
	t.Helper()
	method, path, _ := strings.Cut(c.request, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(strings.ReplaceAll(c.body, "VERSION", s.version)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", c.contentType)
	s.mu.Lock()
	s.requests++
	s.current = fmt.Sprintf("request-%d", s.requests)
	req.Header.Set(auditinternal.HeaderAuditID, s.current)
	// Another one each time: the library remembers who may be whom.
	req.Header.Set("Impersonate-User", fmt.Sprintf("user-%d", s.requests))
	s.mu.Unlock()
	maps.Copy(req.Header, c.header)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// trace waits until a request is over.
func (s *server) trace(t *testing.T, id string) *pipeline.Record {
	t.Helper()
	s.wait(t, "trace of "+id, func() bool { return s.recorder.Get(id) != nil })
	return s.recorder.Get(id)
}

// wait looks again when the recorder has something new.
func (s *server) wait(t *testing.T, what string, there func() bool) {
	t.Helper()
	for deadline := time.After(patience); ; {
		_, version := s.recorder.List()
		if there() {
			return
		}
		select {
		case <-s.recorder.Changed(version):
		case <-deadline:
			t.Fatalf("there is no %s", what)
		}
	}
}

func names(stages []pipeline.Stage) (list []string) {
	for _, s := range stages {
		list = append(list, s.Name)
	}
	return list
}
