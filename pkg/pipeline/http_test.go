package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// told is all that can be had of a record.
func told(t *testing.T, r *pipeline.Record) string {
	t.Helper()
	stages := r.Stages()
	for _, p := range r.Passes {
		stages = append(stages, p.Stages...)
	}
	all := fmt.Sprintf("%+v\n%+v\n", r, stages)
	for _, s := range stages {
		for _, obj := range []any{s.Before, s.After} {
			text, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			all += string(text) + "\n"
		}
	}
	return all
}

func TestSecretsAreNotShown(t *testing.T) {
	s := startServer(t, options{})
	if r, answer := s.do(t, call{request: "POST " + v1, contentType: yamlType, body: newNetwork("a", ", ownerReferences: [{apiVersion: v1, kind: Node, name: x, uid: x}]", ", mtu: 1400")}); r.Response.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	const (
		patch     = "PATCH " + v1 + "/a"
		strict    = "?fieldValidation=Strict"
		strategic = "application/strategic-merge-patch+json"
	)
	for name, c := range map[string]call{
		"credentials":                {request: "GET " + v1 + "/a"},
		"wrong credentials":          {request: "GET " + v1 + "/a", header: http.Header{"Authorization": {"Bearer WRONGCANARY"}}},
		"basic credentials":          {request: "GET " + v1 + "/a", header: http.Header{"Authorization": {"Basic CANARY"}}},
		"cookies":                    {request: "GET " + v1 + "/a", header: http.Header{"Cookie": {"session=CANARY"}}},
		"unknown parameters":         {request: "GET " + v1 + "/a?token=CANARY&fieldManagers=CANARY"},
		"no JSON":                    {request: "POST " + v1, contentType: jsonType, body: `{"p":"CANARY`},
		"no JSON, and long":          {request: "POST " + v1, contentType: jsonType, body: `{"p":"CANARY` + strings.Repeat("x", 100)},
		"no JSON, and very long":     {request: "POST " + v1, contentType: jsonType, body: `{"p":"CANARY` + strings.Repeat("x", 300<<10)},
		"no YAML":                    {request: "POST " + v1, contentType: yamlType, body: "{CANARY"},
		"no protobuf":                {request: "POST " + v1, contentType: "application/vnd.kubernetes.protobuf", body: "CANARY"},
		"broken protobuf":            {request: "POST " + v1, contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00CANARY"},
		"no update":                  {request: "PUT " + v1 + "/a", contentType: jsonType, body: `{"p":"CANARY`},
		"a secret":                   {request: "POST " + v1, contentType: yamlType, body: "{apiVersion: v1, kind: Secret, stringData: {password: CANARY}}"},
		"a secret, as JSON":          {request: "POST " + v1 + strict, contentType: jsonType, body: `{"apiVersion":"v1","kind":"Secret","stringData":{"password":"CANARY"}}`},
		"a secret in other clothes":  {request: "POST " + v1 + strict, contentType: yamlType, body: "{apiVersion: samplecrd.k8s.io/v1, kind: Network, stringData: {password: CANARY}}"},
		"a secret in an event":       {request: "POST " + v1, contentType: yamlType, body: "{apiVersion: samplecrd.k8s.io/v1, kind: WatchEvent, type: ADDED, object: {kind: Secret, stringData: {password: CANARY}}}"},
		"a large number":             {request: "POST " + v1, contentType: jsonType, body: `{"spec":{"mtu":4276783826}}`},
		"a wrong type":               {request: "POST " + v1, contentType: jsonType, body: `{"spec":{"mtu":"CANARY"}}`},
		"no time":                    {request: "POST " + v1, contentType: jsonType, body: `{"metadata":{"creationTimestamp":"CANARY"}}`},
		"no patch":                   {request: patch, contentType: merge, body: `{"p":"CANARY`},
		"no JSON patch":              {request: patch, contentType: jsonPatch, body: `[{"op":"CANARY"}]`},
		"patch of a wrong type":      {request: patch, contentType: merge, body: `{"spec":"CANARY"}`},
		"patch with a wrong field":   {request: patch + strict, contentType: merge, body: `{"data":"CANARY"}`},
		"JSON patch of wrong type":   {request: patch, contentType: jsonPatch, body: `[{"op":"replace","path":"/spec/mtu","value":"CANARY"}]`},
		"JSON patch that fails":      {request: patch, contentType: jsonPatch, body: `[{"op":"test","path":"/spec/mtu","value":"CANARY"}]`},
		"no apply":                   {request: patch + "?fieldManager=x", contentType: apply, body: "{CANARY"},
		"apply of a secret":          {request: patch + "?fieldManager=x", contentType: apply, body: "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {password: CANARY}}"},
		"apply of a wrong type":      {request: patch + "?fieldManager=x", contentType: apply, body: newNetwork("a", "", ", openStack: CANARY")},
		"apply of a wrong field":     {request: patch + "?fieldManager=x", contentType: apply, body: newNetwork("a", "", ", data: CANARY")},
		"YAML with an alias":         {request: "POST " + v1, contentType: yamlType, body: "{password: *CANARY}"},
		"YAML with a tag":            {request: "POST " + v1, contentType: yamlType, body: "{password: !!int CANARY}"},
		"YAML with an object as key": {request: "POST " + v1, contentType: yamlType, body: "{? {password: CANARY} : x}"},
		"YAML without a key":         {request: "POST " + v1, contentType: yamlType, body: "{~: CANARY}"},
		"apply with an alias":        {request: patch + "?fieldManager=x", contentType: apply, body: "{password: *CANARY}"},
		"strategic patch of a kind":  {request: patch, contentType: strategic, body: `{"metadata":{"labels":{"$patch":"CANARY","password":"CANARY"}}}`},
		"strategic patch of a list":  {request: patch, contentType: strategic, body: `{"metadata":{"finalizers":["CANARY",{"password":"CANARY"}]}}`},
		"strategic patch, no key":    {request: patch, contentType: strategic, body: `{"metadata":{"ownerReferences":[{"$patch":"delete","password":"CANARY"}]}}`},
		"strategic patch, order":     {request: patch, contentType: strategic, body: `{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"b"},{"uid":"a"}],"ownerReferences":[{"uid":"a","name":"CANARY"},{"uid":"b"}]}}`},
		"impersonation, refused":     {request: "GET " + v1, header: http.Header{"Impersonate-User": {"bob"}, "Impersonate-Extra-Example.com%2ftoken": {"CANARY \"too\""}}},
		"parameters of what breaks":  {request: "GET " + v1 + "/broken?token=CANARY"},
		"no delete options":          {request: "DELETE " + v1 + "/a", contentType: jsonType, body: `{"p":"CANARY`},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := s.do(t, c)
			t.Log(r.Response.Code, r.Response.StoppedAt, r.Response.Message)
			all := told(t, r)
			for _, secret := range []string{"CANARY", "4276783826", fmt.Sprintf("%x", "CANARY")} {
				if at := strings.Index(all, secret); at >= 0 {
					t.Errorf("the record tells …%s…", all[max(at-120, 0):min(at+40, len(all))])
				}
			}
		})
	}
}

