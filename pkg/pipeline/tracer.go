package pipeline

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/component-base/tracing"
)

// tracerProvider listens to the spans that the library opens around each filter,
// handler step and call of etcd, and hands them on to another provider.
func (r *Recorder) tracerProvider(next tracing.TracerProvider) tracing.TracerProvider {
	if next == nil {
		next = tracing.NewNoopTracerProvider()
	}
	return &provider{next, next.Shutdown}
}

type provider struct {
	trace.TracerProvider
	shutdown func(context.Context) error
}

// Shutdown ends the provider that comes next.
func (p *provider) Shutdown(ctx context.Context) error { return p.shutdown(ctx) }

func (p *provider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return &tracer{p.TracerProvider.Tracer(name, options...), p}
}

type tracer struct {
	trace.Tracer
	provider *provider
}

// filters are the spans of the filters.
var filters = map[string]string{
	"authentication":           Authentication,
	"audit":                    Audit,
	"impersonation":            Impersonation,
	"constrainedimpersonation": Impersonation,
	"priorityandfairness":      PriorityAndFairness,
	"authorization":            Authorization,
}

func (t *tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, next := t.Tracer.Start(ctx, name, options...)
	record := from(ctx)
	if record == nil {
		return ctx, next
	}
	s := &span{Span: next, provider: t.provider, trace: record}
	if filters[name] != "" {
		record.enterFilter(filters[name])
	} else if name != "SerializeObject" {
		foundHandler(ctx) // where there was none, an answer is all there is
	}
	switch call, isEtcd := strings.CutPrefix(name, "etcdserverpb."); {
	case isEtcd:
		s.step = record.callEtcd(call)
	case strings.HasPrefix(name, "cacher."):
		s.step = record.step(WatchCache, strings.TrimPrefix(name, "cacher."))
	case name == "SerializeObject":
		s.step = record.step(Encoding, "")
		config := trace.NewSpanStartConfig(options...)
		for _, a := range config.Attributes() {
			if a.Key == "mediaType" {
				s.step.detail("media type", a.Value.AsString())
			}
		}
	}
	return trace.ContextWithSpan(ctx, s), s
}

// span is one step of the library.
type span struct {
	trace.Span
	provider *provider
	trace    *Trace
	step     *step // that lasts as long as the span; nil where there is none
	inner    *step // that lasts from one event to another
}

// IsRecording is true: the library asks before it tells.
func (s *span) IsRecording() bool { return true }

// TracerProvider is asked for the spans within this one.
func (s *span) TracerProvider() trace.TracerProvider { return s.provider }

func (s *span) SetStatus(code codes.Code, description string) {
	if code == codes.Error {
		s.step.end(Failed, description)
	}
	s.Span.SetStatus(code, description)
}

func (s *span) AddEvent(name string, options ...trace.EventOption) {
	switch name {
	case "limitedReadBody failed":
		s.trace.step(Decode, "").end(Refused, eventAttribute(options, "err"))
	case "About to convert to expected version":
		s.inner = s.trace.step(Decode, "")
	case "Conversion done":
		s.inner.end(Passed, "")
	case "About to Encode":
		s.inner = s.trace.step(StorageEncoding, "")
	case "Encode failed", "TransformToStorage failed":
		s.inner.end(Failed, eventAttribute(options, "err"))
	case "TransformToStorage succeeded":
		s.inner.end(Passed, "")
	case "Write call succeeded":
		s.step.detail("bytes", eventAttribute(options, "size"))
	case "Write call failed":
		s.step.end(Failed, eventAttribute(options, "err"))
	}
	s.Span.AddEvent(name, options...)
}

func (s *span) End(options ...trace.SpanEndOption) {
	if s.inner != nil && s.inner.stage.Name == StorageEncoding {
		s.inner.end(Passed, "the bytes are those that are stored: nothing is written")
	}
	s.step.end(Passed, "")
	s.Span.End(options...)
}

func eventAttribute(options []trace.EventOption, key attribute.Key) string {
	config := trace.NewEventConfig(options...)
	for _, a := range config.Attributes() {
		if a.Key == key {
			return fmt.Sprint(a.Value.AsInterface())
		}
	}
	return ""
}
