package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

// convergeDeadline bounds the work that is left to the controller.
const convergeDeadline = 3 * time.Minute

// state is what a write asks for. The zero state is no Network at all.
type state struct {
	CIDR, Gateway         string
	MTU                   int32  // 0: none is asked for
	MoreCIDR, MoreGateway string // of an additional subnet, if there is one
}

func stateOf(spec samplecrdv1.NetworkSpec) state {
	s := state{CIDR: spec.CIDR, Gateway: spec.Gateway}
	if spec.MTU != nil {
		s.MTU = *spec.MTU
	}
	for _, more := range spec.AdditionalSubnets {
		s.MoreCIDR, s.MoreGateway = more.CIDR, more.Gateway
	}
	return s
}

func (s state) spec() samplecrdv1.NetworkSpec {
	spec := samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: s.CIDR, Gateway: s.Gateway}}
	if s.MTU != 0 {
		spec.MTU = &s.MTU
	}
	if s.MoreCIDR != "" {
		spec.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: s.MoreCIDR, Gateway: s.MoreGateway}}
	}
	return spec
}

// mergePatch takes out of a spec what the state does not ask for.
func (s state) mergePatch() ([]byte, error) {
	spec := s.spec()
	return json.Marshal(map[string]any{"spec": map[string]any{
		"cidr": spec.CIDR, "gateway": spec.Gateway, "mtu": spec.MTU, "additionalSubnets": spec.AdditionalSubnets,
	}})
}

// history is what is known of one Network: its last acknowledged state, and
// the one asked for by a write that got no answer.
type history struct {
	acknowledged state
	unanswered   *state
}

// journal is what is known, by name, of the Networks that one writer writes to
// and nobody else.
type journal map[string]*history

// write asks for a state. The error leaves open whether that was done.
func (j journal) write(ctx context.Context, networks typedv1.NetworkInterface, name string, change state) error {
	h := j[name]
	if h == nil {
		h = &history{}
		j[name] = h
	}
	h.unanswered = &change
	if err := send(ctx, networks, name, h.acknowledged, change); err != nil {
		return err
	}
	h.acknowledged, h.unanswered = change, nil
	return nil
}

func send(ctx context.Context, networks typedv1.NetworkInterface, name string, from, to state) error {
	var err error
	switch (state{}) {
	case from:
		_, err = networks.Create(ctx, &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: to.spec()}, metav1.CreateOptions{})
	case to:
		err = networks.Delete(ctx, name, metav1.DeleteOptions{})
	default:
		var patch []byte
		if patch, err = to.mergePatch(); err == nil {
			_, err = networks.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	return err
}

// check compares what is stored with what the writers know, and settles what
// they don't: a write without an answer was done, or was not.
func check(t *testing.T, networks typedv1.NetworkInterface, journals []journal) {
	t.Helper()
	list, err := networks.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]state{}
	for _, n := range list.Items {
		if n.DeletionTimestamp == nil {
			stored[n.Name] = stateOf(n.Spec)
		}
	}
	written := 0
	for _, j := range journals {
		for name, h := range j {
			got := stored[name]
			delete(stored, name)
			if got != h.acknowledged && (h.unanswered == nil || got != *h.unanswered) {
				t.Errorf("%s is %+v, was acknowledged as %+v, and without an answer as %+v", name, got, h.acknowledged, h.unanswered)
			}
			h.acknowledged, h.unanswered = got, nil
		}
		written += len(j)
	}
	for name := range stored {
		t.Errorf("%s is there, and nobody made it", name)
	}
	t.Logf("%d networks were made so far, %d are there", written, len(list.Items))
}

// converge waits until all that was deleted is gone and all else is ready, and
// returns what is left.
func converge(t *testing.T, networks typedv1.NetworkInterface) []samplecrdv1.Network {
	t.Helper()
	var list *samplecrdv1.NetworkList
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, convergeDeadline, true, func(context.Context) (_ bool, err error) {
		if list, err = networks.List(t.Context(), metav1.ListOptions{}); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, unsettled), nil
	})
	if err != nil {
		for _, n := range slices.DeleteFunc(list.Items, func(n samplecrdv1.Network) bool { return !unsettled(n) }) {
			t.Logf("%s, deleted %v, generation %d: %+v", n.Name, n.DeletionTimestamp, n.Generation, n.Status)
		}
		t.Fatalf("not all Networks are ready or gone: %v", err)
	}
	return list.Items
}

func unsettled(n samplecrdv1.Network) bool {
	return n.DeletionTimestamp != nil || n.Status.ObservedGeneration != n.Generation ||
		!meta.IsStatusConditionTrue(n.Status.Conditions, samplecrdv1.ConditionReady) ||
		!meta.IsStatusConditionFalse(n.Status.Conditions, samplecrdv1.ConditionProgressing)
}
