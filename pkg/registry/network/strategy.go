package network

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/validation"
)

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// strategy holds the rules for writes to networks.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                         { return true }
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// PrepareForCreate adds the finalizer in the same write that makes the object:
// there is no moment in which a Network could go and leave its network behind.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	network := obj.(*samplecrd.Network)
	network.Status = samplecrd.NetworkStatus{}
	network.Generation = 1
	keepFinalizer(network)
}

// PrepareForUpdate keeps status and raises the generation if spec changed. A
// client that sends the file it once applied does not know of the finalizer:
// only a deletion lets go of it.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newNetwork, oldNetwork := obj.(*samplecrd.Network), old.(*samplecrd.Network)
	newNetwork.Status = oldNetwork.Status
	if !equality.Semantic.DeepEqual(newNetwork.Spec, oldNetwork.Spec) {
		newNetwork.Generation = oldNetwork.Generation + 1
	}
	if oldNetwork.DeletionTimestamp == nil && slices.Contains(oldNetwork.Finalizers, samplecrd.NeutronFinalizer) {
		keepFinalizer(newNetwork)
	}
}

func keepFinalizer(network *samplecrd.Network) {
	if !slices.Contains(network.Finalizers, samplecrd.NeutronFinalizer) {
		network.Finalizers = append(network.Finalizers, samplecrd.NeutronFinalizer)
	}
}

func (strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateNetwork(obj.(*samplecrd.Network), subnetPath(ctx))
}

func (strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNetworkUpdate(obj.(*samplecrd.Network), old.(*samplecrd.Network), subnetPath(ctx))
}

func (strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	network := obj.(*samplecrd.Network)
	return append(validation.Warnings(network, nil, subnetPath(ctx)), withoutEffect(network.Annotations, nil)...)
}

func (strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	newNetwork, oldNetwork := obj.(*samplecrd.Network), old.(*samplecrd.Network)
	return append(validation.Warnings(newNetwork, oldNetwork, subnetPath(ctx)), withoutEffect(newNetwork.Annotations, oldNetwork.Annotations)...)
}

// withoutEffect tells who writes "True" that nothing is paused by that.
func withoutEffect(newAnnotations, oldAnnotations map[string]string) []string {
	var warnings []string
	for _, name := range []string{samplecrdv1.AnnotationPause, samplecrdv1.AnnotationAbandon} {
		value := newAnnotations[name]
		if value != oldAnnotations[name] && value != "true" && value != "false" && value != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %.64q has no effect, only \"true\" has", field.NewPath("metadata", "annotations").Key(name), value))
		}
	}
	return warnings
}

func (strategy) Canonicalize(runtime.Object) {}

func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// statusStrategy holds the rules for writes to networks/status.
type statusStrategy struct {
	strategy
}

// PrepareForUpdate keeps everything but status.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newNetwork, oldNetwork := obj.(*samplecrd.Network), old.(*samplecrd.Network)
	newNetwork.Spec = oldNetwork.Spec
	metav1.ResetObjectMetaForStatus(newNetwork, oldNetwork)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNetworkStatusUpdate(obj.(*samplecrd.Network), old.(*samplecrd.Network))
}

func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec", "metadata")
}

// resetFields keys the fields by each served version: a key that no version
// has would let server-side apply own what is wiped.
func resetFields(fields ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, f := range fields {
		set.Insert(fieldpath.MakePathOrDie(f))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(samplecrdv1.GroupVersion.String()):       set,
		fieldpath.APIVersion(samplecrdv2alpha1.GroupVersion.String()): set,
	}
}

// subnetPath gives the field paths of the version the client sent; without a
// request, those of the stored one.
func subnetPath(ctx context.Context) func(int) *field.Path {
	version := samplecrdv1.GroupVersion.Version
	if info, ok := request.RequestInfoFrom(ctx); ok && info.APIGroup == samplecrd.GroupName {
		version = info.APIVersion
	}
	return validation.SubnetPath(version)
}
