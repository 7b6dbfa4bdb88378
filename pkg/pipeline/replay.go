package pipeline

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	restful "github.com/emicklei/go-restful/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// replay is what steps are done again with that are functions of their input
// alone.
type replay struct {
	recorder     *Recorder
	body         []byte
	last, stored runtime.Object
	removed      bool
}

// ObserveRoutes is told where the routes are, once they are installed.
func (r *Recorder) ObserveRoutes(server *genericapiserver.GenericAPIServer) {
	r.routes.Store(server.Handler.GoRestfulContainer)
}

func (p replay) stages(r *Record) []Stage {
	stages := slices.Clone(r.stages)
	for i := range stages {
		switch stages[i].Name {
		case Mux:
			stages[i].Details = append(slices.Clone(stages[i].Details), p.route(r.Request)...)
		case StorageEncoding:
			p.encode(&stages[i])
		}
	}
	decoded, hub := p.decode(r)
	if len(decoded) > 0 {
		at := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == Mux }) + 1
		if marked := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == Decode }); marked >= 0 {
			// The library timed the three as one.
			timed := stages[marked]
			stages = slices.Delete(stages, marked, marked+1)
			at = marked
			decoded[0] = join(timed, decoded[0])
			if timed.stopped() {
				decoded, hub = decoded[:1], nil
			}
		}
		// What comes first after it began with what was decoded.
		for i := at; i < len(stages) && hub != nil; i++ {
			if stages[i].Name == Strategy && stages[i].After != nil && r.Request.Verb == "create" && firstToSee(stages[:i]) {
				stages[i].Before = hub
			}
		}
		stages = slices.Insert(stages, at, decoded...)
	}
	if answer, ok := p.convertAnswer(r); ok {
		at := len(stages)
		if i := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == Encoding }); i >= 0 {
			at = i
		}
		stages = slices.Insert(stages, at, answer)
	}
	return stages
}

// firstToSee tells that no stage has shown the object yet.
func firstToSee(stages []Stage) bool {
	return !slices.ContainsFunc(stages, func(s Stage) bool { return s.After != nil })
}

// join tells of a step that was done again how the true one ended, which took in
// all three.
func join(timed, again Stage) Stage {
	again.Details = append(again.Details, Detail{"decoding, defaulting and conversion took", timed.Duration.String()})
	if timed.stopped() {
		again.Outcome = timed.Outcome
		again.Message = timed.Message
	}
	return again
}

// route asks the router of the server once more.
func (p replay) route(r Request) []Detail {
	container := p.recorder.routes.Load()
	if container == nil {
		return nil
	}
	request := &http.Request{Method: r.Method, URL: &url.URL{Path: r.Path}, Header: http.Header{}}
	request.Header.Set("Accept", r.Accept)
	request.Header.Set("Content-Type", r.ContentType)
	_, route, err := restful.CurlyRouter{}.SelectRoute(container.RegisteredWebServices(), request)
	if err != nil {
		return []Detail{{"route", "none: " + err.Error()}}
	}
	return []Detail{{"route", route.Method + " " + route.Path}, {"operation", route.Operation}}
}

