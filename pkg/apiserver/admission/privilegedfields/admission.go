// Package privilegedfields is the admission plugin PrivilegedFields: in the
// cloud of the server, some fields are only for users with the verb privileged
// on networks. Whoever may write Networks would else drive the account of the
// operator: take over any network of it, or share one with all projects.
package privilegedfields

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// PluginName is the plugin's name in flags and in the admission configuration.
const PluginName = "PrivilegedFields"

// verb is what the authorizer is asked for; no request has it by itself.
const verb = "privileged"

// openStackPath is the same in all versions.
var openStackPath = field.NewPath("spec", "openStack")

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
	authorizer authorizer.UnconditionalAuthorizer
}

var (
	_ admission.ValidationInterface            = &plugin{}
	_ initializer.WantsUnconditionalAuthorizer = &plugin{}
)

// SetUnconditionalAuthorizer takes the authorizer of the server.
func (p *plugin) SetUnconditionalAuthorizer(a authorizer.UnconditionalAuthorizer) {
	p.authorizer = a
}

// ValidateInitialization refuses to start without an authorizer.
func (p *plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New("it needs an authorizer")
	}
	return nil
}

// Validate refuses privileged fields that are new in the cloud of the server,
// all of them in one answer, to a user without the verb. What an object already
// has is not looked at, nor an object that is being deleted: a right that was
// taken away must not lock it in.
func (p *plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != samplecrd.Resource("networks") || a.GetSubresource() != "" {
		return nil
	}
	newNetwork, ok := a.GetObject().(*samplecrd.Network)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("%s: object is a %T, not a Network", PluginName, a.GetObject()))
	}
	oldNetwork, isUpdate := a.GetOldObject().(*samplecrd.Network)
	if !isUpdate {
		oldNetwork = &samplecrd.Network{}
	}
	if oldNetwork.DeletionTimestamp != nil {
		return nil
	}
	changed := changedFields(
		ptr.Deref(newNetwork.Spec.OpenStack, samplecrd.OpenStack{}),
		ptr.Deref(oldNetwork.Spec.OpenStack, samplecrd.OpenStack{}))
	if len(changed) == 0 {
		return nil
	}
	allowed, err := p.allowed(ctx, a)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: asking for the verb %q on %s %q in namespace %q: %w",
			PluginName, verb, a.GetResource().GroupResource(), a.GetName(), a.GetNamespace(), err))
	}
	if allowed {
		return nil
	}
	var errs field.ErrorList
	for _, fldPath := range changed {
		errs = append(errs, field.Forbidden(fldPath, fmt.Sprintf("needs %s, or the verb %q on %s in namespace %q",
			openStackPath.Child("credentialsRef"), verb, a.GetResource().GroupResource(), a.GetNamespace())))
	}
	return admission.NewForbidden(a, errs.ToAggregate())
}

// changedFields returns the privileged fields that are set, changed or removed
// in the cloud of the server. Who takes the credentials away brings there all
// that is set.
func changedFields(newOpenStack, oldOpenStack samplecrd.OpenStack) []*field.Path {
	if newOpenStack.CredentialsRef != nil {
		return nil
	}
	if oldOpenStack.CredentialsRef != nil {
		oldOpenStack = samplecrd.OpenStack{}
	}
	var changed []*field.Path
	for _, f := range []struct {
		name string
		same bool
	}{
		{"networkID", newOpenStack.NetworkID == oldOpenStack.NetworkID},
		{"provider", equality.Semantic.DeepEqual(
			ptr.Deref(newOpenStack.Provider, samplecrd.Provider{}),
			ptr.Deref(oldOpenStack.Provider, samplecrd.Provider{}))},
		{"external", newOpenStack.External == oldOpenStack.External},
		{"shared", newOpenStack.Shared == oldOpenStack.Shared},
	} {
		if !f.same {
			changed = append(changed, openStackPath.Child(f.name))
		}
	}
	return changed
}

// allowed asks as the library asks for a request: an authorizer that allows may
// have an error beside, which then does not count.
func (p *plugin) allowed(ctx context.Context, a admission.Attributes) (bool, error) {
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            a.GetUserInfo(),
		Verb:            verb,
		Namespace:       a.GetNamespace(),
		APIGroup:        a.GetResource().Group,
		APIVersion:      "*",
		Resource:        a.GetResource().Resource,
		Name:            a.GetName(),
		ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	return false, err
}
