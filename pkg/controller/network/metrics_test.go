package network

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// metric returns the value of a series as it is served; 0 where it is not.
func metric(t *testing.T, series string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	name, wanted, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := []string{}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			if strings.Join(labels, ",") != wanted {
				continue
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return 0
}

func TestOperationOf(t *testing.T) {
	for request, want := range map[string]string{
		"GET /v2.0/networks":                  "list_networks",
		"GET /v2.0/networks?description=x":    "list_networks",
		"POST /v2.0/networks":                 "create_network",
		"GET /v2.0/networks/4711":             "get_network",
		"PUT /v2.0/networks/4711":             "update_network",
		"DELETE /v2.0/networks/4711":          "delete_network",
		"GET /networking/v2.0/subnets":        "list_subnets",
		"PUT /networking/v2.0/subnets/4711":   "update_subnet",
		"GET /v2.0/ports?network_id=4711":     "list_ports",
		"POST /identity/v3/auth/tokens":       "authenticate",
		"GET /identity/v3/":                   "discover",
		"GET /":                               "discover",
		"GET /v2.0/networks/networks":         "list_networks",
		"PROPFIND /v2.0/networks/4711":        "discover",
		"GET /networks/v2.0/subnets/networks": "list_networks",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := operationOf(httptest.NewRequestWithContext(t.Context(), method, path, nil)); got != want {
			t.Errorf("%s is %s, want %s", request, got, want)
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	w := newWorld(t, func(o *neutron.Options) { o.WrapTransport = Transport })
	series := []string{
		`network_controller_neutron_requests_total{code="201",operation="create_network"}`,
		`network_controller_neutron_requests_total{code="503",operation="create_network"}`,
		`network_controller_neutron_requests_total{code="0",operation="create_network"}`,
		`network_controller_neutron_request_duration_seconds{operation="create_network"}`,
	}
	before := map[string]float64{}
	for _, s := range series {
		before[s] = metric(t, s)
	}
	w.create(newNetwork())
	breakdown(http.MethodPost, "networks", answer(http.StatusServiceUnavailable, ""))(w)
	_ = w.pass()
	w.cloud.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	_ = w.pass()
	repair(w)
	w.settle()
	for i, want := range []float64{1, 1, 1, 3} {
		if got := metric(t, series[i]) - before[series[i]]; got != want {
			t.Errorf("%s grew by %v, want %v", series[i], got, want)
		}
	}
}

func TestNetworksAreCountedByCondition(t *testing.T) {
	w := newWorld(t)
	w.create(newNetwork())
	if err := w.indexer.Add(w.get()); err != nil {
		t.Fatal(err)
	}
	const unknown, ready = `network_controller_networks{ready="Unknown",reason=""}`, `network_controller_networks{ready="True",reason="Success"}`
	if a, b := metric(t, unknown), metric(t, ready); a != 1 || b != 0 {
		t.Errorf("%v are unknown and %v are ready, want 1 and 0", a, b)
	}
	w.settle()
	if err := w.indexer.Update(w.get()); err != nil {
		t.Fatal(err)
	}
	if a, b := metric(t, unknown), metric(t, ready); a != 0 || b != 1 {
		t.Errorf("%v are unknown and %v are ready, want 0 and 1", a, b)
	}
}
