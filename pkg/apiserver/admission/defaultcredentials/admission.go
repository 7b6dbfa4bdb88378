// Package defaultcredentials is the admission plugin DefaultCredentials: in a
// namespace that names default credentials, a Network that names none gets them.
package defaultcredentials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// PluginName is the plugin's name in flags and in the admission configuration.
const PluginName = "DefaultCredentials"

// Annotation on a namespace names the credentials of Networks that name none,
// as SECRET/CLOUD: a Secret of the namespace and a cloud in its clouds.yaml.
const Annotation = samplecrd.GroupName + "/default-credentials"

// Register makes the plugin known. It takes no configuration.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(config io.Reader) (admission.Interface, error) {
		if config != nil {
			return nil, errors.New("it takes no configuration")
		}
		return &plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

type plugin struct {
	*admission.Handler
	lister corelisters.NamespaceLister
	client kubernetes.Interface
}

var (
	_ admission.MutationInterface                  = &plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &plugin{}
	_ initializer.WantsExternalKubeClientSet       = &plugin{}
)

// SetExternalKubeInformerFactory asks for namespaces.
func (p *plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	namespaces := factory.Core().V1().Namespaces()
	p.lister = namespaces.Lister()
	p.SetReadyFunc(namespaces.Informer().HasSynced)
}

// SetExternalKubeClientSet takes the client that reads a namespace too new for
// the cache.
func (p *plugin) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.client = client
}

// ValidateInitialization refuses to start without a way to read namespaces.
func (p *plugin) ValidateInitialization() error {
	if p.lister == nil || p.client == nil {
		return errors.New("it needs informers and a client of the cluster, to read namespaces")
	}
	return nil
}

// Admit sets the default on a new Network without credentials. An update that
// leaves out those it had keeps them, as a Service keeps its clusterIP: whoever
// sends the file that a Network was made of does not know of them, and without
// them it would be looked for in the cloud of the server.
func (p *plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != samplecrd.Resource("networks") || a.GetSubresource() != "" {
		return nil
	}
	newNetwork, ok := a.GetObject().(*samplecrd.Network)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("%s: object is a %T, not a Network", PluginName, a.GetObject()))
	}
	if credentialsRef(newNetwork) != nil {
		return nil
	}
	var ref *samplecrd.CredentialsRef
	if oldNetwork, isUpdate := a.GetOldObject().(*samplecrd.Network); isUpdate {
		// Whether it is being deleted only the stored object tells: what a
		// client says of that is put right after this.
		if oldNetwork.DeletionTimestamp == nil {
			ref = credentialsRef(oldNetwork)
		}
	} else {
		value, annotated, err := p.annotation(ctx, a)
		if err != nil || !annotated {
			return err
		}
		var invalid *field.Error
		if ref, invalid = parse(value); invalid != nil {
			return admission.NewForbidden(a, fmt.Errorf("namespace %q: %w", a.GetNamespace(), invalid))
		}
	}
	if ref == nil {
		return nil
	}
	if newNetwork.Spec.OpenStack == nil {
		newNetwork.Spec.OpenStack = &samplecrd.OpenStack{}
	}
	newNetwork.Spec.OpenStack.CredentialsRef = new(*ref)
	return nil
}

func credentialsRef(network *samplecrd.Network) *samplecrd.CredentialsRef {
	if network.Spec.OpenStack == nil {
		return nil
	}
	return network.Spec.OpenStack.CredentialsRef
}

// annotation returns the annotation of the request's namespace, and whether it
// has one. A namespace that was made a moment ago may not be in the cache yet.
func (p *plugin) annotation(ctx context.Context, a admission.Attributes) (string, bool, error) {
	if !p.WaitForReady() {
		return "", false, admission.NewForbidden(a, errors.New("the namespaces are not known yet, try again"))
	}
	namespace, err := p.lister.Get(a.GetNamespace())
	if apierrors.IsNotFound(err) {
		namespace, err = p.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", false, err
	case err != nil:
		return "", false, apierrors.NewInternalError(fmt.Errorf("%s: reading namespace %q: %w", PluginName, a.GetNamespace(), err))
	}
	value, annotated := namespace.Annotations[Annotation]
	return value, annotated, nil
}

// parse takes exactly one slash: in a value with more of them, such as
// NAMESPACE/SECRET/CLOUD, something else was meant.
func parse(value string) (*samplecrd.CredentialsRef, *field.Error) {
	fldPath := field.NewPath("metadata", "annotations").Key(Annotation)
	secret, cloud, _ := strings.Cut(value, "/")
	if secret == "" || cloud == "" || strings.Contains(cloud, "/") {
		return nil, field.Invalid(fldPath, value, "must be SECRET/CLOUD: a Secret of the namespace and a cloud in its clouds.yaml")
	}
	if problems := utilvalidation.IsDNS1123Subdomain(secret); len(problems) > 0 {
		return nil, field.Invalid(fldPath, value, "must begin with the name of a Secret: "+strings.Join(problems, ", "))
	}
	return &samplecrd.CredentialsRef{SecretName: secret, CloudName: cloud}, nil
}
