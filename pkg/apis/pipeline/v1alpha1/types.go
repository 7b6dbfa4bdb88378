package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list,watch
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RequestTrace is the way of one request through one server. Its name is the
// audit ID where that is a valid name of nothing else here.
type RequestTrace struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The resourceVersion counts changes in one life
	// of one server, and means nothing to another.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// auditID is what the audit log and the response call the request.
	// +required
	AuditID string `json:"auditID" protobuf:"bytes,2,opt,name=auditID"`

	// replica is the server that answered: its host name and process.
	// +required
	Replica string `json:"replica" protobuf:"bytes,3,opt,name=replica"`

	// startTime is when the request arrived; all times of the trace count from it.
	// +required
	StartTime metav1.MicroTime `json:"startTime" protobuf:"bytes,4,opt,name=startTime"`

	// request is what was asked.
	// +required
	Request Request `json:"request" protobuf:"bytes,5,opt,name=request"`

	// user is who asked. Absent where nobody was recognized.
	// +optional
	User *User `json:"user,omitempty" protobuf:"bytes,6,opt,name=user"`

	// response is what was answered.
	// +required
	Response Response `json:"response" protobuf:"bytes,7,opt,name=response"`

	// object is the Network that was read or written, as far as it got.
	// +optional
	Object *ObjectReference `json:"object,omitempty" protobuf:"bytes,8,opt,name=object"`

	// cause is the name of the trace of the write that made the controller send
	// this request.
	// +optional
	Cause string `json:"cause,omitempty" protobuf:"bytes,9,opt,name=cause"`

	// stages are where the request came by, in the order in which they began.
	// +optional
	// +listType=atomic
	Stages []Stage `json:"stages,omitempty" protobuf:"bytes,10,rep,name=stages"`

	// passes are what the controller did about the Network after this write. Where
	// the controller runs in another replica than the one that was asked, they
	// stand there, with their own first write.
	// +optional
	// +listType=atomic
	Passes []Pass `json:"passes,omitempty" protobuf:"bytes,11,rep,name=passes"`

	// passesDropped is how many passes are not shown, the oldest but the first.
	// +optional
	PassesDropped int32 `json:"passesDropped,omitempty" protobuf:"varint,12,opt,name=passesDropped"`

	// omitted says why objects are not shown that would else be.
	// +optional
	Omitted string `json:"omitted,omitempty" protobuf:"bytes,13,opt,name=omitted"`
}

// Request is what was asked.
type Request struct {
	// verb is what authorization calls it, and apply for a server-side apply.
	// +required
	Verb string `json:"verb" protobuf:"bytes,1,opt,name=verb"`

	// method is that of HTTP.
	// +required
	Method string `json:"method" protobuf:"bytes,2,opt,name=method"`

	// path is that of the URL.
	// +required
	Path string `json:"path" protobuf:"bytes,3,opt,name=path"`

	// parameters are those of the URL that this API knows, as NAME=VALUE.
	// +optional
	// +listType=atomic
	Parameters []string `json:"parameters,omitempty" protobuf:"bytes,4,rep,name=parameters"`

	// apiGroup is the group in the path.
	// +optional
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,5,opt,name=apiGroup"`

	// apiVersion is the version in the path.
	// +optional
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,6,opt,name=apiVersion"`

	// resource is that in the path.
	// +optional
	Resource string `json:"resource,omitempty" protobuf:"bytes,7,opt,name=resource"`

	// subresource is that in the path.
	// +optional
	Subresource string `json:"subresource,omitempty" protobuf:"bytes,8,opt,name=subresource"`

	// namespace is that in the path.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,9,opt,name=namespace"`

	// name is that in the path.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,10,opt,name=name"`

	// contentType is the media type of the body.
	// +optional
	ContentType string `json:"contentType,omitempty" protobuf:"bytes,11,opt,name=contentType"`

	// accept are the media types that the client reads.
	// +optional
	Accept string `json:"accept,omitempty" protobuf:"bytes,12,opt,name=accept"`

	// userAgent is what the client calls itself.
	// +optional
	UserAgent string `json:"userAgent,omitempty" protobuf:"bytes,13,opt,name=userAgent"`

	// bodyBytes is the size of the body.
	// +optional
	BodyBytes int64 `json:"bodyBytes,omitempty" protobuf:"varint,14,opt,name=bodyBytes"`
}

// User is who asked.
type User struct {
	// name is that of the user whose rights counted.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// groups are those of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty" protobuf:"bytes,2,rep,name=groups"`

	// impersonatedBy is who asked in the name of the user.
	// +optional
	ImpersonatedBy string `json:"impersonatedBy,omitempty" protobuf:"bytes,3,opt,name=impersonatedBy"`
}

