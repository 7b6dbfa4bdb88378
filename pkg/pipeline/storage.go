package pipeline

import (
	"context"
	"encoding/hex"
	"path"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
)

// firstBytes is how much is shown of what is in etcd.
const firstBytes = 32

// optionsGetter puts the recorder between the registry and etcd.
type optionsGetter struct {
	generic.RESTOptionsGetter
	recorder *Recorder
}

func (g optionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	config := *options.StorageConfig
	if config.Transformer == nil {
		config.Transformer = identity.NewEncryptCheckTransformer() // as the library does
	}
	config.Transformer = transformer{config.Transformer}
	config.Transport.TracerProvider = &provider{TracerProvider: config.Transport.TracerProvider}
	options.StorageConfig = &config
	decorate := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		inner, destroy, err := decorate(config, resourcePrefix, keyFunc, newFunc, newListFunc, attributes, trigger, indexers)
		return observed{inner, g.recorder, config.Prefix, path.Join(config.Prefix, resourcePrefix)}, destroy, err
	}
	return options, nil
}

// transformer sees the very bytes that go to etcd and come from there.
type transformer struct{ value.Transformer }

func (f transformer) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	stored, err := f.Transformer.TransformToStorage(ctx, data, dataCtx)
	if t := from(ctx); t != nil && err == nil {
		t.note(StorageEncoding, func(s *Stage) {
			s.Details = append(s.Details, bytesOf(stored)...)
		})
	}
	return stored, err
}

func (f transformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	// Of a list there is one call for each object.
	if t := from(ctx); t != nil && t.request.Verb != "list" {
		t.note(Etcd, func(s *Stage) {
			s.Details = append(s.Details, bytesOf(data)...)
		})
	}
	return f.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

func bytesOf(data []byte) []Detail {
	return []Detail{
		{"bytes", strconv.Itoa(len(data))},
		{"first bytes", hex.EncodeToString(data[:min(len(data), firstBytes)])},
	}
}

// observed is the store of objects, with the watch cache and without.
type observed struct {
	storage.Interface
	recorder *Recorder
	prefix   string
	cacheKey string // that the watch cache asks etcd for
}

func (o observed) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	t := from(ctx)
	if t == nil {
		return o.Interface.Create(ctx, key, obj, out, ttl)
	}
	t.useKeys(o, key)
	t.toStore(t.see(obj))
	err := o.Interface.Create(ctx, key, obj, out, ttl)
	if err != nil {
		t.refused(err)
		return err
	}
	t.wrote(out)
	return nil
}

func (o observed) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	t := from(ctx)
	if t == nil {
		return o.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject)
	}
	t.useKeys(o, key)
	var refusal error
	err := o.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, func(existing runtime.Object, res storage.ResponseMeta) (runtime.Object, *uint64, error) {
		var updated runtime.Object
		var ttl *uint64
		before := t.toMerge(existing)
		updated, ttl, refusal = tryUpdate(existing, res)
		if refusal != nil {
			t.refusedUpdate(refusal)
			return updated, ttl, refusal
		}
		t.updated(before, updated)
		return updated, ttl, nil
	}, cachedExistingObject)
	if err != nil {
		if refusal == nil {
			t.refused(err)
		}
		return err
	}
	t.wrote(destination)
	return nil
}

func (o observed) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc,
	cachedExistingObject runtime.Object, options storage.DeleteOptions) error {
	t := from(ctx)
	t.useKeys(o, key)
	err := o.Interface.Delete(ctx, key, out, preconditions, validate, cachedExistingObject, options)
	if t == nil {
		return err
	}
	if err != nil {
		t.refused(err)
		return err
	}
	t.mu.Lock()
	t.removed = true
	t.mu.Unlock()
	t.wrote(out)
	return nil
}

func (o observed) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	t := from(ctx)
	t.useKeys(o, key)
	err := o.Interface.Get(ctx, key, options, out)
	switch {
	case t == nil:
	case err == nil:
		t.setLast(snapshot(out))
		t.note(Etcd, func(s *Stage) { s.Details = append(s.Details, Detail{"revision", t.object.Version}) })
		if t.isDryRun() && mergeMessages[t.request.Verb] != "" {
			t.toMerge(out)
		}
	case t.request.Verb == "create" && storage.IsNotFound(err):
		t.note(Etcd, func(s *Stage) { s.Message = "the name is free" })
	default:
		t.refused(err)
	}
	return err
}

func (o observed) GetList(ctx context.Context, key string, options storage.ListOptions, list runtime.Object) error {
	t := from(ctx)
	t.useKeys(o, key)
	err := o.Interface.GetList(ctx, key, options, list)
	if t == nil {
		return err
	}
	if err != nil {
		t.refused(err)
		return err
	}
	t.noteAny(func(s *Stage) {
		s.Details = append(s.Details, Detail{"objects", strconv.Itoa(meta.LenList(list))})
		if accessor, err := meta.ListAccessor(list); err == nil {
			s.Details = append(s.Details, Detail{"revision", accessor.GetResourceVersion()})
		}
	}, WatchCache, Etcd)
	return nil
}

