package integration

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkPipeline makes the same requests to two servers that record nothing,
// the second of which shows how much one run differs from the next, and to one
// that records, with as many clients at once as load a server fully. Server and
// clients share the process: the time of the CPU is that of both.
func BenchmarkPipeline(b *testing.B) {
	for verb, do := range map[string]func(*testing.B, networks, int) error{
		"get": func(b *testing.B, n networks, _ int) error {
			_, err := n.Get(b.Context(), "declared", metav1.GetOptions{})
			return err
		},
		"create": func(b *testing.B, n networks, i int) error {
			_, err := n.Create(b.Context(), newNetwork(fmt.Sprintf("n%d", i)), metav1.CreateOptions{})
			return err
		},
	} {
		b.Run(verb, func(b *testing.B) {
			logToFile(b)
			names := []string{"off", "off-again", "on"}
			servers := map[string]networks{}
			for _, name := range names {
				flag := "--pipeline-traces=0"
				if name == "on" {
					flag = "--pipeline-traces=256"
				}
				servers[name] = newServer(b, "--controller=false", flag).networks(b)
				if _, err := servers[name].Create(b.Context(), newNetwork("declared"), metav1.CreateOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			var count, failed atomic.Int64
			total := map[string]cost{}
			for b.Loop() {
				for _, name := range names {
					before := costs()
					inParallel(func(int) {
						if err := do(b, servers[name], int(count.Add(1))); err != nil {
							failed.Add(1)
						}
					})
					total[name] = total[name].plus(costs().minus(before))
				}
			}
			made := float64(b.N * many)
			for _, name := range names {
				c := total[name]
				b.ReportMetric(made/c.wall.Seconds(), name+"-requests/s")
				b.ReportMetric(float64(c.cpu.Microseconds())/made, name+"-µs-CPU")
				b.ReportMetric(float64(c.allocations)/made, name+"-allocs")
			}
			b.ReportMetric(float64(total["on"].cpu)/float64(total["off"].cpu), "on/off")
			b.ReportMetric(float64(total["off-again"].cpu)/float64(total["off"].cpu), "off/off")
			b.ReportMetric(float64(failed.Load()), "failed")
			b.ReportMetric(0, "ns/op") // of all three, and so of none
		})
	}
}

// cost is what some requests took.
type cost struct {
	wall, cpu   time.Duration
	allocations uint64
}

// costs are those of the process so far.
func costs() cost {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return cost{
		wall:        time.Duration(time.Now().UnixNano()),
		cpu:         time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		allocations: memory.Mallocs,
	}
}

func (c cost) minus(o cost) cost {
	return cost{c.wall - o.wall, c.cpu - o.cpu, c.allocations - o.allocations}
}

func (c cost) plus(o cost) cost {
	return cost{c.wall + o.wall, c.cpu + o.cpu, c.allocations + o.allocations}
}