// decode does what a handler does with a body: decode, fill in, convert. A patch
// has no such steps of its own.
func (p replay) decode(r *Record) (stages []Stage, hub runtime.Object) {
	if len(p.body) == 0 || r.Request.Verb != "create" && r.Request.Verb != "update" {
		return nil, nil
	}
	again := func(name string) Stage {
		return Stage{Name: name, Outcome: Passed, Start: Unknown, Duration: Unknown, Replayed: true}
	}
	decode := again(Decode)
	media, _, err := mime.ParseMediaType(r.Request.ContentType)
	if err != nil {
		media = runtime.ContentTypeJSON // as the handler takes it
	}
	decode.Details = append(decode.Details, Detail{"media type", media}, Detail{"bytes", fmt.Sprint(r.Request.BodyBytes)})
	info, err := negotiation.NegotiateInputSerializerForMediaType(r.Request.ContentType, false, p.recorder.Codecs)
	if err != nil {
		decode.Outcome, decode.Message = Refused, err.Error()
		return []Stage{decode}, nil
	}
	serializer := info.StrictSerializer
	if slices.Contains(r.Request.Parameters, "fieldValidation="+metav1.FieldValidationIgnore) {
		serializer = info.Serializer
	}
	group := schema.GroupVersion{Group: r.Request.Group, Version: r.Request.Version}
	kind := p.kind(r.Request.Resource, group)
	obj, gvk, err := serializer.Decode(p.body, &kind, nil)
	if strict, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
		for _, problem := range strict.Errors() {
			decode.Errors = append(decode.Errors, problem.Error())
		}
		err = nil
	}
	switch {
	case err != nil:
		decode.Outcome, decode.Message = Refused, withoutBody(err.Error())
		return []Stage{decode}, nil
	case gvk.GroupKind() != kind.GroupKind():
		// It may be anything, a Secret too.
		decode.Message = fmt.Sprintf("a %s of %s, which is not shown", gvk.Kind, gvk.GroupVersion())
		return []Stage{decode}, nil
	}
	decode.Subject = gvk.GroupVersion().String() + " " + gvk.Kind
	decode.After = obj.DeepCopyObject()
	stages = append(stages, decode)

	defaulting := again(Defaulting)
	defaulted := obj.DeepCopyObject()
	p.recorder.Scheme.Default(defaulted)
	if !same(obj, defaulted) {
		defaulting.Outcome, defaulting.Before, defaulting.After = Changed, decode.After, defaulted
	}
	stages = append(stages, defaulting)

	conversion := again(ConversionToHub)
	conversion.Subject = gvk.Version + " → hub"
	hub, err = p.recorder.Scheme.ConvertToVersion(defaulted.DeepCopyObject(), schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		conversion.Outcome, conversion.Message = Failed, err.Error()
		return append(stages, conversion), nil
	}
	conversion.Outcome, conversion.Before, conversion.After = Changed, defaulted, hub
	return append(stages, conversion), hub
}

// kind finds what objects of a resource are called.
func (p replay) kind(resource string, version schema.GroupVersion) schema.GroupVersionKind {
	for kind := range p.recorder.Scheme.KnownTypes(version) {
		if strings.EqualFold(kind+"s", resource) {
			return version.WithKind(kind)
		}
	}
	return version.WithKind("")
}

// encode shows what was stored, in the version it was stored in.
func (p replay) encode(s *Stage) {
	if p.stored == nil {
		return
	}
	version := p.recorder.StoredVersion
	stored, err := p.recorder.Scheme.ConvertToVersion(p.stored.DeepCopyObject(), version)
	if err != nil {
		s.Message = err.Error()
		return
	}
	s.Subject = "hub → " + version.Version
	s.Before, s.After = p.stored, stored
	if s.Outcome == Passed {
		s.Outcome = Changed
	}
}

// convertAnswer makes the version that was asked for of the last state.
func (p replay) convertAnswer(r *Record) (Stage, bool) {
	s := Stage{Name: ConversionFromHub, Outcome: Changed, Start: Unknown, Duration: Unknown, Replayed: true}
	s.Subject = "hub → " + r.Request.Version
	several := r.Request.Verb == "list" || r.Request.Verb == "deletecollection"
	if r.Response.Code >= http.StatusBadRequest || r.Request.Verb == "watch" || !several && (p.last == nil || p.removed && r.Request.Method == http.MethodDelete) {
		return s, false
	}
	if as := answeredAs(r.Request.Accept); as != "" {
		s.Outcome, s.Replayed, s.Subject = Unseen, false, "hub → "+as
		s.Message = "the library makes it of the hub itself, and has no hook for it"
		return s, true
	}
	if several {
		s.Outcome, s.Replayed = Unseen, false
		s.Message = "each object is converted, and nothing shows them one by one"
		return s, true
	}
	answered, err := p.recorder.Scheme.ConvertToVersion(p.last.DeepCopyObject(), schema.GroupVersion{Group: r.Request.Group, Version: r.Request.Version})
	if err != nil {
		s.Outcome, s.Message = Failed, err.Error()
		return s, true
	}
	s.Before, s.After = p.last, answered
	return s, true
}

// answeredAs returns the kind that a client would rather have than the object:
// Table, as kubectl get, or PartialObjectMetadata.
func answeredAs(accept string) string {
	first, _, _ := strings.Cut(accept, ",")
	_, parameters, err := mime.ParseMediaType(first)
	if err != nil {
		return ""
	}
	return parameters["as"]
}
