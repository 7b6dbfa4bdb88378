package pipeline_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// newNetwork is a body in v1, of a name and with more of its metadata and spec.
func newNetwork(name, metadata, spec string) string {
	return fmt.Sprintf("{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: %s%s}, spec: {cidr: 192.168.0.0/16%s}}", name, metadata, spec)
}

// calledBy are the stages a request went through, by the spies. What a patch does
// with the stored object is one step.
func (s *server) calledBy(id string) []string {
	called := s.of(id)
	merge := slices.Index(called, pipeline.Merge)
	if merge < 0 || slices.Index(called[:merge], pipeline.Decode) >= 0 {
		return called
	}
	inMerge := []string{pipeline.Decode, pipeline.Defaulting, pipeline.ConversionToHub}
	return slices.DeleteFunc(called, func(name string) bool { return slices.Contains(inMerge, name) })
}

func TestStagesStandInTheOrderOfTheCalls(t *testing.T) {
	for name, watchCache := range map[string]bool{"etcd alone": false, "with the watch cache": true} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, options{watchCache: watchCache})
			const (
				put    = "PUT " + v1 + "/a"
				patch  = "PATCH " + v1 + "/a"
				applyB = "PATCH " + v1 + "/b?fieldManager=test"
			)
			for _, step := range []struct {
				name string
				call call
				want string // in this order, among others
			}{
				{"create", call{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")},
					"Decode Defaulting ConversionToHub MutatingAdmission Strategy Validation ValidatingAdmission StorageEncoding Etcd ConversionFromHub Encoding"},
				{"dry run", call{request: "POST " + v1 + "?dryRun=All", contentType: yamlType, body: newNetwork("dry", "", "")},
					"MutatingAdmission Strategy Validation ValidatingAdmission"},
				{"get", call{request: "GET " + v1 + "/a"}, "Etcd ConversionFromHub Encoding"},
				{"get of any age", call{request: "GET " + v1 + "/a?resourceVersion=0"}, "ConversionFromHub Encoding"},
				{"list", call{request: "GET " + v1}, "Etcd ConversionFromHub Encoding"},
				{"list of any age", call{request: "GET " + v1 + "?resourceVersion=0"}, "ConversionFromHub Encoding"},
				{"update", call{request: put, contentType: yamlType, body: newNetwork("a", ", resourceVersion: 'VERSION'", ", mtu: 1400")},
					"Decode Defaulting ConversionToHub Merge MutatingAdmission Strategy Validation ValidatingAdmission StorageEncoding Etcd ConversionFromHub Encoding"},
				{"merge patch", call{request: patch, contentType: merge, body: `{"spec":{"mtu":1300}}`},
					"Merge MutatingAdmission Strategy Validation ValidatingAdmission StorageEncoding Etcd ConversionFromHub Encoding"},
				{"JSON patch", call{request: patch, contentType: jsonPatch, body: `[{"op":"replace","path":"/spec/mtu","value":1200}]`},
					"Merge MutatingAdmission Strategy Validation ValidatingAdmission StorageEncoding Etcd ConversionFromHub Encoding"},
				{"patch that changes nothing", call{request: patch, contentType: merge, body: `{"spec":{"mtu":1200}}`},
					"Merge MutatingAdmission Strategy Validation ValidatingAdmission StorageEncoding ConversionFromHub Encoding"},
				{"apply that creates", call{request: applyB, contentType: apply, body: newNetwork("b", "", "")},
					"Merge MutatingAdmission Strategy Validation Authorization ValidatingAdmission StorageEncoding Etcd ConversionFromHub Encoding"},
				{"apply", call{request: applyB, contentType: apply, body: newNetwork("b", "", ", mtu: 1300")},
					"Merge MutatingAdmission Strategy Validation ValidatingAdmission StorageEncoding Etcd ConversionFromHub Encoding"},
				{"status", call{request: "PATCH " + v1 + "/a/status", contentType: merge, body: `{"status":{"networkID":"x"}}`},
					"Merge MutatingAdmission Strategy Validation ValidatingAdmission StorageEncoding Etcd ConversionFromHub Encoding"},
				{"delete that waits for a finalizer", call{request: "DELETE " + v1 + "/a"},
					"ValidatingAdmission Strategy StorageEncoding Etcd ConversionFromHub Encoding"},
				{"delete all", call{request: "DELETE " + v1 + "?labelSelector=mutated"},
					"ValidatingAdmission Strategy StorageEncoding Etcd ConversionFromHub Encoding"},
				{"last finalizer goes", call{request: patch, contentType: merge, body: `{"metadata":{"finalizers":[]}}`},
					"Merge MutatingAdmission Strategy Validation ValidatingAdmission Etcd ConversionFromHub Encoding"},
			} {
				r, answer := s.do(t, step.call)
				if r.Response.Code >= http.StatusBadRequest || r.Response.StoppedAt != "" {
					t.Errorf("%s: stopped at %q: %s", step.name, r.Response.StoppedAt, answer)
				}
				shown := names(r.Stages())
				if diff := cmp.Diff(s.calledBy(r.AuditID), shown); diff != "" {
					t.Errorf("%s: unexpected stages (-called +shown):\n%s", step.name, diff)
				}
				if !inOrder(strings.Fields("Authentication Audit Impersonation Authorization Mux "+step.want), shown) {
					t.Errorf("%s: got %v, want %s", step.name, shown, step.want)
				}
			}
		})
	}
}

