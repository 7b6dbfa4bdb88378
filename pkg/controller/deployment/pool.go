package deployment

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// The sizes of what is taken from a pool: an IPv6 subnet of another one can't
// have hosts that choose their addresses.
const (
	blockBitsIPv4 = 24
	blockBitsIPv6 = 64
)

func blockBits(a netip.Addr) int {
	if a.Is4() {
		return blockBitsIPv4
	}
	return blockBitsIPv6
}

// ParsePool reads a CIDR from which subnets are taken: /24 or wider, or of IPv6
// /64 or wider.
func ParsePool(text string) (netip.Prefix, error) {
	cidr, err := netip.ParsePrefix(text)
	a := cidr.Addr()
	switch {
	case err != nil || a.Is4In6():
		return netip.Prefix{}, fmt.Errorf("CIDR pool %q: must be a CIDR, such as 10.128.0.0/9", text)
	case cidr != cidr.Masked():
		return netip.Prefix{}, fmt.Errorf("CIDR pool %q: must have no host bits: %s", text, cidr.Masked())
	case cidr.Bits() > blockBits(a):
		return netip.Prefix{}, fmt.Errorf("CIDR pool %q: must be a /%d or wider", text, blockBits(a))
	case a.IsUnspecified() || a.IsLoopback() || a.IsMulticast():
		return netip.Prefix{}, fmt.Errorf("CIDR pool %q: must be of addresses that hosts may have", text)
	}
	return cidr, nil
}

// pool hands out blocks of a CIDR, each time the first that no Network of the
// cluster overlaps, by spec or by status, and that was not promised to another.
//
// The informer keeps an index of the ranges, which agrees with the cache at any
// moment and has them read when a Network changes, not when a block is taken.
// Who takes one sorts them and walks to the first gap: with 10,000 Networks that
// is a millisecond or two, as the create is that follows.
//
// A promise holds from before the create until the cache has the Network. It is
// of this process alone: a leader that follows before its own watch has shown
// the last Networks of the one before may give a range once more.
type pool struct {
	cidr     netip.Prefix
	networks cache.Indexer
	enqueue  func(cache.ObjectName)
	clock    clock.PassiveClock

	mu       sync.Mutex
	promised map[cache.ObjectName][]netip.Prefix
	since    map[cache.ObjectName]time.Time // of the last promise
	// waiting are those who found nothing since something went.
	waiting sets.Set[cache.ObjectName]
}

const poolIndex = "samplecrd.k8s.io/deployment-cidr-pool"

// newPool returns a pool that enqueues who waits for a block when there may be one.
func newPool(cidr netip.Prefix, networks cache.SharedIndexInformer, enqueue func(cache.ObjectName)) (*pool, error) {
	p := &pool{
		cidr: cidr, networks: networks.GetIndexer(), enqueue: enqueue,
		promised: map[cache.ObjectName][]netip.Prefix{}, since: map[cache.ObjectName]time.Time{},
		waiting: sets.New[cache.ObjectName](), clock: clock.RealClock{},
	}
	if _, there := networks.GetIndexer().GetIndexers()[poolIndex]; there {
		return p, nil // by an earlier controller of this process, for the same pool
	}
	return p, networks.AddIndexers(cache.Indexers{poolIndex: p.index})
}

// index returns what the Network covers of the pool.
func (p *pool) index(obj any) ([]string, error) {
	covered := sets.New[string]()
	for _, r := range ranges(obj.(*samplecrdv1.Network)) {
		if r.Overlaps(p.cidr) {
			covered.Insert(encode(inBlocks(r)))
		}
	}
	return covered.UnsortedList(), nil
}

