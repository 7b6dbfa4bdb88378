package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ClusterID is the UID of the namespace kube-system, which lives as long as the cluster.
func ClusterID(ctx context.Context, clients kubernetes.Interface) (string, error) {
	namespace, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the UID of namespace %s, which is the cluster ID: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}
