package network

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	listers "github.com/samplecrd/network-apiserver/pkg/generated/listers/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

const metricsSubsystem = "network_controller"

var (
	neutronRequests = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      metricsSubsystem,
		Name:           "neutron_requests_total",
		Help:           "Number of requests to Neutron and its identity service, by operation and HTTP status code; the code is 0 where no answer came.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation", "code"})
	neutronDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      metricsSubsystem,
		Name:           "neutron_request_duration_seconds",
		Help:           "Time from a request to Neutron to the head of its answer, by operation.",
		Buckets:        []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation"})
	driftCorrections = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      metricsSubsystem,
		Name:           "drift_corrections_total",
		Help:           "Number of changes in Neutron that made a network as declared again, by operation.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation"})
	orphanNetworks = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem:      metricsSubsystem,
		Name:           "orphans",
		Help:           "Number of networks in Neutron with an owner marker of this cluster whose Network does not exist, at the last resync.",
		StabilityLevel: metrics.ALPHA,
	})

	stored = &collector{}

	registerMetrics = sync.OnceFunc(func() {
		legacyregistry.MustRegister(neutronRequests, neutronDuration, driftCorrections, orphanNetworks)
		legacyregistry.CustomMustRegister(stored)
	})
)

// countNetworks has the metrics served; Networks are counted as the lister has
// them when somebody asks.
func countNetworks(networks listers.NetworkLister) {
	registerMetrics()
	stored.networks.Store(&networks)
}

// collector counts Networks by their condition Ready.
type collector struct {
	metrics.BaseStableCollector
	networks atomic.Pointer[listers.NetworkLister]
}

var networksDesc = metrics.NewDesc(metricsSubsystem+"_networks",
	"Number of Networks by the status and the reason of their condition Ready.",
	[]string{"ready", "reason"}, nil, metrics.ALPHA, "")

func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- networksDesc }

func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	lister := c.networks.Load()
	if lister == nil {
		return
	}
	networks, err := (*lister).List(labels.Everything())
	if err != nil {
		return // a lister has none
	}
	type key struct{ ready, reason string }
	counts := map[key]int{}
	for _, n := range networks {
		k := key{string(metav1.ConditionUnknown), ""}
		if ready := meta.FindStatusCondition(n.Status.Conditions, samplecrdv1.ConditionReady); ready != nil {
			k = key{string(ready.Status), ready.Reason}
		}
		counts[k]++
	}
	for k, count := range counts {
		ch <- metrics.NewLazyConstMetric(networksDesc, metrics.GaugeValue, float64(count), k.ready, k.reason)
	}
}

// Transport is that of all clients of Neutron: the metrics come from there, and
// what is shown of the calls of a pass.
func Transport(next http.RoundTripper) http.RoundTripper {
	return counting{pipeline.CloudTransport(next)}
}

type counting struct{ http.RoundTripper }

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	operation, start, code := operationOf(r), time.Now(), 0
	answer, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		code = answer.StatusCode
	}
	neutronDuration.WithLabelValues(operation).Observe(time.Since(start).Seconds())
	neutronRequests.WithLabelValues(operation, strconv.Itoa(code)).Inc()
	return answer, err
}

var requestVerbs = map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}

// operationOf names a request as OpenStack's client does its commands. The
// path of an endpoint may be anything, so the last parts decide.
func operationOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last, parent := parts[len(parts)-1], ""
	if len(parts) > 1 {
		parent = parts[len(parts)-2]
	}
	for _, collection := range []string{"networks", "subnets", "ports"} {
		kind := "_" + strings.TrimSuffix(collection, "s")
		switch {
		case last == collection && r.Method == http.MethodGet:
			return "list" + kind + "s"
		case last == collection && r.Method == http.MethodPost, parent == collection && requestVerbs[r.Method] != "":
			return requestVerbs[r.Method] + kind
		}
	}
	if last == "tokens" {
		return "authenticate"
	}
	return "discover"
}
