package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	clientv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

// patience is far more than anything here takes.
const patience = 2 * time.Minute

// namespaceOf is a namespace that no other test uses.
func namespaceOf(t testing.TB) string {
	sum := sha256.Sum256([]byte(t.Name()))
	return "test-" + hex.EncodeToString(sum[:6])
}

// newNetwork is valid, and the tweaks make of it what a test needs.
func newNetwork(name string, tweaks ...func(*samplecrdv1.Network)) *samplecrdv1.Network {
	network := &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1"}},
	}
	for _, tweak := range tweaks {
		tweak(network)
	}
	return network
}

// networks are those of one namespace, as one test uses them.
type networks struct {
	clientv1.NetworkInterface
	t testing.TB
}

// networks returns those of the namespace of the test.
func (s *server) networks(t testing.TB) networks {
	return networks{s.clients.SamplecrdV1().Networks(namespaceOf(t)), t}
}

func (n networks) create(network *samplecrdv1.Network) *samplecrdv1.Network {
	n.t.Helper()
	created, err := n.Create(n.t.Context(), network, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatalf("creating Network %s: %v", network.Name, err)
	}
	return created
}

func (n networks) get(name string) *samplecrdv1.Network {
	n.t.Helper()
	network, err := n.Get(n.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatalf("reading Network %s: %v", name, err)
	}
	return network
}

// edit changes the newest state of a Network.
func (n networks) edit(name string, tweak func(*samplecrdv1.Network)) *samplecrdv1.Network {
	n.t.Helper()
	var edited *samplecrdv1.Network
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		network := n.get(name)
		tweak(network)
		edited, err = n.Update(n.t.Context(), network, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		n.t.Fatalf("changing Network %s: %v", name, err)
	}
	return edited
}

func (n networks) delete(name string) {
	n.t.Helper()
	if err := n.Delete(n.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		n.t.Fatalf("deleting Network %s: %v", name, err)
	}
}

// await returns the Network as soon as it is as wanted; nil is one that is gone.
func (n networks) await(name, wanted string, is func(*samplecrdv1.Network) bool) *samplecrdv1.Network {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for {
		last, err := n.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			last, err = nil, nil
		}
		if err == nil && is(last) {
			return last
		}
		if err != nil || last == nil {
			n.t.Fatalf("waiting for %s of Network %s: gone, or error %v", wanted, name, err)
		}
		w, err := n.Watch(ctx, metav1.ListOptions{ResourceVersion: last.ResourceVersion, FieldSelector: "metadata.name=" + name})
		if err != nil {
			n.t.Fatalf("waiting for %s of Network %s: %v", wanted, name, err)
		}
		defer w.Stop()
		for event := range w.ResultChan() {
			network, ok := event.Object.(*samplecrdv1.Network)
			if !ok {
				break // the watch ends with an error, and a new look helps
			}
			if last = network; event.Type == watch.Deleted {
				last = nil
			}
			if is(last) {
				return last
			}
		}
		if ctx.Err() != nil {
			n.t.Fatalf("waited in vain for %s of Network %s, last seen: %v", wanted, name, last)
		}
	}
}

// awaitReason waits until both conditions tell the reason, of the current spec.
func (n networks) awaitReason(name, reason string) *samplecrdv1.Network {
	n.t.Helper()
	return n.await(name, "reason "+reason, func(network *samplecrdv1.Network) bool {
		return network != nil && network.Status.ObservedGeneration == network.Generation &&
			condition(network, samplecrdv1.ConditionReady).Reason == reason &&
			condition(network, samplecrdv1.ConditionProgressing).Reason == reason
	})
}

func (n networks) awaitReady(name string) *samplecrdv1.Network {
	n.t.Helper()
	return n.awaitReason(name, samplecrdv1.ReasonSuccess)
}

func (n networks) awaitGone(name string) {
	n.t.Helper()
	n.await(name, "the end", func(network *samplecrdv1.Network) bool { return network == nil })
}

// condition returns the condition, an empty one where there is none.
func condition(network *samplecrdv1.Network, conditionType string) metav1.Condition {
	if c := meta.FindStatusCondition(network.Status.Conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}
