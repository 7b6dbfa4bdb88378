// Package network keeps Networks in etcd: one store for all versions.
package network

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// Storage is what is served of Networks.
type Storage struct {
	Network *REST
	Status  *StatusREST
}

// REST serves networks.
type REST struct {
	*genericregistry.Store
}

var _ interface {
	rest.StandardStorage
	rest.ShortNamesProvider
	rest.CategoriesProvider
	rest.SingularNameProvider
	rest.ResetFieldsStrategy
} = &REST{}

// ShortNames are the names kubectl takes beside networks and network.
func (*REST) ShortNames() []string { return []string{"snet"} }

// Categories are the groups of resources kubectl lists Networks in.
func (*REST) Categories() []string { return []string{"samplecrd"} }

// StatusREST serves networks/status.
type StatusREST struct {
	store *genericregistry.Store
}

var _ interface {
	rest.Storage
	rest.Patcher
	rest.TableConvertor
	rest.ResetFieldsStrategy
} = &StatusREST{}

// NewStorage opens the store. The scheme must know the hub and all versions;
// the error is that of the storage backend.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	rules := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &samplecrd.Network{} },
		NewListFunc:               func() runtime.Object { return &samplecrd.NetworkList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  samplecrd.Resource("networks"),
		SingularQualifiedResource: samplecrd.Resource("network"),
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		ResetFieldsStrategy:       rules,
		TableConvertor:            tableConvertor{},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("opening the store of networks: %w", err)
	}
	statusRules := statusStrategy{rules}
	statusStore := *store
	statusStore.UpdateStrategy = statusRules
	statusStore.ResetFieldsStrategy = statusRules
	return &Storage{Network: &REST{store}, Status: &StatusREST{&statusStore}}, nil
}

// Stores are those behind what is served: they share what is in etcd, and differ
// in their rules.
func (s *Storage) Stores() []*genericregistry.Store {
	return []*genericregistry.Store{s.Network.Store, s.Status.store}
}

// New returns an empty Network.
func (*StatusREST) New() runtime.Object { return &samplecrd.Network{} }

// Destroy does nothing: REST closes the store that both share.
func (*StatusREST) Destroy() {}

// Get returns the Network.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of a Network that is there; it never creates one.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields returns what an apply to the status can't own.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable returns the columns kubectl shows.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	network, ok := obj.(*samplecrd.Network)
	if !ok {
		return nil, nil, fmt.Errorf("reading the fields of a %T: not a Network", obj)
	}
	set := fields.Set{"status.networkID": network.Status.NetworkID, "spec.cidr": ""}
	if len(network.Spec.Subnets) > 0 {
		set["spec.cidr"] = network.Spec.Subnets[0].CIDR
	}
	return network.Labels, generic.AddObjectMetaFieldsSet(set, &network.ObjectMeta, true), nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}
