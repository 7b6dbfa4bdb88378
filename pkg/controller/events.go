package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
)

// eventSink is content with an Event that can't be: a namespace that is being
// deleted takes none, and of each Network in it there is something to tell.
type eventSink struct{ events.EventSink }

// Create sends a new Event.
func (s eventSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.EventSink.Create(ctx, event)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return event, nil
	}
	return created, err
}