func TestParametersThatAreShown(t *testing.T) {
	s := startServer(t, options{})
	r, _ := s.do(t, call{request: "GET " + v1 + "?limit=5&token=x&labelSelector=a%3Db&pretty=true"})
	if diff := cmp.Diff([]string{"labelSelector=a=b", "limit=5"}, r.Request.Parameters); diff != "" {
		t.Errorf("unexpected parameters (-want +got):\n%s", diff)
	}
}

func TestUserAndCredentials(t *testing.T) {
	s := startServer(t, options{})
	r, _ := s.do(t, call{request: "GET " + v1, header: http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"guests"}}})
	want := &pipeline.User{Name: "bob", Groups: []string{"guests", "system:authenticated"}, ImpersonatedBy: "alice"}
	if diff := cmp.Diff(want, r.User); diff != "" {
		t.Errorf("unexpected user (-want +got):\n%s", diff)
	}
	details := []pipeline.Detail{{Name: "credentials", Value: "bearer token"}, {Name: "user", Value: "alice"}, {Name: "groups", Value: "staff"}}
	if diff := cmp.Diff(details, stage(t, r, pipeline.Authentication).Details); diff != "" {
		t.Errorf("unexpected details (-want +got):\n%s", diff)
	}
	details = []pipeline.Detail{{Name: "list networks in default by bob", Value: "allowed"}}
	if diff := cmp.Diff(details, stage(t, r, pipeline.Authorization).Details); diff != "" {
		t.Errorf("unexpected details (-want +got):\n%s", diff)
	}
	r, _ = s.do(t, call{request: "DELETE " + v1 + "/forbidden", header: http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"guests"}}})
	if diff := cmp.Diff(want, r.User); r.Response.StoppedAt != pipeline.Authorization || diff != "" {
		t.Errorf("unexpected user where it stopped at %s (-want +got):\n%s", r.Response.StoppedAt, diff)
	}
	if r, _ := s.do(t, call{request: "GET " + v1, header: http.Header{"Authorization": nil}}); r.User != nil {
		t.Errorf("nobody is %v", r.User)
	}
}