// Response is what was answered.
type Response struct {
	// code is the status code of HTTP; 0 if nothing was answered.
	// +optional
	Code int32 `json:"code,omitempty" protobuf:"varint,1,opt,name=code"`

	// reason is that of a Status that says no.
	// +optional
	Reason metav1.StatusReason `json:"reason,omitempty" protobuf:"bytes,2,opt,name=reason,casttype=k8s.io/apimachinery/pkg/apis/meta/v1.StatusReason"`

	// message is that of a Status that says no.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,3,opt,name=message"`

	// contentType is the media type of the answer.
	// +optional
	ContentType string `json:"contentType,omitempty" protobuf:"bytes,4,opt,name=contentType"`

	// bytes is the size of the answer, before any compression.
	// +optional
	Bytes int64 `json:"bytes,omitempty" protobuf:"varint,5,opt,name=bytes"`

	// durationMicroseconds is the time from the arrival of the request to the
	// end of the answer.
	// +required
	DurationMicroseconds int64 `json:"durationMicroseconds" protobuf:"varint,6,opt,name=durationMicroseconds"`

	// stoppedAt is the stage that refused the request or failed. Absent where it
	// went all the way.
	// +optional
	StoppedAt StageName `json:"stoppedAt,omitempty" protobuf:"bytes,7,opt,name=stoppedAt,casttype=StageName"`

	// warnings are those in the headers.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty" protobuf:"bytes,8,rep,name=warnings"`
}

// ObjectReference names one state of a Network.
type ObjectReference struct {
	// namespace is that of the Network.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,1,opt,name=namespace"`

	// name is that of the Network.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`

	// uid tells the Network from others that had its name.
	// +optional
	UID types.UID `json:"uid,omitempty" protobuf:"bytes,3,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// generation counts the specs that the Network had.
	// +optional
	Generation int64 `json:"generation,omitempty" protobuf:"varint,4,opt,name=generation"`

	// resourceVersion is that of the last state this request read or wrote.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"bytes,5,opt,name=resourceVersion"`
}

// StageName tells what a stage does.
// +enum
type StageName string

// Stages of a request, in the order in which a write comes by.
const (
	// StageAuthentication finds out who asks.
	StageAuthentication StageName = "Authentication"
	// StageAudit writes down that somebody asks.
	StageAudit StageName = "Audit"
	// StageImpersonation lets one user ask as another.
	StageImpersonation StageName = "Impersonation"
	// StagePriorityAndFairness makes a request wait for its turn.
	StagePriorityAndFairness StageName = "PriorityAndFairness"
	// StageAuthorization finds out whether the user may.
	StageAuthorization StageName = "Authorization"
	// StageMux finds the handler of the path.
	StageMux StageName = "Mux"
	// StageDecode makes an object of the body.
	StageDecode StageName = "Decode"
	// StageDefaulting fills in what the user left out.
	StageDefaulting StageName = "Defaulting"
	// StageConversionToHub makes the hub ("super version") of the version sent.
	StageConversionToHub StageName = "ConversionToHub"
	// StageMerge joins a patch or an apply with what is stored.
	StageMerge StageName = "Merge"
	// StageMutatingAdmission lets one plugin change the object.
	StageMutatingAdmission StageName = "MutatingAdmission"
	// StageStrategy sets what a user can't.
	StageStrategy StageName = "Strategy"
	// StageValidation judges the object by itself.
	StageValidation StageName = "Validation"
	// StageValidatingAdmission lets one plugin refuse the object.
	StageValidatingAdmission StageName = "ValidatingAdmission"
	// StageStorageEncoding makes bytes of the stored version.
	StageStorageEncoding StageName = "StorageEncoding"
	// StageEtcd reads or writes a key.
	StageEtcd StageName = "Etcd"
	// StageWatchCache answers out of memory.
	StageWatchCache StageName = "WatchCache"
	// StageWatch hands an event to one open watch.
	StageWatch StageName = "Watch"
	// StageConversionFromHub makes the version asked for of the hub.
	StageConversionFromHub StageName = "ConversionFromHub"
	// StageEncoding makes the bytes of the answer.
	StageEncoding StageName = "Encoding"
)

// Stages of a pass of the controller.
const (
	// StageInformer tells the controller of a change.
	StageInformer StageName = "Informer"
	// StageQueue keeps the Network until a worker is free.
	StageQueue StageName = "Queue"
	// StageObserve is what the controller found in Neutron.
	StageObserve StageName = "Observe"
	// StagePlan is what is missing.
	StagePlan StageName = "Plan"
	// StageNeutron is one call to OpenStack.
	StageNeutron StageName = "Neutron"
	// StageStatus writes down how far it came.
	StageStatus StageName = "Status"
)