func (o observed) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	t := from(ctx)
	t.useKeys(o, key)
	w, err := o.Interface.Watch(ctx, key, options)
	if t == nil || err != nil {
		return w, err
	}
	return newWatcher(w, t), nil
}

// useKeys notes which key the next calls of etcd are about, and which one the
// watch cache asks for.
func (t *Trace) useKeys(o observed, key string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.key, t.cacheKey = path.Join(o.prefix, key), o.cacheKey
}

// callEtcd begins a call. The watch cache sends one to have the newest revision
// with the answer, whatever the key; an update that changes nothing sends one
// before it believes the cached object.
func (t *Trace) callEtcd(call string) *step {
	t.mu.Lock()
	key, cacheKey := t.key, t.cacheKey
	t.mu.Unlock()
	purpose := ""
	if outer := t.lastGoingOn(); outer != nil {
		switch outer.stage.Name {
		case WatchCache:
			key, purpose = cacheKey, "the revision that the cache must have heard of"
		case StorageEncoding:
			outer.end(Passed, "the bytes are those of the cached object: nothing is written if etcd has them too")
		}
	}
	s := t.step(Etcd, call)
	s.detail("key", key)
	s.detail("asked for", purpose)
	return s
}

func (t *Trace) toStore(obj runtime.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stored = obj
}

// toMerge notes what is stored, before it is known what is to become of it.
func (t *Trace) toMerge(existing runtime.Object) runtime.Object {
	existing = snapshot(existing)
	if t.request.Verb == "delete" || t.request.Verb == "deletecollection" {
		return existing
	}
	s := t.step(Merge, mergeSubject(t.request))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.existing, t.merge = existing, s
	return existing
}

// mergeMessages tell what the library does in one step.
var mergeMessages = map[string]string{
	"update": "the new object takes the place of the stored one, if it was made of its resourceVersion",
	"patch":  "the stored object is converted to the version of the request, patched, filled in and converted back",
	"apply":  "no body is decoded: its typed values are merged with those that other managers own",
}

func mergeSubject(r Request) string {
	switch r.Verb {
	case "update":
		return "replace"
	case "apply":
		return "server-side apply"
	}
	return r.ContentType
}

// updated notes what is to be stored. What no hook has seen by then was done by
// the registry itself: it marks what is to be deleted.
func (t *Trace) updated(before, obj runtime.Object) {
	if t.request.Verb == "delete" || t.request.Verb == "deletecollection" {
		s := t.step(Strategy, "BeforeDelete")
		t.saw(s, before, obj)
	}
	t.toStore(t.see(obj))
}

// refusedUpdate notes an error of an update, unless a stage did already.
func (t *Trace) refusedUpdate(err error) {
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return // the registry tells itself to delete, not to update
	}
	t.mu.Lock()
	merge, stages := t.merge, t.stages
	t.merge, t.existing = nil, nil
	noted := len(stages) > 0 && stages[len(stages)-1].stopped()
	t.mu.Unlock()
	if merge == nil && !noted {
		merge = t.step(Merge, "with what is stored")
	}
	merge.end(Refused, withoutBody(err.Error()))
}

// refused notes an error of the store, on its last call of etcd if there is one.
func (t *Trace) refused(err error) {
	outcome, message := Refused, err.Error()
	switch {
	case storage.IsNotFound(err):
		message = "there is no such key"
	case storage.IsExist(err):
		message = "the key is there already"
	case storage.IsConflict(err), storage.IsInvalidObj(err):
	default:
		outcome = Failed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	for _, s := range slices.Backward(t.stages) {
		if s.stopped() {
			return // this is where the error comes from
		}
		if s.Name == Etcd {
			s.Outcome, s.Message = outcome, message
			return
		}
	}
}

// note changes the last stage of a name, whether it goes on or not.
func (t *Trace) note(name string, f func(*Stage)) { t.noteAny(f, name) }

func (t *Trace) noteAny(f func(*Stage), names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	for _, name := range names {
		for _, s := range slices.Backward(t.stages) {
			if s.Name == name {
				f(s)
				return
			}
		}
	}
}

// wrote notes the state that etcd has now.
func (t *Trace) wrote(out runtime.Object) {
	t.mu.Lock()
	before := t.object.Version
	t.mu.Unlock()
	t.setLast(snapshot(out))
	t.mu.Lock()
	object := t.object
	t.mu.Unlock()
	t.note(Etcd, func(s *Stage) { s.Details = append(s.Details, Detail{"revision", object.Version}) })
	if object.Version != before {
		t.recorder.wrote(t, object)
	}
}
