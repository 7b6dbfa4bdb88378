// Package cluster is what a controller needs of the cluster it runs in: its ID,
// the Lease of the one replica that works, and a place for Events.
package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
)

// Name is that of the controller in Events, and of its Lease.
const Name = "network-controller"

// ID is the UID of the namespace kube-system, which lives as long as the cluster.
func ID(ctx context.Context, clients kubernetes.Interface) (string, error) {
	namespace, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the UID of namespace %s, which is the cluster ID: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// NewRecorder returns a recorder of Events (events.k8s.io/v1) about objects of
// the scheme; repeated ones become a series. stop sends what is left.
func NewRecorder(ctx context.Context, client eventsv1.EventsV1Interface, scheme *runtime.Scheme) (recorder events.EventRecorder, stop func(), err error) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	if err := broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)); err != nil {
		return nil, nil, fmt.Errorf("starting to record Events: %w", err)
	}
	return broadcaster.NewRecorder(scheme, Name), broadcaster.Shutdown, nil
}