func TestAWatchIsToldOfAWrite(t *testing.T) {
	for name, watchCache := range map[string]bool{"etcd alone": false, "with the watch cache": true} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, options{watchCache: watchCache})
			watching := s.send(t, call{request: "GET " + v1 + "?watch=true&resourceVersion=1", header: http.Header{"User-Agent": {"reader"}}})
			defer watching.Body.Close()
			write, answer := s.do(t, call{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")})
			if write.Response.Code != http.StatusCreated {
				t.Fatal(answer)
			}
			var event metav1.WatchEvent
			if err := json.NewDecoder(watching.Body).Decode(&event); err != nil {
				t.Fatal(err)
			}
			if event.Type != "ADDED" {
				t.Errorf("got a %s event", event.Type)
			}
			watching.Body.Close()
			r := s.trace(t, watching.Header.Get(auditinternal.HeaderAuditID))
			if diff := cmp.Diff(s.calledBy(r.AuditID), names(r.Stages())); diff != "" {
				t.Errorf("unexpected stages of the watch (-called +shown):\n%s", diff)
			}
			if diff := cmp.Diff([]pipeline.Detail{{Name: "ADDED", Value: "1"}}, stage(t, r, pipeline.Watch).Details); diff != "" {
				t.Errorf("unexpected events (-want +got):\n%s", diff)
			}

			s.wait(t, "delivery", func() bool { return slices.Contains(names(s.recorder.Get(write.Name).Stages()), pipeline.Watch) })
			delivery := stage(t, s.recorder.Get(write.Name), pipeline.Watch)
			want := pipeline.Stage{
				Name: pipeline.Watch, Subject: "ADDED to " + r.User.Name, Outcome: pipeline.Passed, Start: delivery.Start, Duration: pipeline.Unknown,
				Details: []pipeline.Detail{{Name: "watch", Value: r.Name}, {Name: "client", Value: "reader"}, {Name: "revision", Value: write.Object.Version}},
			}
			if diff := cmp.Diff(want, delivery); diff != "" {
				t.Errorf("unexpected delivery (-want +got):\n%s", diff)
			}
		})
	}
}

