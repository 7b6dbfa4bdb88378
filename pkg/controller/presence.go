package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// absentAfter is how long nobody must hold the Lease for it to be told:
	// longer than one replica takes to follow another.
	absentAfter   = time.Minute
	presencePoll  = 15 * time.Second
	presenceLimit = 10 * time.Second // of one look
)

var running = metrics.NewGauge(&metrics.GaugeOpts{
	Subsystem:      "network_controller",
	Name:           "running",
	Help:           "Whether a controller holds the Lease, in this process or elsewhere: 0 after a minute in which none did.",
	StabilityLevel: metrics.ALPHA,
})

var registerRunning = sync.OnceFunc(func() { legacyregistry.MustRegister(running) })

// Presence knows whether a controller runs somewhere.
type Presence struct {
	leases coordinationv1client.LeasesGetter
	lease  componentbaseconfig.LeaderElectionConfiguration
	clock  clock.PassiveClock

	absent  atomic.Bool
	present time.Time // when a holder was last seen, or could not be looked for while one was taken to run
}

// NewPresence returns one that takes a controller to run until Watch has seen
// none for a minute.
func NewPresence(leases coordinationv1client.LeasesGetter, lease componentbaseconfig.LeaderElectionConfiguration) *Presence {
	registerRunning()
	running.Set(1)
	return newPresence(leases, lease, clock.RealClock{})
}

func newPresence(leases coordinationv1client.LeasesGetter, lease componentbaseconfig.LeaderElectionConfiguration, clock clock.PassiveClock) *Presence {
	return &Presence{leases: leases, lease: lease, clock: clock, present: clock.Now()}
}

// Running tells whether a controller runs, as far as is known.
func (p *Presence) Running() bool { return !p.absent.Load() }

// Watch looks at the Lease until ctx ends. Without leader election there is none
// to tell anything.
func (p *Presence) Watch(ctx context.Context) {
	if !p.lease.LeaderElect {
		return
	}
	wait.UntilWithContext(ctx, p.look, presencePoll)
}

func (p *Presence) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, presenceLimit)
	defer cancel()
	lease, err := p.leases.Leases(p.lease.ResourceNamespace).Get(ctx, p.lease.ResourceName, metav1.GetOptions{})
	now := p.clock.Now()
	switch {
	case apierrors.IsNotFound(err):
	case err != nil: // nothing new is known
		if p.Running() {
			p.present = now
		}
		return
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil:
	case lease.Spec.RenewTime.Add(time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second).After(now):
		p.present = now
	}
	absent := now.Sub(p.present) >= absentAfter
	if p.absent.Swap(absent) == absent {
		return
	}
	if absent {
		running.Set(0)
		klog.ErrorS(nil, "No controller is running: nobody holds the Lease", "lease", klog.KRef(p.lease.ResourceNamespace, p.lease.ResourceName))
	} else {
		running.Set(1)
		klog.InfoS("A controller is running again", "holder", ptr.Deref(lease.Spec.HolderIdentity, ""))
	}
}
