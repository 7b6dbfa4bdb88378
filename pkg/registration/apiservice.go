package registration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	applyv1 "k8s.io/kube-aggregator/pkg/client/applyconfiguration/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	informersv1 "k8s.io/kube-aggregator/pkg/client/informers/externalversions/apiregistration/v1"
)

// automanaged is the label by which kube-apiserver knows the APIServices that
// it keeps itself, for a CRD.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// groupPriority is that of a CRD's group too.
const groupPriority = 1000

// keepAPIServices has each version served by us, verified by caBundle. It tells
// whether it had to change one. A version that a CRD serves is left to it.
func (r *Registrar) keepAPIServices(ctx context.Context, caBundle []byte) (changed bool, err error) {
	found := make([]*apiregistrationv1.APIService, len(r.options.Versions))
	blocked := map[string]bool{} // groups
	for i, version := range r.options.Versions {
		got, err := r.apiServices.Get(ctx, nameOf(version), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, fmt.Errorf("reading APIService %s: %w", nameOf(version), err)
		default:
			found[i] = got
			blocked[version.Group] = blocked[version.Group] || ownedByCRD(got)
		}
	}
	var errs []error
	for i, version := range r.options.Versions {
		got := found[i]
		switch {
		case got != nil && ownedByCRD(got):
			reportCRD(got)
			continue
		case got == nil && blocked[version.Group]:
			// One version to us and one to the CRD would be two stores of one thing.
			continue
		}
		spec := applyv1.APIServiceSpec().
			WithGroup(version.Group).
			WithVersion(version.Version).
			WithService(applyv1.ServiceReference().
				WithNamespace(r.options.ServiceNamespace).
				WithName(r.options.ServiceName).
				WithPort(r.options.ServicePort)).
			WithCABundle(caBundle...).
			WithInsecureSkipTLSVerify(false).
			WithGroupPriorityMinimum(groupPriority).
			WithVersionPriority(priority(r.options.Versions[i:]))
		apply := applyv1.APIService(nameOf(version)).WithSpec(spec)
		if got != nil {
			if ok, err := holds(got, spec); err != nil || ok {
				errs = append(errs, err)
				continue
			}
			// A CRD may take it in between: then this is a conflict.
			apply.WithResourceVersion(got.ResourceVersion)
		}
		// RBAC can restrict who creates by apply to names; not who creates by POST.
		_, err := r.apiServices.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: manager, Force: true})
		switch {
		case apierrors.IsConflict(err): // whoever was faster has made an event, which is looked at next
		case err != nil:
			errs = append(errs, fmt.Errorf("writing APIService %s: %w", nameOf(version), err))
		default:
			klog.InfoS("APIService written", "apiService", nameOf(version))
		}
		changed = true
	}
	return changed, errors.Join(errs...)
}

// priority is that of the first of versions, which clients are to prefer to the
// others of its group. Those of another group don't count: replicas that have
// that one and replicas that do not would correct each other for ever.
func priority(versions []schema.GroupVersion) (priority int32) {
	for _, version := range versions {
		if version.Group == versions[0].Group {
			priority += 10
		}
	}
	return priority
}

// holds tells whether applying spec would change nothing.
func holds(got *apiregistrationv1.APIService, spec *applyv1.APIServiceSpecApplyConfiguration) (bool, error) {
	patch, err := json.Marshal(spec)
	if err != nil {
		return false, err
	}
	merged := got.Spec.DeepCopy()
	if err := json.Unmarshal(patch, merged); err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(merged, &got.Spec), nil
}

func nameOf(version schema.GroupVersion) string { return version.Version + "." + version.Group }

func ownedByCRD(apiService *apiregistrationv1.APIService) bool {
	value := apiService.Labels[automanaged]
	return value == "true" || value == "onstart"
}

func reportCRD(apiService *apiregistrationv1.APIService) {
	klog.ErrorS(nil, "A CustomResourceDefinition of this API group is installed: kube-apiserver answers for this version from it, and asks this server nothing. "+
		"Export the objects, delete the CRD and apply the objects again, as docs/from-crd.md tells", "apiService", apiService.Name)
}

// WatchCRD logs an error when a CRD serves one of versions in our place, and
// again every few minutes while it does. It is for a server whose APIServices
// others keep; it returns when ctx ends.
func WatchCRD(ctx context.Context, aggregator clientset.Interface, versions ...schema.GroupVersion) {
	look := func(obj any) {
		if apiService, ok := obj.(*apiregistrationv1.APIService); ok && ownedByCRD(apiService) {
			reportCRD(apiService)
		}
	}
	watched(ctx, apiServiceInformers(aggregator, resync, versions), cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, obj any) { look(obj) },
		DeleteFunc: func(obj any) {
			if apiService, ok := obj.(*apiregistrationv1.APIService); ok && ownedByCRD(apiService) {
				klog.InfoS("The CustomResourceDefinition is gone: apply the APIService of this server now", "apiService", apiService.Name)
			}
		},
	})
}

// apiServiceInformers is one for each name, as the role may be restricted to these.
func apiServiceInformers(aggregator clientset.Interface, resync time.Duration, versions []schema.GroupVersion) []cache.SharedIndexInformer {
	var informers []cache.SharedIndexInformer
	for _, version := range versions {
		informers = append(informers, informersv1.NewFilteredAPIServiceInformer(aggregator, resync, nil, named(nameOf(version))))
	}
	return informers
}

func named(name string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}
