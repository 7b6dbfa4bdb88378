//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

const (
	chaosWorkers = 8
	// chaosLives is the number of Networks that a worker has in hand at once.
	chaosLives = 3
	// chaosCalls bounds the moment of a kill, from the step that it waits for.
	chaosCalls = 30
	// chaosCalm bounds the wait for a step or call that does not come, because
	// all is done or the controller waits to try again.
	chaosCalm = 5 * time.Second
	// chaosPatience bounds the wait of a worker for the state before.
	chaosPatience = 2 * time.Second
)

// crash is what no server may log, whatever happens around it. The servers are
// built with the race detector.
var crash = regexp.MustCompile(`(?m)^.*(?:goroutine \d+ \[|fatal error: |WARNING: DATA RACE).*$`)

func init() { serverFlags = append(serverFlags, "-race") }

// TestChaos makes, changes and deletes Networks while every fault of the
// simulator strikes and the server is killed again and again. At the end
// Neutron must hold exactly what is declared, and all else as it was.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := newChaos(t, environment(t, "CHAOS_NETWORKS", 100))
	for _, d := range c.run(t, int(environment(t, "CHAOS_KILLS", 10))) {
		t.Error(d)
	}
	for _, f := range c.struck {
		t.Logf("%+v", f)
		if f.Hits == 0 {
			t.Errorf("a fault did not strike once: %+v", f)
		}
	}
}

// TestChaosSeesDuplicates makes the search for a marker find nothing. What
// keeps a lost answer from becoming a second network is that search: without it
// the same run must end in differences.
func TestChaosSeesDuplicates(t *testing.T) {
	t.Parallel()
	c := newChaos(t, 24)
	c.blind = true
	found := c.run(t, 2)
	t.Logf("found %d differences", len(found))
	if !slices.ContainsFunc(found, func(d difference) bool { return d.kind == duplicate || d.kind == orphan }) {
		t.Errorf("neither a duplicate nor an orphan is among %v", found)
	}
}

// environment returns a number that the environment may set.
func environment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// chaos is one run. Its seed decides what each worker asks for and in which
// order, after which step and with which call to Neutron a kill comes, and the
// rhythm of the faults. It does not decide how workers, controller and Neutron
// interleave, and so not which call of which Network a fault strikes: one seed
// is one kind of weather, not one course of events.
type chaos struct {
	*chaosCloud
	random  *rand.Rand
	dir     string
	before  inventory
	workers []*worker
	struck  []fault
}

func newChaos(t *testing.T, networks uint64) *chaos {
	seed := environment(t, "CHAOS_SEED", uint64(time.Now().UnixNano())%1e9)
	t.Logf("CHAOS_SEED=%d", seed)
	c := &chaos{random: rand.New(rand.NewPCG(seed, 0)), dir: dataDir(t)}
	names := make([]string, networks)
	for i := range names {
		names[i] = fmt.Sprintf("net-%d", i)
	}
	c.chaosCloud = newChaosCloud(t, c.random)
	c.addForeign(t, names)
	c.before = takeInventory(t, c.admin)
	for i := range chaosWorkers {
		var lives [][]step
		for j := i; j < len(names); j += chaosWorkers {
			lives = append(lives, lifeOf(c.random, names[j]))
		}
		c.workers = append(c.workers, &worker{journal: journal{}, script: mix(c.random, lives)})
	}
	return c
}

// run returns how what Neutron holds in the end differs from what is declared.
func (c *chaos) run(t *testing.T, kills int) []difference {
	for _, f := range everyFault(c.random) {
		c.inject(t, f)
	}
	steps := 0
	for _, w := range c.workers {
		steps += len(w.script)
	}
	for kill := range kills {
		f := c.open(t)
		s, networks := c.start(t, f)
		var killed atomic.Bool
		step := newAlarm((kill*steps+c.random.IntN(steps))/kills - c.done())
		running := c.work(t, networks, step, &killed)
		step.await()
		f.await(1 + c.random.IntN(chaosCalls))
		killed.Store(true)
		s.kill(t)
		running.Wait()
		c.close(t, f, s)
	}

	f := c.open(t)
	s, networks := c.start(t, f)
	c.work(t, networks, newAlarm(0), &atomic.Bool{}).Wait()
	c.struck = c.faults(t)
	c.clear(t)
	s.stop(t)
	c.close(t, f, s)

	f = c.open(t)
	s, networks = c.start(t, f, "--resync-period", "1s")
	converge(t, networks)
	f.awaitResync(t)
	left := converge(t, networks)
	s.stop(t)
	c.close(t, f, s)
	return compare(left, c.before, takeInventory(t, c.admin))
}

// done is the number of steps that were made.
func (c *chaos) done() int {
	done := 0
	for _, w := range c.workers {
		done += w.done
	}
	return done
}

// alarm rings when something has happened so many times.
type alarm struct {
	left atomic.Int64
	rung chan struct{}
}

func newAlarm(times int) *alarm {
	a := &alarm{rung: make(chan struct{})}
	a.left.Store(int64(max(times, 1)))
	return a
}

