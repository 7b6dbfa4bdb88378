package controller

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
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

// leadOnce returns when the Lease was held and lost, or ctx has ended.
func leadOnce(ctx context.Context, lock resourcelock.Interface, o componentbaseconfig.LeaderElectionConfiguration, run func(context.Context) error) error {
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.Mutex // held while run runs
	var failed error
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: o.ResourceName,
		LeaseDuration: o.LeaseDuration.Duration, RenewDeadline: o.RenewDeadline.Duration, RetryPeriod: o.RetryPeriod.Duration,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				running.Lock()
				defer running.Unlock()
				if leading.Err() != nil {
					return // the term was over before this goroutine ran
				}
				working, stopWorking := context.WithCancel(leading)
				defer stopWorking()
				defer context.AfterFunc(ctx, stopWorking)()
				if failed = run(working); failed != nil {
					stop()
				}
			},
			OnStoppedLeading: func() { klog.FromContext(ctx).Info("Not leading any more", "lease", lock.Describe()) },
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		running.Lock()
		defer running.Unlock()
		stop()
	})()
	elector.Run(electing)
	running.Lock()
	defer running.Unlock()
	return failed
}