func TestUnknownFields(t *testing.T) {
	s := startServer(t, options{})
	unknown := []string{`unknown field "spec.colour"`}
	for name, tc := range map[string]struct {
		parameter string
		want      []string
	}{
		"by default": {"", unknown},
		"warn":       {"?fieldValidation=Warn", unknown},
		"ignore":     {"?fieldValidation=Ignore", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, answer := s.do(t, call{request: "POST " + v1 + tc.parameter, contentType: yamlType, body: newNetwork(strings.ReplaceAll(name, " ", "-"), "", ", colour: red")})
			if r.Response.Code != http.StatusCreated {
				t.Fatal(answer)
			}
			if diff := cmp.Diff(tc.want, r.Response.Warnings); diff != "" {
				t.Errorf("unexpected warnings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, stage(t, r, pipeline.Decode).Errors); diff != "" {
				t.Errorf("unexpected errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherRequestsAreNotRecorded(t *testing.T) {
	s := startServer(t, options{})
	for _, path := range []string{"/version", "/apis", "/apis/samplecrd.k8s.io", "/apis/samplecrd.k8s.io/v1", "/apis/samplecrd.k8s.io.example/v1/networks", "/openapi/v2"} {
		s.send(t, call{request: "GET " + path}).Body.Close()
	}
	last, _ := s.do(t, call{request: "GET " + v1})
	if list, _ := s.recorder.List(); len(list) != 1 || list[0].Name != last.Name {
		t.Errorf("got %d traces, the first of %s", len(list), list[0].Request.Path)
	}
}

func TestALargeBodyIsToldByItsSize(t *testing.T) {
	s := startServer(t, options{})
	body := newNetwork("a", ", annotations: {large: "+strings.Repeat("x", 200<<10)+"}", "") + strings.Repeat(" ", 100<<10)
	r, answer := s.do(t, call{request: "POST " + v1, contentType: yamlType, body: body})
	if r.Response.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	if r.Request.BodyBytes != int64(len(body)) || r.Omitted == "" {
		t.Errorf("got %d bytes, want %d; omitted: %q", r.Request.BodyBytes, len(body), r.Omitted)
	}
	for _, s := range r.Stages() {
		if s.Before != nil || s.After != nil {
			t.Errorf("%s has an object", s.Name)
		}
	}
}

// Under -race this tells what two may not do at once.
func TestManyRequestsWhileOthersRead(t *testing.T) {
	s := startServer(t, options{watchCache: true, recorder: pipeline.Options{Traces: 20}})
	ctx, stop := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			_, version := s.recorder.List()
			for {
				select {
				case <-ctx.Done():
					return
				case <-s.recorder.Changed(version):
				}
				changes, next, err := s.recorder.Changes(version)
				if err != nil {
					_, next = s.recorder.List()
				}
				for _, c := range changes {
					_ = fmt.Sprintf("%+v", c.Record.Stages())
				}
				version = next
			}
		})
	}
	watching := s.send(t, call{request: "GET " + v1 + "?watch=true"})
	for w := range 4 {
		writers.Go(func() {
			name := fmt.Sprintf("net-%d", w)
			for i := range 10 {
				for _, c := range []call{
					{request: "PATCH " + v1 + "/" + name + "?fieldManager=test", contentType: apply, body: newNetwork(name, "", fmt.Sprintf(", mtu: %d", 1400+i))},
					{request: "GET " + v2},
					{request: "PATCH " + v1 + "/" + name, contentType: merge, body: "{"},
				} {
					response := s.send(t, c)
					_, err := io.Copy(io.Discard, response.Body)
					if err != nil {
						t.Error(err)
					}
					response.Body.Close()
				}
				ctx, pass := s.recorder.StartPass(ctx, &metav1.ObjectMeta{Name: name, Namespace: "default"})
				pipeline.Note(ctx, pipeline.Plan, "nothing to do")
				pass.End("Ready", true)
			}
		})
	}
	writers.Wait()
	watching.Body.Close()
	stop()
	readers.Wait()
	if list, _ := s.recorder.List(); len(list) != 20 {
		t.Errorf("got %d traces", len(list))
	}
}
