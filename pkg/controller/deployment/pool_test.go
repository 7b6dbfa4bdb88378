package deployment

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

func TestParsePool(t *testing.T) {
	tests := map[string]struct {
		text string
		want string // of the error; empty for none
	}{
		"the default":          {text: "10.128.0.0/9"},
		"one block":            {text: "10.128.0.0/24"},
		"IPv6":                 {text: "fd00:1::/48"},
		"one block of IPv6":    {text: "fd00:1::/64"},
		"no CIDR":              {text: "10.128.0.0", want: "must be a CIDR"},
		"nothing":              {text: "", want: "must be a CIDR"},
		"IPv4 in IPv6":         {text: "::ffff:10.0.0.0/104", want: "must be a CIDR"},
		"host bits":            {text: "10.129.0.0/9", want: "no host bits: 10.128.0.0/9"},
		"less than a block":    {text: "10.128.0.0/25", want: "a /24 or wider"},
		"less than one (IPv6)": {text: "fd00::/65", want: "a /64 or wider"},
		"loopback":             {text: "127.0.0.0/8", want: "hosts may have"},
		"multicast":            {text: "ff00::/16", want: "hosts may have"},
		"everything":           {text: "0.0.0.0/0", want: "hosts may have"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePool(tc.text)
			switch {
			case tc.want == "" && (err != nil || got.String() != tc.text):
				t.Errorf("got %v, %v", got, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// newTestPool returns a pool over an informer that nobody starts, and who is woken.
func newTestPool(t tb, cidr string) (*pool, *[]string) {
	t.Helper()
	woken := &[]string{}
	informer := cache.NewSharedIndexInformer(nil, &samplecrdv1.Network{}, 0, cache.Indexers{})
	p, err := newPool(netip.MustParsePrefix(cidr), informer, func(name cache.ObjectName) { *woken = append(*woken, name.Name) })
	if err != nil {
		t.Fatal(err)
	}
	return p, woken
}

func nameOf(n int) cache.ObjectName {
	return cache.ObjectName{Namespace: "default", Name: fmt.Sprintf("d%d", n)}
}

func TestThoseWhoWaitAreWoken(t *testing.T) {
	p, woken := newTestPool(t, "10.128.0.0/24")
	take := func(n int, want bool) {
		t.Helper()
		if block, err := p.take(nameOf(n)); (err == nil) != want {
			t.Errorf("d%d has %v, %v; want one: %t", n, block, err, want)
		}
	}
	wants := func(what string, names ...string) {
		t.Helper()
		slices.Sort(*woken)
		if !slices.Equal(*woken, names) {
			t.Errorf("%s wakes %v, want %v", what, *woken, names)
		}
		*woken = nil
	}
	take(0, true)
	take(0, true) // again the same
	take(1, false)
	take(2, false)
	wants("nothing")
	p.settle(nameOf(0))
	wants("a promise that ended", "d1", "d2")
	take(2, true)
	take(1, false)
	take(3, false)
	p.settle(nameOf(3))
	wants("one who waits no more")
	p.wake()
	wants("a Network that went", "d1")
	p.wake()
	wants("one more")
	// Nobody has told that this range is free: who comes again finds out.
	take(1, false)
	take(3, false)
	delete(p.promised, nameOf(2))
	take(4, false)
	take(3, true)
	take(3, true) // though others wait
}

// model is the pool said in the simplest way: a list of blocks, and a look at
// everything for each.
type model struct {
	blocks   []netip.Prefix
	networks map[int][]netip.Prefix
	promised map[int][]netip.Prefix
}

func (m model) firstFree(name int) (netip.Prefix, bool) {
	i := slices.IndexFunc(m.blocks, func(block netip.Prefix) bool {
		for _, has := range m.networks {
			if slices.ContainsFunc(has, block.Overlaps) {
				return false
			}
		}
		for other, has := range m.promised {
			if other != name && slices.ContainsFunc(has, block.Overlaps) {
				return false
			}
		}
		return true
	})
	if i < 0 {
		return netip.Prefix{}, false
	}
	return m.blocks[i], true
}

// TestThePoolIsAsItsModel draws what happens to a pool of 16 blocks, with
// Networks in it, across it and beside it, and compares each block taken.
func TestThePoolIsAsItsModel(t *testing.T) {
	pools := map[string]struct {
		cidr   string
		around string // what ranges of Networks are drawn from
	}{
		"IPv4":               {"10.128.16.0/20", "10.128.0.0/18"},
		"the end of IPv4":    {"255.255.240.0/20", "255.255.192.0/18"},
		"IPv6":               {"fd00:0:0:10::/60", "fd00::/58"},
		"the end of all IPs": {"ffff:ffff:ffff:fff0::/60", "ffff:ffff:ffff:ffc0::/58"},
	}
	for name, tc := range pools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p, _ := newTestPool(t, tc.cidr)
				around := netip.MustParsePrefix(tc.around)
				m := model{networks: map[int][]netip.Prefix{}, promised: map[int][]netip.Prefix{}}
				for block := netip.PrefixFrom(p.cidr.Addr(), p.cidr.Bits()+4); p.cidr.Contains(block.Addr()); {
					m.blocks = append(m.blocks, block)
					block = netip.PrefixFrom(lastAddress(block).Next(), block.Bits())
				}
				draw := func(t *rapid.T) netip.Prefix {
					bytes := around.Addr().AsSlice()
					at := (p.cidr.Bits() + 4) / 8 // the byte that ends a block, or the one behind it
					for i := around.Bits(); i < (at+1)*8; i++ {
						if rapid.Bool().Draw(t, "bit") {
							bytes[i/8] |= 1 << (7 - i%8)
						}
					}
					a, _ := netip.AddrFromSlice(bytes)
					return netip.PrefixFrom(a, rapid.IntRange(around.Bits(), (at+1)*8).Draw(t, "bits"))
				}
				names := rapid.IntRange(0, 19)
				t.Repeat(map[string]func(*rapid.T){
					"a Network appears": func(t *rapid.T) {
						n, spec, more, status := names.Draw(t, "name"), draw(t), draw(t), draw(t)
						err := p.networks.Update(newNetwork(calledNetwork(nameOf(n).Name), withCIDR(spec.String()), func(n *samplecrdv1.Network) {
							n.Spec.AdditionalSubnets = []samplecrdv1.Subnet{{CIDR: "no CIDR"}, {CIDR: more.String()}}
							n.Status.Subnets = []samplecrdv1.SubnetStatus{{CIDR: status.String()}}
						}))
						if err != nil {
							t.Fatal(err)
						}
						m.networks[n] = []netip.Prefix{spec, more, status}
						p.wake()
					},
					"a Network goes": func(t *rapid.T) {
						n := names.Draw(t, "name")
						if err := p.networks.Delete(newNetwork(calledNetwork(nameOf(n).Name))); err != nil {
							t.Fatal(err)
						}
						delete(m.networks, n)
						p.wake()
					},
					"a block is taken": func(t *rapid.T) {
						n := names.Draw(t, "name")
						want, found := m.firstFree(n)
						got, err := p.take(nameOf(n))
						if (err == nil) != found || found && got != want {
							t.Fatalf("d%d has %v, %v; want %v, %t", n, got, err, want, found)
						}
						if found {
							m.promised[n] = append(m.promised[n], got)
						}
					},
					"a range is written": func(t *rapid.T) {
						n, r := names.Draw(t, "name"), draw(t)
						p.promise(nameOf(n), r)
						m.promised[n] = append(m.promised[n], r)
					},
					"it is settled": func(t *rapid.T) {
						n := names.Draw(t, "name")
						p.settle(nameOf(n))
						delete(m.promised, n)
					},
				})
			})
		})
	}
}

func TestABlockIsPromisedOnce(t *testing.T) {
	p, _ := newTestPool(t, "10.128.0.0/9")
	blocks := make([]netip.Prefix, 50)
	var takers sync.WaitGroup
	for i := range blocks {
		takers.Go(func() { blocks[i], _ = p.take(nameOf(i)) })
	}
	takers.Wait()
	slices.SortFunc(blocks, netip.Prefix.Compare)
	for i, block := range blocks {
		if want := fmt.Sprintf("10.128.%d.0/24", i); block.String() != want {
			t.Errorf("block %d is %v, want %s", i, block, want)
		}
	}
}

// BenchmarkTake takes a block where 10,000 Networks are.
func BenchmarkTake(b *testing.B) {
	p, _ := newTestPool(b, "10.128.0.0/9")
	for i := range 10_000 {
		cidr := fmt.Sprintf("10.%d.%d.0/24", 128+i/256, i%256)
		if err := p.networks.Add(newNetwork(calledNetwork(nameOf(i).Name), withCIDR(cidr))); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if got, err := p.take(nameOf(-1)); err != nil || got.String() != "10.167.16.0/24" {
			b.Fatalf("got %v, %v", got, err)
		}
	}
}