func (a *alarm) count() {
	if a.left.Add(-1) == 0 {
		close(a.rung)
	}
}

func (a *alarm) await() {
	select {
	case <-a.rung:
	case <-time.After(chaosCalm):
	}
}

// start runs the server on what the one before has left.
func (c *chaos) start(t *testing.T, f *front, flags ...string) (*server, typedv1.NetworkInterface) {
	t.Helper()
	flags = append([]string{"--cluster-id", testCluster, "--os-cloud", cloudName}, flags...)
	s := startWith(t, []string{"OS_CLIENT_CONFIG_FILE=" + f.writeConfig(t, c.user)}, c.dir, flags...)
	networks := newClients(t, s).SamplecrdV1().Networks(metav1.NamespaceDefault)
	var journals []journal
	for _, w := range c.workers {
		journals = append(journals, w.journal)
	}
	check(t, networks, journals)
	if t.Failed() {
		t.FailNow()
	}
	return s, networks
}

// close looks at what the server that ended has logged.
func (c *chaos) close(t *testing.T, f *front, s *server) {
	t.Helper()
	f.Close()
	t.Logf("%d steps are done, %d calls to Neutron were made since the start", c.done(), f.calls.Load())
	log := s.log.String()
	for _, line := range crash.FindAllString(log, -1) {
		t.Errorf("process %d logged %q", s.process.Pid, line)
	}
	// The password is the name of the user, and so a part of each token.
	if strings.Contains(log, c.user) {
		t.Errorf("process %d logged the password %s or a token with it", s.process.Pid, c.user)
	}
}

// work lets the workers go on, to the end of their scripts or the server.
func (c *chaos) work(t *testing.T, networks typedv1.NetworkInterface, step *alarm, killed *atomic.Bool) *sync.WaitGroup {
	running := &sync.WaitGroup{}
	for _, w := range c.workers {
		running.Go(func() {
			if err := w.work(t.Context(), networks, step); err != nil && !killed.Load() {
				t.Errorf("a write to a server that runs: %v", err)
			}
		})
	}
	return running
}

// step asks for another state of a Network.
type step struct {
	name    string
	change  state
	patient bool // when the one before is reached, if that is soon
}

// worker goes through its script, and after a kill on from where it was.
type worker struct {
	journal journal
	script  []step
	done    int
}

func (w *worker) work(ctx context.Context, networks typedv1.NetworkInterface, made *alarm) error {
	for ; w.done < len(w.script); w.done++ {
		made.count()
		s := w.script[w.done]
		h := w.journal[s.name]
		if h != nil && h.acknowledged == s.change {
			continue // the write that the last kill left open was done
		}
		if s.patient && h != nil {
			if err := awaitSettled(ctx, networks, s.name); err != nil {
				return err
			}
		}
		if err := w.journal.write(ctx, networks, s.name, s.change); err != nil {
			return err
		}
	}
	return nil
}

func awaitSettled(ctx context.Context, networks typedv1.NetworkInterface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, eventuallyInterval, chaosPatience, true, func(context.Context) (bool, error) {
		n, err := networks.Get(ctx, name, metav1.GetOptions{})
		return err == nil && !unsettled(*n), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}
	return err
}

// lifeOf makes a Network, changes it up to four times, and deletes it or not.
func lifeOf(random *rand.Rand, name string) []step {
	var now state
	var first netip.Addr
	setGateway := func() { now.Gateway = fmt.Sprintf("%v%d", strings.TrimSuffix(first.String(), "0"), 1+random.IntN(254)) }
	setRange := func() {
		// Few, and of several sizes: many a change is to one that overlaps.
		first = netip.AddrFrom4([4]byte{10, byte(random.IntN(3)), 0, 0})
		now.CIDR = netip.PrefixFrom(first, 16+4*random.IntN(3)).String()
		setGateway()
	}
	setRange()
	steps := []step{{name: name, change: now}}
	add := func() { steps = append(steps, step{name: name, change: now, patient: random.IntN(2) == 0}) }
	for range random.IntN(5) {
		switch random.IntN(4) {
		case 0:
			setGateway()
		case 1:
			now.MTU = 1280 + random.Int32N(100)
		case 2:
			setRange()
		case 3:
			more := fmt.Sprintf("fd00:0:0:%x::", 1+random.IntN(0xffff))
			now.MoreCIDR, now.MoreGateway = more+"/64", more+"1"
			if random.IntN(3) == 0 {
				now.MoreCIDR, now.MoreGateway = "", ""
			}
		}
		add()
	}
	if random.IntN(2) == 0 {
		now = state{}
		add()
	}
	return steps
}

// mix makes one script of many, a few of them at a time and each in its order.
func mix(random *rand.Rand, lives [][]step) []step {
	var script []step
	for len(lives) > 0 {
		i := random.IntN(min(chaosLives, len(lives)))
		script = append(script, lives[i][0])
		if lives[i] = lives[i][1:]; len(lives[i]) == 0 {
			lives = slices.Delete(lives, i, i+1)
		}
	}
	return script
}
