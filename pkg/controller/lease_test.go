package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	componentbaseconfig "k8s.io/component-base/config"
)

// another is a holder of the Lease that the test speaks for.
const another = "another"

// leaseServer is the part of kube-apiserver that keeps the Lease: as there, who
// writes what has changed since he read it gets a conflict.
type leaseServer struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
}

// client is the way of one candidate to the server. A request for which there
// is trouble does not arrive.
func (s *leaseServer) client(trouble func(clienttesting.Action) error) *fake.Clientset {
	clients := fake.NewClientset()
	clients.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if err := trouble(action); err != nil {
			return true, nil, err
		}
		lease, err := s.do(action)
		return true, lease, err
	})
	return clients
}

func (s *leaseServer) do(action clienttesting.Action) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := action.GetResource().GroupResource()
	switch action := action.(type) {
	case clienttesting.GetAction:
		if s.lease == nil {
			return nil, apierrors.NewNotFound(resource, action.GetName())
		}
	case clienttesting.UpdateAction: // a CreateAction is one too, by its methods
		written := action.GetObject().(*coordinationv1.Lease)
		current := ""
		if s.lease != nil {
			current = s.lease.ResourceVersion
		}
		if written.ResourceVersion != current {
			return nil, apierrors.NewConflict(resource, written.Name, errors.New("it has changed"))
		}
		s.put(written)
	}
	return s.lease.DeepCopy(), nil
}

func (s *leaseServer) put(lease *coordinationv1.Lease) {
	s.version++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.version)
}

// give makes somebody the holder, whoever is.
func (s *leaseServer) give(holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if s.lease != nil {
		lease = s.lease.DeepCopy()
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &holder, new(int32(15))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = new(metav1.NowMicro()), new(metav1.NowMicro())
	s.put(lease)
}

func (s *leaseServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return holderOf(s.lease)
}

// holderOf is empty where there is none.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func calm(clienttesting.Action) error { return nil }

// candidate is one call of lead, in a bubble of synctest.
type candidate struct {
	stop  context.CancelFunc
	terms chan context.Context // of run, as they begin
	ended chan error           // what lead returned
}

func stand(t *testing.T, clients *fake.Clientset, run func(term context.Context) error) *candidate {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &candidate{stop: stop, terms: make(chan context.Context, 1), ended: make(chan error, 1)}
	go func() {
		c.ended <- lead(ctx, clients, NewLeaderElection(), func(term context.Context) error {
			c.terms <- term
			return run(term)
		})
	}()
	return c
}

// pass has the clock of a bubble go on: nothing is waited for in earnest.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of synctest, on which nobody waits
}

func untilDone(term context.Context) error {
	<-term.Done()
	return nil
}

func (c *candidate) wantEnd(t *testing.T, want error) {
	t.Helper()
	if err := <-c.ended; !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestLeadAgainForEachTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		c := stand(t, s.client(calm), untilDone)
		for range 3 {
			term := <-c.terms
			s.give(another)
			// Not only at the deadline for renewals: until then two would work.
			pass(NewLeaderElection().RetryPeriod.Duration)
			synctest.Wait()
			if term.Err() == nil {
				t.Fatal("it works on when it could know that another holds the Lease")
			}
			if got := s.holder(); got != another {
				t.Errorf("the Lease of another is held by %q", got)
			}
			s.give("")
		}
		<-c.terms
		c.stop()
		c.wantEnd(t, nil)
		if got := s.holder(); got != "" {
			t.Errorf("after the end the Lease is held by %q", got)
		}
	})
}

// TestLeaseHeldUntilRunReturns ends a term in each way; run takes longer to
// return than a Lease lasts that is not renewed.
func TestLeaseHeldUntilRunReturns(t *testing.T) {
	failed := errors.New("run failed")
	tests := map[string]struct {
		end  func(*candidate, *atomic.Bool)
		want error
	}{
		"the context ends":       {end: func(c *candidate, _ *atomic.Bool) { c.stop() }},
		"no renewal is accepted": {end: func(_ *candidate, refuse *atomic.Bool) { refuse.Store(true) }},
		"run fails":              {end: func(c *candidate, _ *atomic.Bool) { c.stop() }, want: failed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, refuse := &leaseServer{}, &atomic.Bool{}
				clients := s.client(func(action clienttesting.Action) error {
					if update, ok := action.(clienttesting.UpdateAction); ok && refuse.Load() && holderOf(update.GetObject().(*coordinationv1.Lease)) != "" {
						return errors.New("refused")
					}
					return nil
				})
				var c *candidate
				c = stand(t, clients, func(term context.Context) error {
					<-term.Done()
					for range 60 {
						pass(time.Second)
						if s.holder() == "" {
							t.Error("the Lease was let go before run returned")
						}
					}
					c.stop()
					return tc.want
				})
				<-c.terms
				tc.end(c, refuse)
				c.wantEnd(t, tc.want)
				if got := s.holder(); got != "" {
					t.Errorf("after the end the Lease is held by %q", got)
				}
			})
		})
	}
}