// ranges are the subnets of a Network, those declared and those that are there.
func ranges(network *samplecrdv1.Network) []netip.Prefix {
	texts := []string{network.Spec.CIDR}
	for _, s := range network.Spec.AdditionalSubnets {
		texts = append(texts, s.CIDR)
	}
	for _, s := range network.Status.Subnets {
		texts = append(texts, s.CIDR)
	}
	var found []netip.Prefix
	for _, text := range texts {
		if r, err := netip.ParsePrefix(text); err == nil {
			found = append(found, r.Masked())
		}
	}
	return found
}

// inBlocks widens a range that is narrower than a block.
func inBlocks(r netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(r.Addr(), min(r.Bits(), blockBits(r.Addr()))).Masked()
}

// encode writes ranges so that in the order of the texts they stand in the order
// of their addresses.
func encode(r netip.Prefix) string {
	bytes, _ := r.MarshalBinary() // never fails
	return string(bytes)
}

func decode(text string) (r netip.Prefix) {
	_ = r.UnmarshalBinary([]byte(text)) // as encode has written it
	return r
}

// take promises the first free block.
func (p *pool) take(name cache.ObjectName) (netip.Prefix, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// When many wait, the first to find nothing has looked for those who come
	// after it. Who comes again, or has a promise, looks itself.
	if len(p.waiting) == 0 || p.waiting.Has(name) || len(p.promised[name]) > 0 {
		if block, found := p.firstFree(name); found {
			p.waiting.Delete(name)
			p.remember(name, block)
			return block, nil
		}
	}
	p.waiting.Insert(name)
	return netip.Prefix{}, fmt.Errorf("no /%d is free in the CIDR pool %s: waiting for a Network to go; or name a CIDR in the annotation %s",
		blockBits(p.cidr.Addr()), p.cidr, samplecrdv1.AnnotationNetwork)
}

// firstFree looks for a block for name, whose own promises are no hindrance.
func (p *pool) firstFree(name cache.ObjectName) (netip.Prefix, bool) {
	taken := p.networks.ListIndexFuncValues(poolIndex)
	for other, promised := range p.promised {
		if other == name {
			continue
		}
		for _, r := range promised {
			taken = append(taken, encode(r))
		}
	}
	slices.Sort(taken)
	free := p.cidr.Addr()
	for _, text := range taken {
		r := decode(text)
		if free.Less(r.Addr()) {
			break
		}
		if r.Contains(free) {
			free = lastAddress(r).Next() // the zero Addr behind the last of all
		}
	}
	return netip.PrefixFrom(free, blockBits(p.cidr.Addr())), p.cidr.Contains(free)
}

func lastAddress(cidr netip.Prefix) netip.Addr {
	bytes := cidr.Addr().AsSlice()
	for bit := cidr.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// promise keeps others away from a range that is about to be written.
func (p *pool) promise(name cache.ObjectName, r netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.Delete(name)
	if r.Overlaps(p.cidr) {
		p.remember(name, inBlocks(r))
	}
}

// remember adds to what was promised before: until the cache shows what came of
// a write, it may be either.
func (p *pool) remember(name cache.ObjectName, r netip.Prefix) {
	if !slices.Contains(p.promised[name], r) {
		p.promised[name] = append(p.promised[name], r)
	}
	p.since[name] = p.clock.Now()
}

// patience is how long a cache may take to show what was written.
const patience = time.Minute

// stillPromised tells how long the cache still has to show a Network that was
// made with a promise.
func (p *pool) stillPromised(name cache.ObjectName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.promised[name]) == 0 {
		return 0
	}
	return patience - p.clock.Since(p.since[name])
}

// settle ends the promises to name: the cache has what came of them, or nothing
// did.
func (p *pool) settle(name cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.Delete(name)
	if _, found := p.promised[name]; found {
		delete(p.promised, name)
		delete(p.since, name)
		p.wakeLocked()
	}
}

// wake has all who wait try again. The cache must have lost the range before.
func (p *pool) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wakeLocked()
}

func (p *pool) wakeLocked() {
	for name := range p.waiting {
		p.enqueue(name)
	}
	clear(p.waiting)
}
