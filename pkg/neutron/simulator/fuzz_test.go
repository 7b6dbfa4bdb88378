package simulator

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Any request has an answer in JSON, and it is an error of the server only where it is one in Neutron.
func FuzzServeHTTP(f *testing.F) {
	for _, seed := range [][3]string{
		{"POST", "/networks", `{"networks": [{"name": "x", "mtu": 1e9}, null]}`},
		{"POST", "/subnets", `{"subnet": {"network_id": "NET", "ip_version": 6, "cidr": "fd00::/64", "gateway_ip": "::1", "allocation_pools": [{"start": "fd00::1", "end": "fd00::9"}]}}`},
		{"POST", "/subnets", `{"subnet": {"network_id": "NET", "ip_version": 4, "cidr": "10.0.0.0/31", "enable_dhcp": "no", "host_routes": [{"destination": "0/0", "nexthop": "1.1.1.1"}]}}`},
		{"PUT", "/subnets/SUB", `{"subnet": {"gateway_ip": null, "dns_nameservers": ["::1"], "service_types": ["network:a"]}}`},
		{"POST", "/ports", `{"port": {"network_id": "NET", "fixed_ips": [{"subnet_id": "SUB", "ip_address": "10.0.0.9"}], "mac_address": "fa-16-3e-00-00-01"}}`},
		{"GET", "/ports?fixed_ips=ip_address=&limit=1&marker=x&sort_key=fixed_ips&sort_dir=asc", ""},
		{"GET", "/networks?sort_key=availability_zone_hints&sort_dir=desc&limit=2&page_reverse=TRUE&tags-any=a,b", ""},
		{"PUT", "/networks/NET/tags", `{"tags": [[], {}, null, 1.5e400]}`},
		{"PUT", "/quotas/p", `{"quota": {"network": 1e300, "port": [true]}}`},
		{"DELETE", "/networks/NET", `[`},
		{"PUT", "/routers/ROUTER/add_router_interface", `{"subnet_id": "SUB"}`},
		{"POST", "/subnets", `{"subnet": {"network_id": "NET", "ip_version": 6, "enable_dhcp": false, "gateway_ip": null, "cidr": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "allocation_pools": [{"start": "::1", "end": "::1"}]}}`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		server := handler{s}
		net := server.create(t, "networks", `{"network": {}}`)
		sub := server.create(t, "subnets", `{"subnet": {"network_id": "`+net+`", "ip_version": 4, "cidr": "10.0.0.0/24"}}`)
		router := server.create(t, "routers", `{"router": {}}`)
		ids := strings.NewReplacer("NET", net, "SUB", sub, "ROUTER", router)
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/v2.0"+ids.Replace(path), strings.NewReader(ids.Replace(body)))
		if err != nil {
			return
		}
		status, text := server.answer(r)
		if status == http.StatusNoContent {
			return
		}
		if status >= 500 && !failsInNeutron(r.URL.Path, body) || !json.Valid(text) && status != http.StatusNotFound {
			t.Errorf("%s %s %s answered %d %s", method, path, body, status, text)
		}
	})
}

// failsInNeutron is true for a CIDR that is no string and a quota that is no object.
func failsInNeutron(path, body string) bool {
	return strings.Contains(path, "subnets") && strings.Contains(body, "cidr") || strings.Contains(path, "quotas")
}

type handler struct{ *Simulator }

func (h handler) answer(r *http.Request) (status int, body []byte) {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	text, _ := io.ReadAll(recorder.Result().Body)
	return recorder.Code, text
}

func (h handler) create(t *testing.T, collection, body string) string {
	t.Helper()
	_, text := h.answer(request(t, http.MethodPost, "http://127.0.0.1/v2.0/"+collection, body))
	var answer map[string]struct{ ID string }
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return answer[strings.TrimSuffix(collection, "s")].ID
}
