package pipeline

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	tracesDropped = metrics.NewCounter(&metrics.CounterOpts{
		Name:           "pipeline_traces_dropped_total",
		Help:           "Traces of requests that made room for newer ones.",
		StabilityLevel: metrics.ALPHA,
	})
	tracesBytes = metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "pipeline_traces_bytes",
		Help:           "About how much memory the traces of requests take, in bytes.",
		StabilityLevel: metrics.ALPHA,
	})
)

func init() { legacyregistry.MustRegister(tracesDropped, tracesBytes) }
