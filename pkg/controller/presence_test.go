package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestPresence(t *testing.T) {
	election := NewLeaderElection()
	clients := fake.NewClientset()
	var lease *coordinationv1.Lease // nil: there is none
	var failure error
	clients.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lease == nil && failure == nil {
			return false, nil, nil
		}
		return true, lease, failure
	})
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPresence(clients.CoordinationV1(), election, clock)
	renewed := func(holder string, ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)),
			RenewTime: &metav1.MicroTime{Time: clock.Now().Add(-ago)},
		}}
	}
	for _, step := range []struct {
		name    string
		after   time.Duration
		lease   func() *coordinationv1.Lease
		failure error
		want    bool
	}{
		{name: "at the start nothing is known", want: true},
		{name: "no Lease for less than a minute", after: 59 * time.Second, want: true},
		{name: "no Lease for a minute", after: time.Second, want: false},
		{name: "somebody holds it", lease: func() *coordinationv1.Lease { return renewed("one", 0) }, want: true},
		{name: "it was not renewed a while", after: 30 * time.Second, lease: func() *coordinationv1.Lease { return renewed("one", 20*time.Second) }, want: true},
		{name: "it was not renewed for too long", after: time.Minute, lease: func() *coordinationv1.Lease { return renewed("one", 80*time.Second) }, want: false},
		{name: "another took it", lease: func() *coordinationv1.Lease { return renewed("two", time.Second) }, want: true},
		{name: "it was let go", after: time.Hour, lease: func() *coordinationv1.Lease { return renewed("", 0) }, want: false},
		{name: "who can't look knows nothing new", after: time.Hour, failure: errors.New("no route"), want: false},
		{name: "and when it can look again, there still is none", after: presencePoll, want: false},
		{name: "one is there again", lease: func() *coordinationv1.Lease { return renewed("one", 0) }, want: true},
		{name: "who can't look does not claim that there is none", after: time.Hour, failure: errors.New("no route"), want: true},
		{name: "nor does he in the minute after that", after: 59 * time.Second, want: true},
	} {
		clock.Step(step.after)
		lease, failure = nil, step.failure
		if step.lease != nil {
			lease = step.lease()
		}
		p.look(t.Context())
		if got := p.Running(); got != step.want {
			t.Errorf("%s: running is %t, want %t", step.name, got, step.want)
		}
	}
}

func TestPresenceWithoutALease(t *testing.T) {
	election := NewLeaderElection()
	election.LeaderElect = false
	clients := fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clients.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		t.Error("it looked for a Lease that nobody keeps")
		cancel()
		return false, nil, nil
	})
	NewPresence(clients.CoordinationV1(), election).Watch(ctx) // returns at once
}
