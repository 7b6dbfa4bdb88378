//go:build kube

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// testOwners has the garbage collector of the cluster take Networks along, and
// what they own: the owner that is deleted in the foreground goes last.
func (c *cluster) testOwners(t *testing.T) {
	namespace := c.newNamespace(t, "owners", nil)
	networks := c.networks.SamplecrdV1().Networks(namespace)
	configMaps := c.kube.CoreV1().ConfigMaps(namespace)
	getNetwork := func(ctx context.Context) (metav1.Object, error) { return networks.Get(ctx, "one", metav1.GetOptions{}) }
	getConfigMap := func(ctx context.Context) (metav1.Object, error) {
		return configMaps.Get(ctx, "one", metav1.GetOptions{})
	}
	// What has an owner that is not there goes once the collector has seen it, and
	// so all that was made before it.
	nobody := []metav1.OwnerReference{ownerReference("v1", "ConfigMap", &metav1.ObjectMeta{Name: "nobody", UID: uuid.NewUUID()})}
	// What is owned can't go before it is released.
	tests := map[string]struct {
		make         func(t *testing.T)
		owner, owned func(context.Context) (metav1.Object, error)
		deleteOwner  func(context.Context, string, metav1.DeleteOptions) error
		release      []string
	}{
		"a ConfigMap owns a Network": {
			make: func(t *testing.T) {
				owner, err := configMaps.Create(t.Context(), configMap("one"), metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				n := newTestNetwork("one", "10.0.0.0/24")
				n.OwnerReferences = []metav1.OwnerReference{ownerReference("v1", "ConfigMap", owner)}
				if _, err := networks.Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				converge(t, networks)
				c.kubectl(t, "annotate", "network", "one", "-n", namespace, samplecrdv1.AnnotationPause+"=true")
				n = newTestNetwork("nobodys", "10.0.0.0/24")
				n.OwnerReferences = nobody
				if _, err := networks.Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				until(t, "the collector is up to date", func(ctx context.Context) error {
					_, err := networks.Get(ctx, "nobodys", metav1.GetOptions{})
					return gone(err)
				})
			},
			owner: getConfigMap, owned: getNetwork, deleteOwner: configMaps.Delete,
			release: []string{"annotate", "network", "one", samplecrdv1.AnnotationPause + "-"},
		},
		"a Network owns a ConfigMap": {
			make: func(t *testing.T) {
				owner, err := networks.Create(t.Context(), newTestNetwork("one", "10.0.0.0/24"), metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				owned := configMap("one", ownerReference(samplecrdv1.SchemeGroupVersion.String(), "Network", owner))
				owned.Finalizers = []string{"example.com/hold"}
				for _, m := range []*corev1.ConfigMap{owned, configMap("nobodys", nobody...)} {
					if _, err := configMaps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				until(t, "the collector is up to date", func(ctx context.Context) error {
					_, err := configMaps.Get(ctx, "nobodys", metav1.GetOptions{})
					return gone(err)
				})
			},
			owner: getNetwork, owned: getConfigMap, deleteOwner: networks.Delete,
			release: []string{"patch", "configmap", "one", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`},
		},
	}
	for name, tc := range tests {
		for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground} {
			t.Run(fmt.Sprint(name, ", deleted in the ", propagation), func(t *testing.T) {
				tc.make(t)
				if err := tc.deleteOwner(t.Context(), "one", metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
					t.Fatal(err)
				}
				until(t, "what is owned is being deleted", func(ctx context.Context) error {
					owned, err := tc.owned(ctx)
					if err == nil && owned.GetDeletionTimestamp() == nil {
						err = errors.New("it is not")
					}
					return err
				})
				if propagation == metav1.DeletePropagationForeground {
					if owner, err := tc.owner(t.Context()); err != nil || !slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents) {
						t.Errorf("the owner does not wait: %v (%v)", owner, err)
					}
				}
				c.kubectl(t, append(tc.release, "-n", namespace)...)
				for what, get := range map[string]func(context.Context) (metav1.Object, error){"the owned": tc.owned, "the owner": tc.owner} {
					until(t, what+" is gone", func(ctx context.Context) error {
						_, err := get(ctx)
						return gone(err)
					})
				}
			})
		}
	}
}

func ownerReference(apiVersion, kind string, o metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: o.GetName(), UID: o.GetUID(), BlockOwnerDeletion: new(true)}
}

// configMap is what other objects stand for.
func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
}

const deploymentPool = "10.200.0.0/16"

// testDeployments has Deployments ask for Networks, and take them along.
func (c *cluster) testDeployments(t *testing.T, o *cloud) {
	namespace := c.newNamespace(t, "deployments", nil)
	networks := c.networks.SamplecrdV1().Networks(namespace)
	deployments := c.kube.AppsV1().Deployments(namespace)
	before := len(o.resources(t))
	for name, asks := range map[string]string{"pooled": "true", "explicit": "10.201.7.0/24"} {
		_, err := deployments.Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{samplecrdv1.AnnotationNetwork: asks}},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	until(t, "both have a Network", func(ctx context.Context) error {
		list, err := networks.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != 2 {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
	pool := netip.MustParsePrefix(deploymentPool)
	for _, n := range converge(t, networks) {
		d, err := deployments.Get(t.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cidr := netip.MustParsePrefix(n.Spec.CIDR)
		if n.Name == "pooled" && (cidr.Bits() != 24 || !pool.Overlaps(cidr)) || n.Name == "explicit" && n.Spec.CIDR != "10.201.7.0/24" || !metav1.IsControlledBy(&n, d) {
			t.Errorf("Network %s has %s and the owners %+v", n.Name, n.Spec.CIDR, n.OwnerReferences)
		}
		until(t, "Deployment "+n.Name+" has an Event", func(ctx context.Context) error { return c.told(ctx, namespace, d.UID, "NetworkCreated") })
		until(t, "Network "+n.Name+" has an Event", func(ctx context.Context) error { return c.told(ctx, namespace, n.UID, samplecrdv1.ReasonSuccess) })
	}
	if got := len(o.resources(t)); got != before+4 {
		t.Errorf("Neutron has %d networks and subnets, want %d", got, before+4)
	}
	c.kubectl(t, "delete", "deployment", "--all", "-n", namespace)
	until(t, "Neutron has neither network any more", func(context.Context) error {
		if got := len(o.resources(t)); got != before {
			return fmt.Errorf("it has %d networks and subnets, and had %d", got, before)
		}
		return nil
	})
	if left := converge(t, networks); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// told looks for an Event of that reason about the object.
func (c *cluster) told(ctx context.Context, namespace string, uid types.UID, reason string) error {
	list, err := c.kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Regarding.UID == uid && e.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("among %d Events is none of reason %s", len(list.Items), reason)
}
