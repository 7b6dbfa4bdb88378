package controller

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"
)

// namespaceFile is where a pod finds the namespace it runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace is that of the pod; kube-system for a plain process.
func OwnNamespace() string {
	own, _ := os.ReadFile(namespaceFile)
	return cmp.Or(strings.TrimSpace(string(own)), metav1.NamespaceSystem)
}

// NewLeaderElection returns the defaults: a Lease of the controller's name, in
// the namespace of the process.
func NewLeaderElection() componentbaseconfig.LeaderElectionConfiguration {
	return componentbaseconfig.LeaderElectionConfiguration{
		LeaderElect:       true,
		LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
		RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
		RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
		ResourceLock:      resourcelock.LeasesResourceLock,
		ResourceName:      name,
		ResourceNamespace: OwnNamespace(),
	}
}

// lead runs what only one replica may, again each time this one holds the
// Lease, until ctx ends. The Lease is let go only when run has returned. The
// error is that of run, or of a configuration that can't be.
func lead(ctx context.Context, clients kubernetes.Interface, o componentbaseconfig.LeaderElectionConfiguration, run func(context.Context) error) error {
	if !o.LeaderElect {
		return run(ctx)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this replica: %w", err)
	}
	lock, err := resourcelock.New(o.ResourceLock, o.ResourceNamespace, o.ResourceName, clients.CoreV1(), clients.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()})
	if err != nil {
		return fmt.Errorf("making the lock of Lease %s: %w", o.ResourceName, err)
	}
	for ctx.Err() == nil {
		if err := leadOnce(ctx, lock, o, run); err != nil {
			return err
		}
	}
	return nil
}

// leadOnce returns when the Lease was held and lost, or ctx has ended. The
// Lease is renewed until run has returned, however long its last pass takes.
func leadOnce(ctx context.Context, lock resourcelock.Interface, o componentbaseconfig.LeaderElectionConfiguration, run func(context.Context) error) error {
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watched := &watchedLock{Interface: lock}
	started, ended := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: watched, Name: o.ResourceName,
		LeaseDuration: o.LeaseDuration.Duration, RenewDeadline: o.RenewDeadline.Duration, RetryPeriod: o.RetryPeriod.Duration,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) { started <- term },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	watched.taken = func() {
		if elector.IsLeader() { // as of the look before
			stop()
		}
	}
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	select {
	case <-ctx.Done():
	case <-ended: // right after it began
	case term := <-started:
		working, stopWorking := context.WithCancel(term)
		defer stopWorking()
		defer context.AfterFunc(ctx, stopWorking)()
		err = run(working)
		klog.FromContext(ctx).Info("Not leading any more", "lease", lock.Describe())
	}
	stop()
	<-ended
	if elector.IsLeader() {
		release(ctx, lock, o)
	}
	return err
}

// watchedLock tells when somebody else is seen to hold the Lease. The elector
// alone would go on until the deadline for renewals, beside the other.
type watchedLock struct {
	resourcelock.Interface
	taken func()
}

func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.taken()
	}
	return record, raw, err
}

// release lets the next one lead at once. The elector's own ReleaseOnCancel
// comes before the end of the work where a renewal failed, and takes the Lease
// from whoever holds it by then. Where this fails the Lease just runs out.
func release(ctx context.Context, lock resourcelock.Interface, o componentbaseconfig.LeaderElectionConfiguration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.RenewDeadline.Duration)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // with a last renewal
		held, _, err := lock.Get(ctx)
		if err != nil || held.HolderIdentity != lock.Identity() {
			return err
		}
		now := metav1.Now()
		return lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now, LeaderTransitions: held.LeaderTransitions,
		})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Info("The Lease could not be let go", "lease", lock.Describe(), "reason", err)
	}
}
