package network

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/standalone"
)

// newStorage is on an etcd of its own.
func newStorage(t *testing.T, decorator generic.StorageDecorator) *Storage {
	t.Helper()
	etcd, err := standalone.StartEtcd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	scheme := newScheme()
	config := storagebackend.NewDefaultConfig("/test", serializer.NewCodecFactory(scheme).LegacyCodec(samplecrdv1.SchemeGroupVersion))
	config.Transport.ServerList = []string{etcd.Endpoint}
	storage, err := NewStorage(scheme, generic.RESTOptions{
		StorageConfig:           config.ForResource(samplecrd.Resource("networks")),
		Decorator:               decorator,
		ResourcePrefix:          "networks",
		DeleteCollectionWorkers: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Network.Destroy)
	return storage
}

func TestNames(t *testing.T) {
	rest := newStorage(t, generic.UndecoratedStorage).Network
	got := map[string][]string{"short": rest.ShortNames(), "categories": rest.Categories(), "singular": {rest.GetSingularName()}}
	want := map[string][]string{"short": {"snet"}, "categories": {"samplecrd"}, "singular": {"network"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected names (-want +got):\n%s", diff)
	}
}

func TestANetworkStaysUntilTheFinalizerGoes(t *testing.T) {
	storage, ctx := newStorage(t, generic.UndecoratedStorage).Network, asked(t, "v1")
	created := create(t, storage, validNetwork())

	obj, gone, err := storage.Delete(ctx, "net", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil || gone {
		t.Fatalf("got gone %t and error %v, want a Network that waits", gone, err)
	}
	waiting := obj.(*samplecrd.Network)
	if waiting.DeletionTimestamp == nil || waiting.Generation != created.Generation+1 {
		t.Errorf("got deletion time %v and generation %d, want a time and %d", waiting.DeletionTimestamp, waiting.Generation, created.Generation+1)
	}
	waiting.Finalizers = nil
	if _, err := update(ctx, storage, waiting); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Get(ctx, "net", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestUpdateOfWhatIsNotAsTheClientThinks(t *testing.T) {
	storage, ctx := newStorage(t, generic.UndecoratedStorage), asked(t, "v1")
	create(t, storage.Network, validNetwork())
	for name, tc := range map[string]struct {
		updater rest.Updater
		sent    *samplecrd.Network
		want    func(error) bool
	}{
		"without a resourceVersion":         {storage.Network, validNetwork(gateway("192.168.0.254")), apierrors.IsInvalid},
		"of one that is not there":          {storage.Network, validNetwork(func(n *samplecrd.Network) { n.Name = "other" }), apierrors.IsNotFound},
		"of the status, where none is":      {storage.Status, storedNetwork(func(n *samplecrd.Network) { n.Name = "other" }), apierrors.IsNotFound},
		"of the status, at another version": {storage.Status, storedNetwork(func(n *samplecrd.Network) { n.UID, n.ResourceVersion = "", "1" }), apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := update(ctx, tc.updater, tc.sent); !tc.want(err) {
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
}

// A server-side apply of what is not there arrives as an update that may create.
func TestApplyCreates(t *testing.T) {
	storage, ctx := newStorage(t, generic.UndecoratedStorage), asked(t, "v1")
	apply := func(updater rest.Updater) (runtime.Object, bool, error) {
		return updater.Update(ctx, "net", rest.DefaultUpdatedObjectInfo(validNetwork()),
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	}
	if _, created, err := apply(storage.Status); created || !apierrors.IsNotFound(err) {
		t.Fatalf("an apply to the status created %t, with error %v", created, err)
	}
	obj, created, err := apply(storage.Network)
	if err != nil || !created {
		t.Fatalf("got created %t and error %v", created, err)
	}
	if diff := cmp.Diff([]string{samplecrd.NeutronFinalizer}, obj.(*samplecrd.Network).Finalizers); diff != "" {
		t.Errorf("unexpected finalizers (-want +got):\n%s", diff)
	}
}

func TestStatus(t *testing.T) {
	storage, ctx := newStorage(t, generic.UndecoratedStorage), asked(t, "v1")
	created := create(t, storage.Network, validNetwork())

	sent := created.DeepCopy()
	networkID("1c7d")(sent)
	gateway("192.168.0.254")(sent)
	if _, err := update(ctx, storage.Status, sent); err != nil {
		t.Fatal(err)
	}
	want := created.DeepCopy()
	networkID("1c7d")(want)
	for name, getter := range map[string]rest.Getter{"networks": storage.Network, "networks/status": storage.Status} {
		obj, err := getter.Get(ctx, "net", &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := obj.(*samplecrd.Network)
		if got.ResourceVersion == created.ResourceVersion {
			t.Errorf("%s: nothing was written", name)
		}
		got.ResourceVersion = want.ResourceVersion
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: unexpected Network (-want +got):\n%s", name, diff)
		}
	}
}

func TestStatusIsReadAndShownAsTheNetworkIs(t *testing.T) {
	storage := newStorage(t, generic.UndecoratedStorage)
	if got, ok := storage.Status.New().(*samplecrd.Network); !ok {
		t.Errorf("a request body is read as a %T", got)
	}
	want := convert(t, validNetwork(), nil)
	got, err := storage.Status.ConvertToTable(t.Context(), validNetwork(), nil)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("got error %v and an unexpected table (-want +got):\n%s", err, diff)
	}
}

// Validating admission stands in these functions.
func TestStatusIsSubjectToAdmission(t *testing.T) {
	storage, ctx := newStorage(t, generic.UndecoratedStorage), asked(t, "v1")
	created, refused := create(t, storage.Network, validNetwork()), errors.New("refused")
	_, _, err := storage.Status.Update(ctx, "net", rest.DefaultUpdatedObjectInfo(created), rest.ValidateAllObjectFunc,
		func(context.Context, runtime.Object, runtime.Object) error { return refused }, false, &metav1.UpdateOptions{})
	if !errors.Is(err, refused) {
		t.Errorf("got %v, want the refusal", err)
	}
}

// The selectors are answered by the watch cache, as they are in a server.
func TestFieldSelectors(t *testing.T) {
	storage, ctx := newStorage(t, genericregistry.StorageWithCacher()), asked(t, "v1")
	first := create(t, storage.Network, validNetwork())
	networkID("1c7d")(first)
	if _, err := update(ctx, storage.Status, first); err != nil {
		t.Fatal(err)
	}
	create(t, storage.Network, validNetwork(cidr("10.0.0.0/24"), gateway(""), func(n *samplecrd.Network) { n.Name = "other" }))

	scheme := newScheme()
	for _, version := range []string{"v1", "v2alpha1"} {
		for name, tc := range map[string]struct {
			label, value string
			refusedBy    string
			want         []string
		}{
			"by name":                         {label: "metadata.name", value: "other", want: []string{"other"}},
			"by namespace":                    {label: "metadata.namespace", value: "default", want: []string{"net", "other"}},
			"by network ID":                   {label: "status.networkID", value: "1c7d", want: []string{"net"}},
			"by no network ID":                {label: "status.networkID", value: "", want: []string{"other"}},
			"by the CIDR of the first subnet": {label: "spec.cidr", value: "10.0.0.0/24", refusedBy: "v2alpha1", want: []string{"other"}},
			"by a CIDR that none has":         {label: "spec.cidr", value: "10.0.0.0/25", refusedBy: "v2alpha1"},
		} {
			t.Run(name+" in "+version, func(t *testing.T) {
				kind := samplecrdv1.SchemeGroupVersion.WithKind("Network")
				kind.Version = version
				label, value, err := scheme.ConvertFieldLabel(kind, tc.label, tc.value)
				if refused := version == tc.refusedBy; refused || err != nil {
					if !refused || err == nil {
						t.Errorf("got error %v, want refused %t", err, refused)
					}
					return
				}
				options := &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(label, value)}
				if diff := cmp.Diff(tc.want, listed(t, ctx, storage.Network, options)); diff != "" {
					t.Errorf("unexpected list (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.want, watched(t, ctx, storage.Network, options)); diff != "" {
					t.Errorf("unexpected events (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAttributes(t *testing.T) {
	if _, _, err := attributes(&metav1.Status{}); err == nil {
		t.Error("a Status has the attributes of a Network")
	}
	gotLabels, gotFields, err := attributes(validNetwork(noSubnets, label("a", "b")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(labels.Set{"a": "b"}, gotLabels); diff != "" {
		t.Errorf("unexpected labels (-want +got):\n%s", diff)
	}
	wantFields := fields.Set{"metadata.name": "net", "metadata.namespace": "default", "spec.cidr": "", "status.networkID": ""}
	if diff := cmp.Diff(wantFields, gotFields); diff != "" {
		t.Errorf("unexpected fields (-want +got):\n%s", diff)
	}
}

// The server destroys a storage once for each version that it is served in.
func TestDestroyMayBeCalledAgain(t *testing.T) {
	storage := newStorage(t, genericregistry.StorageWithCacher())
	for range 2 {
		storage.Network.Destroy()
		storage.Status.Destroy()
	}
}

func create(t *testing.T, storage rest.Creater, network *samplecrd.Network) *samplecrd.Network {
	t.Helper()
	obj, err := storage.Create(asked(t, "v1"), network, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*samplecrd.Network)
}

func update(ctx context.Context, updater rest.Updater, network *samplecrd.Network) (runtime.Object, error) {
	obj, _, err := updater.Update(ctx, network.Name, rest.DefaultUpdatedObjectInfo(network),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return obj, err
}

func listed(t *testing.T, ctx context.Context, storage rest.Lister, options *internalversion.ListOptions) []string {
	t.Helper()
	obj, err := storage.List(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, network := range obj.(*samplecrd.NetworkList).Items {
		names = append(names, network.Name)
	}
	return names
}

// watched returns what a watch begins with, up to the bookmark that ends it.
func watched(t *testing.T, ctx context.Context, storage rest.Watcher, options *internalversion.ListOptions) []string {
	t.Helper()
	watcher, err := storage.Watch(ctx, &internalversion.ListOptions{
		FieldSelector:        options.FieldSelector,
		SendInitialEvents:    new(true),
		AllowWatchBookmarks:  true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	var names []string
	for event := range watcher.ResultChan() {
		switch event.Type {
		case watch.Added:
			names = append(names, event.Object.(*samplecrd.Network).Name)
		case watch.Bookmark:
			return names
		default:
			t.Fatalf("unexpected event %s of %v", event.Type, event.Object)
		}
	}
	t.Fatal("the watch ended before its first bookmark")
	return nil
}