// TestLeaseOfAnotherIsNotLetGo cuts one candidate off until its term is over
// and another holds the Lease.
func TestLeaseOfAnotherIsNotLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, down := &leaseServer{}, &atomic.Bool{}
		clients := s.client(func(clienttesting.Action) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		})
		c := stand(t, clients, func(term context.Context) error {
			<-term.Done()
			s.give(another)
			down.Store(false)
			return nil
		})
		<-c.terms
		down.Store(true)
		pass(NewLeaderElection().LeaseDuration.Duration)
		synctest.Wait()
		if got := s.holder(); got != another {
			t.Errorf("the Lease of another is held by %q", got)
		}
		c.stop()
		c.wantEnd(t, nil)
	})
}

func TestStopsWithoutATerm(t *testing.T) {
	down := func(clienttesting.Action) error { return errors.New("down") }
	tests := map[string]struct {
		trouble func(clienttesting.Action) error
		holder  string
		after   time.Duration
	}{
		"before it began":               {trouble: calm},
		"while another holds it":        {trouble: calm, holder: another, after: 5 * time.Second},
		"while the server is not there": {trouble: down, after: time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &leaseServer{}
				s.give(tc.holder)
				ctx, stop := context.WithTimeout(t.Context(), tc.after)
				defer stop()
				err := lead(ctx, s.client(tc.trouble), NewLeaderElection(), func(context.Context) error {
					t.Error("it ran")
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if got := s.holder(); got != tc.holder {
					t.Errorf("the Lease is held by %q, want %q", got, tc.holder)
				}
			})
		})
	}
}

func TestLeadError(t *testing.T) {
	failed := errors.New("run failed")
	tests := map[string]struct {
		change func(*componentbaseconfig.LeaderElectionConfiguration)
		want   string
	}{
		"of run":                      {change: func(*componentbaseconfig.LeaderElectionConfiguration) {}, want: "run failed"},
		"of run, without an election": {change: func(o *componentbaseconfig.LeaderElectionConfiguration) { o.LeaderElect = false }, want: "run failed"},
		"renewed too late": {
			change: func(o *componentbaseconfig.LeaderElectionConfiguration) { o.RenewDeadline = o.LeaseDuration },
			want:   "setting up leader election: leaseDuration must be greater than renewDeadline",
		},
		"another kind of lock": {
			change: func(o *componentbaseconfig.LeaderElectionConfiguration) { o.ResourceLock = "configmaps" },
			want:   "making the lock of Lease network-controller: configmaps lock is removed, migrate to leases",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o := &leaseServer{}, NewLeaderElection()
				tc.change(&o)
				err := lead(t.Context(), s.client(calm), o, func(context.Context) error { return failed })
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %s", err, tc.want)
				}
				if got := s.holder(); got != "" {
					t.Errorf("after the end the Lease is held by %q", got)
				}
			})
		})
	}
}

// TestOneWorksAtATime has candidates come and go, with a server that is slow,
// and now and then not there for one of them. What they do is drawn by a seed.
func TestOneWorksAtATime(t *testing.T) {
	const candidates = 3
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &workplace{outages: seed%2 == 1}
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				var running sync.WaitGroup
				for i := range candidates {
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					running.Go(func() {
						for ctx.Err() == nil {
							w.stand(t, ctx, random)
						}
					})
				}
				running.Wait()
				t.Logf("%d terms", w.terms)
				if w.terms < 10 {
					t.Errorf("in an hour there were %d terms", w.terms)
				}
				if got := w.holder(); got != "" && !w.outages {
					t.Errorf("after the end the Lease is held by %q", got)
				}
			})
		})
	}
}

// workplace is where one may work at a time.
type workplace struct {
	leaseServer
	outages bool

	working atomic.Int32
	terms   int // of the one who works
}

// stand is one candidate that comes, and goes after a while.
func (w *workplace) stand(t *testing.T, ctx context.Context, random *rand.Rand) {
	upTo := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }
	// A term that ends in an outage must be over before another can begin.
	lastPass := time.Minute
	if w.outages {
		lastPass = time.Second
	}
	var outageEnds time.Time
	clients := w.client(func(clienttesting.Action) error {
		pass(upTo(200 * time.Millisecond))
		if w.outages && random.IntN(20) == 0 {
			outageEnds = time.Now().Add(upTo(30 * time.Second))
		}
		if time.Now().Before(outageEnds) {
			return errors.New("down")
		}
		return nil
	})
	ctx, leave := context.WithTimeout(ctx, upTo(5*time.Minute))
	defer leave()
	stay := lastPass - upTo(lastPass)
	err := lead(ctx, clients, NewLeaderElection(), func(term context.Context) error {
		if now := w.working.Add(1); now != 1 {
			t.Errorf("%d work at once", now)
		}
		defer w.working.Add(-1)
		w.terms++
		<-term.Done()
		pass(stay)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
