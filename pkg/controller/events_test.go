package controller

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
)

func TestEventSink(t *testing.T) {
	forbidden := apierrors.NewForbidden(eventsv1.Resource("events"), "net.1", errors.New("not here"))
	terminating := apierrors.NewForbidden(eventsv1.Resource("events"), "net.1", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	for name, tc := range map[string]struct{ answer, want error }{
		"an Event is taken":                         {},
		"a namespace that is being deleted":         {answer: terminating},
		"a right that is missing is still an error": {answer: forbidden, want: forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientset()
			clients.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.answer != nil, nil, tc.answer
			})
			sink := eventSink{&events.EventSinkImpl{Interface: clients.EventsV1()}}
			sent := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "net.1"}}
			got, err := sink.Create(t.Context(), sent)
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if err == nil && got.Name != sent.Name {
				t.Errorf("returned %v, want the Event", got)
			}
		})
	}
}