// Outcome tells how a stage ended.
// +enum
type Outcome string

const (
	// OutcomePassed: on to the next stage.
	OutcomePassed Outcome = "Passed"
	// OutcomeChanged: on to the next stage, with a changed object.
	OutcomeChanged Outcome = "Changed"
	// OutcomeRefused: the request ended here, as a rule wants it.
	OutcomeRefused Outcome = "Refused"
	// OutcomeFailed: the request ended here, and nobody wanted it.
	OutcomeFailed Outcome = "Failed"
	// OutcomeUnseen: the stage was there, and nothing shows what it did.
	OutcomeUnseen Outcome = "Unseen"
)

// Stage is one step of a request, or of a pass.
type Stage struct {
	// name tells what the stage does.
	// +required
	Name StageName `json:"name" protobuf:"bytes,1,opt,name=name,casttype=StageName"`

	// subject is which of several of this name: the admission plugin, the call,
	// the watch.
	// +optional
	Subject string `json:"subject,omitempty" protobuf:"bytes,2,opt,name=subject"`

	// outcome tells how the stage ended.
	// +required
	Outcome Outcome `json:"outcome" protobuf:"bytes,3,opt,name=outcome,casttype=Outcome"`

	// startMicroseconds is when it began, counted from startTime of the trace.
	// Absent where no hook tells.
	// +optional
	StartMicroseconds *int64 `json:"startMicroseconds,omitempty" protobuf:"varint,4,opt,name=startMicroseconds"`

	// durationMicroseconds is how long it took, stages within it not taken off.
	// Absent where no hook tells.
	// +optional
	DurationMicroseconds *int64 `json:"durationMicroseconds,omitempty" protobuf:"varint,5,opt,name=durationMicroseconds"`

	// replayed: the step was done again to show it, with the same codec and the
	// same bytes, when the trace was read.
	// +optional
	Replayed bool `json:"replayed,omitempty" protobuf:"varint,6,opt,name=replayed"`

	// message says in words what happened.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,7,opt,name=message"`

	// errors are the reasons of a refusal, each with its field.
	// +optional
	// +listType=atomic
	Errors []string `json:"errors,omitempty" protobuf:"bytes,8,rep,name=errors"`

	// details are more to know, by name.
	// +optional
	// +listType=atomic
	Details []Detail `json:"details,omitempty" protobuf:"bytes,9,rep,name=details"`

	// before is the object as it came, where the stage changed it.
	// +optional
	Before *runtime.RawExtension `json:"before,omitempty" protobuf:"bytes,10,opt,name=before"`

	// after is the object as it went on, where the stage made or changed it.
	// The hub has no JSON of its own and is shown with the fields of v2alpha1,
	// as version __internal.
	// +optional
	After *runtime.RawExtension `json:"after,omitempty" protobuf:"bytes,11,opt,name=after"`
}

// Detail is something to know about a stage.
type Detail struct {
	// name tells what it is.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// value is what there is to know, in words.
	// +required
	Value string `json:"value" protobuf:"bytes,2,opt,name=value"`
}

// Pass is one look of the controller at one Network, and what it did about it.
type Pass struct {
	// startMicroseconds is when a worker took it up, counted from startTime of
	// the trace.
	// +required
	StartMicroseconds int64 `json:"startMicroseconds" protobuf:"varint,1,opt,name=startMicroseconds"`

	// durationMicroseconds is how long it took. Absent while it goes on.
	// +optional
	DurationMicroseconds *int64 `json:"durationMicroseconds,omitempty" protobuf:"varint,2,opt,name=durationMicroseconds"`

	// resourceVersion is that of the state the pass began with.
	// +required
	ResourceVersion string `json:"resourceVersion" protobuf:"bytes,3,opt,name=resourceVersion"`

	// result is the reason that the conditions got, or what the pass failed with.
	// +optional
	Result string `json:"result,omitempty" protobuf:"bytes,4,opt,name=result"`

	// settled: the controller does nothing more by itself.
	// +optional
	Settled bool `json:"settled,omitempty" protobuf:"varint,5,opt,name=settled"`

	// stages are what it did, in the order in which they began.
	// +optional
	// +listType=atomic
	Stages []Stage `json:"stages,omitempty" protobuf:"bytes,6,rep,name=stages"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RequestTraceList is a list of traces, the oldest first.
type RequestTraceList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the traces.
	// +required
	Items []RequestTrace `json:"items" protobuf:"bytes,2,rep,name=items"`
}
