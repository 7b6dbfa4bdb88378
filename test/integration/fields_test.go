package integration

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each case is one spec as each version writes it, and what is said of it in
// the words of that version.
func TestRefusalsSpeakInTheFieldsOfTheClient(t *testing.T) {
	t.Parallel()
	type version struct {
		spec       string
		wantFields []string
	}
	for name, tc := range map[string]map[string]version{
		"a subnet without a CIDR": {
			"v1":       {`{"gateway":"10.0.0.1"}`, []string{"spec.cidr"}},
			"v2alpha1": {`{"subnets":[{"gateway":"10.0.0.1"}]}`, []string{"spec.subnets[0].cidr"}},
		},
		"no subnet at all": {
			"v1":       {`{}`, []string{"spec.cidr"}},
			"v2alpha1": {`{}`, []string{"spec.subnets"}},
		},
		"a CIDR that is none, and a gateway": {
			"v1":       {`{"cidr":"10.0.0.0/33","gateway":"here"}`, []string{"spec.cidr", "spec.gateway"}},
			"v2alpha1": {`{"subnets":[{"cidr":"10.0.0.0/33","gateway":"here"}]}`, []string{"spec.subnets[0].cidr", "spec.subnets[0].gateway"}},
		},
		"the second subnet overlaps the first": {
			"v1":       {`{"cidr":"10.0.0.0/16","additionalSubnets":[{"cidr":"10.0.1.0/24"}]}`, []string{"spec.additionalSubnets[0].cidr"}},
			"v2alpha1": {`{"subnets":[{"cidr":"10.0.0.0/16"},{"cidr":"10.0.1.0/24"}]}`, []string{"spec.subnets[1].cidr"}},
		},
		"a further subnet alone": {
			"v1":       {`{"additionalSubnets":[{"cidr":"10.0.1.0/24"}]}`, []string{"spec.cidr"}},
			"v2alpha1": {`{"subnets":[{"cidr":""},{"cidr":"10.0.1.0/24"}]}`, []string{"spec.subnets[0].cidr"}},
		},
		"the gateway in a pool of the third": {
			"v1": {
				`{"cidr":"10.0.0.0/24","additionalSubnets":[{"cidr":"10.0.1.0/24"},{"cidr":"10.0.2.0/24","allocationPools":[{"start":"10.0.2.1","end":"10.0.2.9"}]}]}`,
				[]string{"spec.additionalSubnets[1].allocationPools[0]"},
			},
			"v2alpha1": {
				`{"subnets":[{"cidr":"10.0.0.0/24"},{"cidr":"10.0.1.0/24"},{"cidr":"10.0.2.0/24","allocationPools":[{"start":"10.0.2.1","end":"10.0.2.9"}]}]}`,
				[]string{"spec.subnets[2].allocationPools[0]"},
			},
		},
		"what stands in both versions at one place": {
			"v1":       {`{"cidr":"10.0.0.0/24","mtu":1,"openStack":{"networkID":"x","shared":"Perhaps"}}`, []string{"spec.mtu", "spec.openStack.networkID", "spec.openStack.shared"}},
			"v2alpha1": {`{"subnets":[{"cidr":"10.0.0.0/24"}],"mtu":1,"openStack":{"networkID":"x","shared":"Perhaps"}}`, []string{"spec.mtu", "spec.openStack.networkID", "spec.openStack.shared"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for name, v := range tc {
				got := shared.send(t, request{
					method: http.MethodPost, path: shared.networks(t).path(name), header: map[string]string{"Content-Type": jsonType},
					body: `{"apiVersion":"samplecrd.k8s.io/` + name + `","kind":"Network","metadata":{"name":"bad"},"spec":` + v.spec + `}`,
				})
				if got.status != http.StatusUnprocessableEntity {
					t.Errorf("%s: got HTTP %d %s, want 422", name, got.status, got.body)
				}
				var fields []string
				for field := range got.causes(t) {
					fields = append(fields, field)
				}
				slices.Sort(fields)
				if diff := cmp.Diff(v.wantFields, fields); diff != "" {
					t.Errorf("%s: fields (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestWarningsSpeakInTheFieldsOfTheClient(t *testing.T) {
	t.Parallel()
	specs := map[string]string{
		"v1":       `{"cidr":"192.168.1.0/16","gateway":"10.0.0.1","additionalSubnets":[{"cidr":"10.9.9.9/24"}]}`,
		"v2alpha1": `{"subnets":[{"cidr":"192.168.1.0/16","gateway":"10.0.0.1"},{"cidr":"10.9.9.9/24"}]}`,
	}
	want := map[string][]string{
		"v1": {
			`spec.cidr: the host bits of "192.168.1.0/16" are ignored, the subnet is 192.168.0.0/16`,
			`spec.gateway: 10.0.0.1 is outside of the CIDR 192.168.0.0/16`,
			`spec.additionalSubnets[0].cidr: the host bits of "10.9.9.9/24" are ignored, the subnet is 10.9.9.0/24`,
		},
		"v2alpha1": {
			`spec.subnets[0].cidr: the host bits of "192.168.1.0/16" are ignored, the subnet is 192.168.0.0/16`,
			`spec.subnets[0].gateway: 10.0.0.1 is outside of the CIDR 192.168.0.0/16`,
			`spec.subnets[1].cidr: the host bits of "10.9.9.9/24" are ignored, the subnet is 10.9.9.0/24`,
		},
	}
	n := shared.networks(t)
	for version, spec := range specs {
		body := func(name string) string {
			return `{"apiVersion":"samplecrd.k8s.io/` + version + `","kind":"Network","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
		}
		for _, r := range []request{
			{method: http.MethodPost, path: n.path(version), header: map[string]string{"Content-Type": jsonType}, body: body("created-" + version)},
			{method: http.MethodPatch, path: n.path(version, "applied-"+version) + "?fieldManager=test", header: map[string]string{"Content-Type": applyPatch}, body: body("applied-" + version)},
		} {
			got := shared.send(t, r)
			if got.status != http.StatusCreated {
				t.Fatalf("%s: got HTTP %d %s", version, got.status, got.body)
			}
			if diff := cmp.Diff(want[version], got.warnings()); diff != "" {
				t.Errorf("%s %s: warnings (-want +got):\n%s", r.method, version, diff)
			}
		}
		// What is not new is not warned of again.
		again := shared.send(t, request{
			method: http.MethodPatch, path: n.path(version, "created-"+version), header: map[string]string{"Content-Type": mergePatch},
			body: `{"spec":{"mtu":1400}}`,
		})
		if got := again.warnings(); again.status != http.StatusOK || len(got) > 0 {
			t.Errorf("%s: got HTTP %d and warnings %q of a change elsewhere, want none", version, again.status, got)
		}
	}
}

func TestSelectorsAndColumns(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("one"))
	id := n.awaitReady("one").Status.NetworkID
	other := newNetwork("two")
	other.Spec.CIDR, other.Spec.Gateway = "10.0.0.0/24", ""
	n.create(other)
	n.awaitReady("two")
	const table = jsonType + ";as=Table;v=v1;g=meta.k8s.io"
	for _, version := range apiVersions {
		for selector, want := range map[string]string{
			"":                             "one 192.168.0.0/16 192.168.0.1 True, two 10.0.0.0/24 10.0.0.1 True",
			"metadata.name=two":            "two 10.0.0.0/24 10.0.0.1 True",
			"status.networkID=" + id:       "one 192.168.0.0/16 192.168.0.1 True",
			"status.networkID!=" + id:      "two 10.0.0.0/24 10.0.0.1 True",
			"metadata.namespace=elsewhere": "",
			"spec.cidr=10.0.0.0/24":        "two 10.0.0.0/24 10.0.0.1 True",
			"spec.cidr=10.0.0.0/24,metadata.name=one": "",
		} {
			r := request{method: http.MethodGet, path: n.path(version) + "?fieldSelector=" + selector, header: map[string]string{"Accept": table}}
			answer := shared.send(t, r)
			if version != "v1" && strings.Contains(selector, "spec.cidr") {
				if answer.status != http.StatusBadRequest {
					t.Errorf("%s %s: got HTTP %d, want 400: the field is only in v1", version, selector, answer.status)
				}
				continue
			}
			var got struct{ Rows []struct{ Cells []any } }
			answer.into(t, &got)
			var rows []string
			for _, row := range got.Rows {
				var cells []string
				for _, cell := range row.Cells[:4] {
					text, _ := cell.(string)
					cells = append(cells, text)
				}
				rows = append(rows, strings.Join(cells, " "))
			}
			if diff := cmp.Diff(want, strings.Join(rows, ", ")); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", version, selector, diff)
			}
		}
	}
}
