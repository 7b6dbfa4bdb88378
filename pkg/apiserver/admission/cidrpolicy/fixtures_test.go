package cidrpolicy_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	networkadmission "github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
)

// network is what the chain sees of a Network "web" with these subnets.
func network(cidrs ...string) *samplecrd.Network {
	n := &samplecrd.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for _, cidr := range cidrs {
		n.Spec.Subnets = append(n.Spec.Subnets, samplecrd.Subnet{CIDR: cidr})
	}
	return n
}

// other is a stored Network.
func other(name, cidr string, additional ...string) *samplecrdv1.Network {
	n := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	n.Spec.CIDR = cidr
	for _, cidr := range additional {
		n.Spec.AdditionalSubnets = append(n.Spec.AdditionalSubnets, samplecrdv1.Subnet{CIDR: cidr})
	}
	return n
}

// request is what the attributes of a write are made of.
type request struct {
	version     string
	group       string
	resource    string
	subresource string
	operation   admission.Operation
	object      runtime.Object
	old         runtime.Object
}

func attributes(object, old runtime.Object, tweaks ...func(*request)) admission.Attributes {
	r := request{version: "v1", group: samplecrd.GroupName, resource: "networks", operation: admission.Create, object: object, old: old}
	if old != nil {
		r.operation = admission.Update
	}
	for _, tweak := range tweaks {
		tweak(&r)
	}
	gv := schema.GroupVersion{Group: r.group, Version: r.version}
	return admission.NewAttributesRecord(r.object, r.old, gv.WithKind("Network"), "default", "web",
		gv.WithResource(r.resource), r.subresource, r.operation, nil, false, nil)
}

func create(n *samplecrd.Network, tweaks ...func(*request)) admission.Attributes {
	return attributes(n, nil, tweaks...)
}

func update(n, old *samplecrd.Network, tweaks ...func(*request)) admission.Attributes {
	return attributes(n, old, tweaks...)
}

func v2alpha1(r *request) { r.version = samplecrdv2alpha1.GroupVersion.Version }

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// start makes the plugin of a file, with these Networks in its cache.
func start(t *testing.T, path string, others ...runtime.Object) (admission.ValidationInterface, informers.SharedInformerFactory) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(others...), 0)
	validator, err := load(path, networkadmission.NewInitializer(factory, nil))
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	if err := factory.WaitForCacheSyncWithContext(t.Context()).AsError(); err != nil {
		t.Fatal(err)
	}
	return validator, factory
}

// recorder keeps the warnings of a request.
type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }
