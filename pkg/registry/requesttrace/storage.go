// Package requesttrace serves what a recorder knows of requests, out of memory.
package requesttrace

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// Storage lets traces be read, and nothing else.
type Storage struct {
	tableConvertor
	renderer
	recorder *pipeline.Recorder
}

var _ interface {
	rest.Storage
	rest.Scoper
	rest.SingularNameProvider
	rest.Getter
	rest.Lister
	rest.Watcher
} = &Storage{}

// NewStorage shows traces of objects of scheme; those of the hub with the fields
// of shape, the version that has them all.
func NewStorage(recorder *pipeline.Recorder, scheme *runtime.Scheme, shape schema.GroupVersion) *Storage {
	return &Storage{recorder: recorder, renderer: renderer{scheme, shape}}
}

// New returns an empty trace.
func (*Storage) New() runtime.Object { return &pipelinev1alpha1.RequestTrace{} }

// NewList returns an empty list.
func (*Storage) NewList() runtime.Object { return &pipelinev1alpha1.RequestTraceList{} }

// Destroy has nothing to do: the recorder is its owner's.
func (*Storage) Destroy() {}

// NamespaceScoped is false: who sees traces sees those of all namespaces.
func (*Storage) NamespaceScoped() bool { return false }

// GetSingularName is for kubectl.
func (*Storage) GetSingularName() string { return "requesttrace" }

// Get returns the trace of that name as it is now, whatever version is asked for.
func (s *Storage) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	record := s.recorder.Get(name)
	if record == nil {
		return nil, apierrors.NewNotFound(pipelinev1alpha1.Resource("requesttraces"), name)
	}
	return s.trace(record), nil
}

// List returns all traces, the oldest first. It leaves limit aside, as an API
// may: the recorder bounds how many there are and what they take.
func (s *Storage) List(_ context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	asked, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	records, version := s.recorder.List()
	// Old states are not kept.
	if asked > version || asked != version && options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return nil, expired()
	}
	selected := selector(options)
	list := &pipelinev1alpha1.RequestTraceList{
		ListMeta: metav1.ListMeta{ResourceVersion: formatVersion(version)},
		Items:    []pipelinev1alpha1.RequestTrace{},
	}
	for _, record := range records {
		if selected(record) {
			list.Items = append(list.Items, *s.trace(record))
		}
	}
	return list, nil
}

// selector tells which traces are asked for. They have no labels, and the scheme
// lets no other field through.
func selector(options *metainternalversion.ListOptions) func(*pipeline.Record) bool {
	label, field := labels.Everything(), fields.Everything()
	if options.LabelSelector != nil {
		label = options.LabelSelector
	}
	if options.FieldSelector != nil {
		field = options.FieldSelector
	}
	return func(r *pipeline.Record) bool {
		return label.Matches(labels.Set{}) && field.Matches(fields.Set{
			pipelinev1alpha1.FieldName:      r.Name,
			pipelinev1alpha1.FieldObjectUID: string(r.Object.UID),
		})
	}
}

// parseVersion returns 0 where any version will do.
func parseVersion(resourceVersion string) (uint64, error) {
	if resourceVersion == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q must be a number", resourceVersion))
	}
	return version, nil
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }

// expired makes clients list again. A version that lies ahead of this recorder is
// another replica's, and won't come.
func expired() *apierrors.StatusError {
	return apierrors.NewResourceExpired(pipeline.ErrExpired.Error())
}