// A watch over a WebSocket takes the connection away from the server, which then
// writes no answer that could be noted.
func TestAWatchOverAWebSocket(t *testing.T) {
	s := startServer(t, options{})
	watching := s.send(t, call{request: "GET " + v1 + "?watch=true&resourceVersion=1", header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Origin": {s.url},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="},
	}})
	id := s.current
	defer watching.Body.Close()
	if watching.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the server answers %s", watching.Status)
	}
	if write, answer := s.do(t, call{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")}); write.Response.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	for event, part := "", make([]byte, 1024); !strings.Contains(event, `"type":"ADDED"`); {
		n, err := watching.Body.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		event += string(part[:n])
	}
	watching.Body.Close()
	r := s.trace(t, id)
	if diff := cmp.Diff(pipeline.Response{Code: http.StatusSwitchingProtocols, ContentType: jsonType, Duration: r.Response.Duration}, r.Response); diff != "" {
		t.Errorf("unexpected answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]pipeline.Detail{{Name: "ADDED", Value: "1"}}, stage(t, r, pipeline.Watch).Details); diff != "" {
		t.Errorf("unexpected events (-want +got):\n%s", diff)
	}
}

// inOrder tells that all of want are in got, in their order.
func inOrder(want, got []string) bool {
	for _, name := range got {
		if len(want) > 0 && want[0] == name {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func TestRefusals(t *testing.T) {
	s := startServer(t, options{})
	for _, c := range []call{
		{request: "POST " + v1, contentType: yamlType, body: newNetwork("there", "", "")},
		{request: "PATCH " + v1 + "/owned?fieldManager=one", contentType: apply, body: newNetwork("owned", "", ", mtu: 1400")},
	} {
		if r, answer := s.do(t, c); r.Response.Code != http.StatusCreated {
			t.Fatalf("%s: %s", c.request, answer)
		}
	}
	for name, tc := range map[string]struct {
		call        call
		code        int
		stoppedAt   string
		wantErrors  []string
		wantMessage string
	}{
		"nobody":             {call: call{request: "GET " + v1, header: http.Header{"Authorization": {"Bearer wrong"}}}, code: 401, stoppedAt: pipeline.Authentication},
		"not allowed":        {call: call{request: "GET " + v1 + "/forbidden"}, code: 403, stoppedAt: pipeline.Authorization, wantMessage: "by the test"},
		"no such resource":   {call: call{request: "GET " + strings.Replace(v1, "networks", "nets", 1)}, code: 404, stoppedAt: pipeline.Mux},
		"no such version":    {call: call{request: "GET " + strings.Replace(v1, "v1", "v9", 1)}, code: 404, stoppedAt: pipeline.Mux},
		"no such verb":       {call: call{request: "POST " + v1 + "/there"}, code: 405, stoppedAt: pipeline.Mux},
		"no JSON":            {call: call{request: "POST " + v1, contentType: jsonType, body: "{"}, code: 400, stoppedAt: pipeline.Decode, wantMessage: "unexpected end of JSON input"},
		"a wrong type":       {call: call{request: "POST " + v1, contentType: jsonType, body: `{"spec":{"mtu":"big"}}`}, code: 400, stoppedAt: pipeline.Decode, wantMessage: "mtu"},
		"another kind":       {call: call{request: "POST " + v1, contentType: yamlType, body: "{apiVersion: v1, kind: Secret}"}, code: 400, stoppedAt: pipeline.Decode, wantMessage: "Secret"},
		"another version":    {call: call{request: "POST " + v1, contentType: yamlType, body: "{apiVersion: samplecrd.k8s.io/v2alpha1, kind: Network}"}, code: 400, stoppedAt: pipeline.Decode, wantMessage: "v2alpha1"},
		"an unknown field":   {call: call{request: "POST " + v1 + "?fieldValidation=Strict", contentType: yamlType, body: newNetwork("x", "", ", colour: red")}, code: 400, stoppedAt: pipeline.Decode, wantErrors: []string{`unknown field "spec.colour"`}},
		"a strange type":     {call: call{request: "POST " + v1, contentType: "text/plain", body: "x"}, code: 415, stoppedAt: pipeline.Decode},
		"mutating plugin":    {call: call{request: "POST " + v1, contentType: yamlType, body: newNetwork("x", ", labels: {refuse: mutator}", "")}, code: 403, stoppedAt: pipeline.MutatingAdmission, wantMessage: "the mutator"},
		"validating plugin":  {call: call{request: "POST " + v1, contentType: yamlType, body: newNetwork("x", ", labels: {refuse: validator}", "")}, code: 403, stoppedAt: pipeline.ValidatingAdmission, wantMessage: "the validator"},
		"invalid":            {call: call{request: "POST " + v1, contentType: yamlType, body: newNetwork("X", "", ", mtu: 1, adminState: Sideways")}, code: 422, stoppedAt: pipeline.Validation, wantErrors: []string{"metadata.name", "spec.mtu", "spec.adminState"}},
		"it exists":          {call: call{request: "POST " + v1, contentType: yamlType, body: newNetwork("there", "", "")}, code: 409, stoppedAt: pipeline.Etcd, wantMessage: "there already"},
		"nothing to get":     {call: call{request: "GET " + v1 + "/gone"}, code: 404, stoppedAt: pipeline.Etcd},
		"nothing to delete":  {call: call{request: "DELETE " + v1 + "/gone"}, code: 404, stoppedAt: pipeline.Etcd},
		"nothing to update":  {call: call{request: "PUT " + v1 + "/gone", contentType: yamlType, body: newNetwork("gone", ", resourceVersion: '1'", "")}, code: 404, stoppedAt: pipeline.Etcd},
		"nothing to patch":   {call: call{request: "PATCH " + v1 + "/gone", contentType: merge, body: "{}"}, code: 404, stoppedAt: pipeline.Etcd},
		"stale update":       {call: call{request: "PUT " + v1 + "/there", contentType: yamlType, body: newNetwork("there", ", resourceVersion: '1'", "")}, code: 409, stoppedAt: pipeline.Merge},
		"stale dry run":      {call: call{request: "PUT " + v1 + "/there?dryRun=All", contentType: yamlType, body: newNetwork("there", ", resourceVersion: '1'", "")}, code: 409, stoppedAt: pipeline.Merge},
		"dry run, it exists": {call: call{request: "POST " + v1 + "?dryRun=All", contentType: yamlType, body: newNetwork("there", "", "")}, code: 409, stoppedAt: pipeline.Etcd},
		"update, refused":    {call: call{request: "PATCH " + v1 + "/there", contentType: merge, body: `{"metadata":{"labels":{"refuse":"mutator"}}}`}, code: 403, stoppedAt: pipeline.MutatingAdmission},
		"update, not valid":  {call: call{request: "PATCH " + v1 + "/there", contentType: merge, body: `{"spec":{"mtu":1}}`}, code: 422, stoppedAt: pipeline.Validation, wantErrors: []string{"spec.mtu"}},
		"update, judged":     {call: call{request: "PATCH " + v1 + "/there", contentType: merge, body: `{"metadata":{"labels":{"refuse":"validator"}}}`}, code: 403, stoppedAt: pipeline.ValidatingAdmission},
		"a bad parameter":    {call: call{request: "GET " + v1 + "?fieldSelector=spec.colour%3Dred"}, code: 400, stoppedAt: pipeline.Decode, wantMessage: "spec.colour"},
		"no patch":           {call: call{request: "PATCH " + v1 + "/there", contentType: merge, body: "{"}, code: 400, stoppedAt: pipeline.Decode},
		"patch without fit":  {call: call{request: "PATCH " + v1 + "/there", contentType: jsonPatch, body: `[{"op":"test","path":"/spec/mtu","value":1}]`}, code: 422, stoppedAt: pipeline.Merge},
		"apply conflict":     {call: call{request: "PATCH " + v1 + "/owned?fieldManager=two", contentType: apply, body: newNetwork("owned", "", ", mtu: 1300")}, code: 409, stoppedAt: pipeline.Merge},
		"apply may not make": {call: call{request: "PATCH " + v1 + "/not-to-create?fieldManager=two", contentType: apply, body: newNetwork("not-to-create", "", "")}, code: 403, stoppedAt: pipeline.Authorization},
	} {
		t.Run(name, func(t *testing.T) {
			r, answer := s.do(t, tc.call)
			if r.Response.Code != tc.code || r.Response.StoppedAt != tc.stoppedAt {
				t.Errorf("got %d, stopped at %q, want %d at %s: %s", r.Response.Code, r.Response.StoppedAt, tc.code, tc.stoppedAt, answer)
			}
			stages := r.Stages()
			t.Log(names(stages), r.Response.Message)
			at := slices.IndexFunc(stages, func(s pipeline.Stage) bool { return s.Outcome == pipeline.Refused })
			if at < 0 {
				t.Fatalf("none of %v refused", names(stages))
			}
			refused := stages[at]
			if refused.Name != tc.stoppedAt {
				t.Errorf("%s refused, want %s", refused.Name, tc.stoppedAt)
			}
			if !strings.Contains(refused.Message, tc.wantMessage) {
				t.Errorf("got the message %q, want %q in it", refused.Message, tc.wantMessage)
			}
			if len(refused.Errors) != len(tc.wantErrors) || slices.ContainsFunc(tc.wantErrors, func(want string) bool { return !strings.Contains(strings.Join(refused.Errors, "\n"), want) }) {
				t.Errorf("got the errors %q, want %q", refused.Errors, tc.wantErrors)
			}
			// To word its error the library may read what is stored.
			for _, later := range names(stages[at+1:]) {
				if later != pipeline.Encoding && (later != pipeline.Etcd || refused.Name != pipeline.Etcd) {
					t.Errorf("%s comes after the stage that refused", later)
				}
			}
		})
	}
}

// stage returns the first stage of a name.
func stage(t *testing.T, r *pipeline.Record, name string) pipeline.Stage {
	t.Helper()
	stages := r.Stages()
	i := slices.IndexFunc(stages, func(s pipeline.Stage) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no %s in %v", name, names(stages))
	}
	return stages[i]
}

func TestObjectsOfACreate(t *testing.T) {
	s := startServer(t, options{})
	r, answer := s.do(t, call{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")})
	if r.Response.Code != http.StatusCreated {
		t.Fatal(answer)
	}

	defaulting := stage(t, r, pipeline.Defaulting)
	before, after := defaulting.Before.(*samplecrdv1.Network), defaulting.After.(*samplecrdv1.Network)
	if before.Spec.DHCP != "" || after.Spec.DHCP != samplecrdv1.Enabled {
		t.Errorf("defaulting makes dhcp %q of %q", after.Spec.DHCP, before.Spec.DHCP)
	}
	conversion := stage(t, r, pipeline.ConversionToHub)
	if diff := cmp.Diff(after, conversion.Before); diff != "" {
		t.Errorf("conversion does not begin with what was filled in (-want +got):\n%s", diff)
	}
	if hub := conversion.After.(*samplecrd.Network); len(hub.Spec.Subnets) != 1 || hub.Spec.Subnets[0].CIDR != "192.168.0.0/16" {
		t.Errorf("conversion makes the subnets %v", hub.Spec.Subnets)
	}
	mutating := stage(t, r, pipeline.MutatingAdmission)
	if before, after := mutating.Before.(*samplecrd.Network), mutating.After.(*samplecrd.Network); len(before.Labels) > 0 || after.Labels["mutated"] != "true" || mutating.Subject != "Labeler" {
		t.Errorf("%s makes the labels %v of %v", mutating.Subject, after.Labels, before.Labels)
	}
	strategy := stage(t, r, pipeline.Strategy)
	{
		before, after := strategy.Before.(*samplecrd.Network), strategy.After.(*samplecrd.Network)
		if before.UID != "" || len(before.Finalizers) > 0 || before.Generation != 0 || before.Labels["mutated"] != "true" {
			t.Errorf("the strategy begins with %+v", before.ObjectMeta)
		}
		if after.UID == "" || len(after.Finalizers) != 1 || after.Generation != 1 {
			t.Errorf("the strategy makes %+v", after.ObjectMeta)
		}
	}
	encoding := stage(t, r, pipeline.StorageEncoding)
	if _, isHub := encoding.Before.(*samplecrd.Network); !isHub {
		t.Errorf("a %T is encoded", encoding.Before)
	}
	if stored, isV1 := encoding.After.(*samplecrdv1.Network); !isV1 || stored.Spec.CIDR != "192.168.0.0/16" {
		t.Errorf("a %T is stored", encoding.After)
	}
}

func TestAnswersAreInTheVersionOfTheRequest(t *testing.T) {
	s := startServer(t, options{})
	for _, c := range []call{
		{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", "", "")},
		{request: "GET " + v2 + "/a"},
		{request: "POST " + v2, contentType: yamlType, body: "{apiVersion: samplecrd.k8s.io/v2alpha1, kind: Network, metadata: {name: b}, spec: {subnets: [{cidr: 10.0.0.0/24}]}}"},
		{request: "GET " + v1 + "/b"},
		{request: "PATCH " + v2 + "/a", contentType: merge, body: `{"spec":{"mtu":1400}}`},
		{request: "DELETE " + v2 + "/a"},
	} {
		r, answer := s.do(t, c)
		if r.Response.Code >= http.StatusBadRequest {
			t.Fatalf("%s: %s", c.request, answer)
		}
		version := ""
		var uid any
		switch after := stage(t, r, pipeline.ConversionFromHub).After.(type) {
		case *samplecrdv1.Network:
			version, uid = "v1", after.UID
		case *samplecrdv2alpha1.Network:
			version, uid = "v2alpha1", after.UID
		}
		if version != r.Request.Version || uid == "" {
			t.Errorf("%s: the answer is in %q", c.request, version)
		}
	}
}
