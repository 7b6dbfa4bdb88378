package requesttrace

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// renderer makes objects of the API of what was recorded.
type renderer struct {
	scheme *runtime.Scheme
	shape  schema.GroupVersion
}

func (r renderer) trace(record *pipeline.Record) *pipelinev1alpha1.RequestTrace {
	objects := rendered{}
	trace := &pipelinev1alpha1.RequestTrace{
		ObjectMeta: metav1.ObjectMeta{
			Name:              record.Name,
			UID:               types.UID(record.Name),
			ResourceVersion:   formatVersion(record.Version),
			CreationTimestamp: metav1.NewTime(record.Start),
		},
		AuditID:       record.AuditID,
		Replica:       record.Replica,
		StartTime:     metav1.NewMicroTime(record.Start),
		Request:       request(record.Request),
		Response:      response(record.Response),
		Cause:         record.Cause,
		Stages:        r.stages(record.Stages(), objects),
		PassesDropped: int32(record.PassesDropped), //nolint:gosec // that many there are not
		Omitted:       record.Omitted,
	}
	if user := record.User; user != nil {
		trace.User = &pipelinev1alpha1.User{Name: user.Name, Groups: user.Groups, ImpersonatedBy: user.ImpersonatedBy}
	}
	if object := record.Object; object != (pipeline.Object{}) {
		trace.Object = &pipelinev1alpha1.ObjectReference{
			Namespace: object.Namespace, Name: object.Name, UID: object.UID,
			Generation: object.Generation, ResourceVersion: object.Version,
		}
	}
	for _, pass := range record.Passes {
		trace.Passes = append(trace.Passes, pipelinev1alpha1.Pass{
			StartMicroseconds:    pass.Start.Microseconds(),
			DurationMicroseconds: microseconds(pass.Duration),
			ResourceVersion:      pass.ResourceVersion,
			Result:               pass.Result,
			Settled:              pass.Settled,
			Stages:               r.stages(pass.Stages, objects),
		})
	}
	return trace
}

func request(request pipeline.Request) pipelinev1alpha1.Request {
	return pipelinev1alpha1.Request{
		Verb: request.Verb, Method: request.Method, Path: request.Path, Parameters: request.Parameters,
		APIGroup: request.Group, APIVersion: request.Version, Resource: request.Resource, Subresource: request.Subresource,
		Namespace: request.Namespace, Name: request.Name,
		ContentType: request.ContentType, Accept: request.Accept, UserAgent: request.UserAgent, BodyBytes: request.BodyBytes,
	}
}

func response(response pipeline.Response) pipelinev1alpha1.Response {
	return pipelinev1alpha1.Response{
		Code:   int32(response.Code), //nolint:gosec // of HTTP
		Reason: metav1.StatusReason(response.Reason), Message: response.Message,
		ContentType: response.ContentType, Bytes: response.Bytes, Warnings: response.Warnings,
		DurationMicroseconds: response.Duration.Microseconds(),
		StoppedAt:            pipelinev1alpha1.StageName(response.StoppedAt),
	}
}

func (r renderer) stages(stages []pipeline.Stage, objects rendered) (list []pipelinev1alpha1.Stage) {
	for _, s := range stages {
		stage := pipelinev1alpha1.Stage{
			Name: pipelinev1alpha1.StageName(s.Name), Subject: s.Subject, Outcome: pipelinev1alpha1.Outcome(s.Outcome),
			StartMicroseconds: microseconds(s.Start), DurationMicroseconds: microseconds(s.Duration),
			Replayed: s.Replayed, Message: s.Message, Errors: s.Errors,
		}
		for _, d := range s.Details {
			stage.Details = append(stage.Details, pipelinev1alpha1.Detail{Name: d.Name, Value: d.Value})
		}
		var before, after error
		stage.Before, before = r.object(s.Before, objects)
		stage.After, after = r.object(s.After, objects)
		for _, err := range []error{before, after} {
			if err != nil {
				stage.Message = strings.TrimSpace(stage.Message + " (" + err.Error() + ")")
			}
		}
		list = append(list, stage)
	}
	return list
}

// microseconds returns nil for what no hook times.
func microseconds(d time.Duration) *int64 {
	if d == pipeline.Unknown {
		return nil
	}
	return new(d.Microseconds())
}

// rendered holds the objects of one trace: what one stage ends with the next
// begins with.
type rendered map[runtime.Object]*runtime.RawExtension

// object returns an object as JSON, without what is only the server's, and
// without copies of it that are older than itself.
func (r renderer) object(obj runtime.Object, objects rendered) (*runtime.RawExtension, error) {
	if obj == nil {
		return nil, nil
	}
	if raw := objects[obj]; raw != nil {
		return raw, nil
	}
	raw, err := r.marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("a %T is not shown: %w", obj, err)
	}
	objects[obj] = &runtime.RawExtension{Raw: raw}
	return objects[obj], nil
}

func (r renderer) marshal(obj runtime.Object) ([]byte, error) {
	kinds, _, err := r.scheme.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	shown, kind := obj.DeepCopyObject(), kinds[0]
	if kind.Version == runtime.APIVersionInternal {
		if shown, err = r.scheme.UnsafeConvertToVersion(shown, r.shape); err != nil {
			return nil, err
		}
	}
	shown.GetObjectKind().SetGroupVersionKind(kind)
	object, err := meta.Accessor(shown)
	if err != nil {
		return nil, err
	}
	object.SetManagedFields(nil)
	if annotations := object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		annotations[corev1.LastAppliedConfigAnnotation] = "<redacted>"
	}
	return json.Marshal(shown)
}
