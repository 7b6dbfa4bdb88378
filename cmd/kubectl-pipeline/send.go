package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

const (
	fieldManager = "kubectl-pipeline"
	// tracedGroup is that of the requests that a server records.
	tracedGroup = "samplecrd.k8s.io"
)

// sender writes objects, each with one request that can be found again.
type sender struct {
	dryRun         []string
	serverSide     bool
	forceConflicts bool
}

// sent is a request that the server answered.
type sent struct {
	auditID string
	// refusal is nil where the object was accepted.
	refusal error
	// unchanged: the object is stored as it was before.
	unchanged bool
	// warnings are those of the server, a line each.
	warnings bytes.Buffer
}

// send returns an error where no server answered.
func (s *sender) send(ctx context.Context, info *resource.Info) (*sent, error) {
	if group := info.Mapping.Resource.Group; group != tracedGroup {
		return nil, fmt.Errorf("%s was not sent: no requests of group %q are recorded, but those of %s", info.ObjectName(), group, tracedGroup)
	}
	existing, err := stored(ctx, info)
	if err != nil {
		return nil, err
	}
	request, err := s.request(info, existing)
	if err != nil {
		return nil, err
	}
	done := &sent{auditID: uuid.NewString()}
	answer, err := request.
		NamespaceIfScoped(info.Namespace, info.Namespaced()).
		Resource(info.Mapping.Resource.Resource).
		SetHeader("Audit-ID", done.auditID).
		MaxRetries(0). // a second one would have the same audit ID
		WarningHandler(rest.NewWarningWriter(&done.warnings, rest.WarningWriterOptions{})).
		Do(ctx).
		Get()
	if _, answered := errors.AsType[*apierrors.StatusError](err); err != nil && !answered {
		return nil, fmt.Errorf("sending %s: %w", info.ObjectName(), err)
	}
	done.refusal = err
	if after, ok := answer.(*unstructured.Unstructured); ok && existing != nil {
		done.unchanged = after.GetResourceVersion() == existing.GetResourceVersion()
	}
	return done, nil
}

// stored returns nil where there is no object, or none that the user may see:
// the write will tell.
func stored(ctx context.Context, info *resource.Info) (*unstructured.Unstructured, error) {
	if info.Name == "" {
		return nil, nil
	}
	object, err := info.Client.Get().
		NamespaceIfScoped(info.Namespace, info.Namespaced()).
		Resource(info.Mapping.Resource.Resource).
		Name(info.Name).
		Do(ctx).
		Get()
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", info.ObjectName(), err)
	}
	existing, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("reading %s: got a %T", info.ObjectName(), object)
	}
	return existing, nil
}

// request is a create, an update of what exists, or an apply.
func (s *sender) request(info *resource.Info, existing *unstructured.Unstructured) (*rest.Request, error) {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s is a %T, which can't be sent", info.ObjectName(), info.Object)
	}
	const strict = metav1.FieldValidationStrict
	switch {
	case s.serverSide:
		body, err := object.MarshalJSON() // which is YAML too
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", info.ObjectName(), err)
		}
		options := &metav1.PatchOptions{DryRun: s.dryRun, FieldManager: fieldManager, FieldValidation: strict}
		if s.forceConflicts {
			options.Force = new(true)
		}
		return info.Client.Patch(types.ApplyPatchType).Name(info.Name).
			VersionedParams(options, metav1.ParameterCodec).Body(body), nil
	case existing != nil:
		if object.GetResourceVersion() == "" {
			object.SetResourceVersion(existing.GetResourceVersion())
		}
		options := &metav1.UpdateOptions{DryRun: s.dryRun, FieldManager: fieldManager, FieldValidation: strict}
		return info.Client.Put().Name(info.Name).
			VersionedParams(options, metav1.ParameterCodec).Body(object), nil
	default:
		options := &metav1.CreateOptions{DryRun: s.dryRun, FieldManager: fieldManager, FieldValidation: strict}
		return info.Client.Post().
			VersionedParams(options, metav1.ParameterCodec).Body(object), nil
	}
}
