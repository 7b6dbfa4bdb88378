package pipeline

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func nameOf(o metav1.Object) cache.ObjectName { return cache.MetaObjectToName(o) }

func metaOf(o Object) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, Generation: o.Generation, ResourceVersion: o.Version}
}

// look is a pass that is over.
func (r *Recorder) look(t *testing.T, o Object, result string) {
	t.Helper()
	_, p := r.StartPass(t.Context(), metaOf(o))
	p.End(result, true)
}

func results(r *Record) (list []string) {
	for _, p := range r.Passes {
		list = append(list, p.Result)
	}
	return list
}

func TestWhichWriteAPassBelongsTo(t *testing.T) {
	writes := []Object{object("uid", 1, "7"), object("uid", 2, "9"), object("uid", 2, "11")} // the last one changed no spec
	for name, tc := range map[string]struct {
		pass Object
		want string
	}{
		"the first":                         {object("uid", 1, "7"), "0"},
		"its status was written since":      {object("uid", 1, "8"), "0"},
		"the second":                        {object("uid", 2, "10"), "1"},
		"the third":                         {object("uid", 2, "11"), "2"},
		"long after":                        {object("uid", 2, "100"), "2"},
		"versions are numbers, not words":   {object("uid", 2, "9"), "1"},
		"a spec that nobody wrote":          {object("uid", 3, "12"), ""},
		"older than the write it would fit": {object("uid", 2, "8"), ""},
		"another object of the same name":   {object("other", 2, "11"), ""},
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", early: ", early), func(t *testing.T) {
				r := newRecorder(9)
				var traces []*Trace
				if early {
					r.look(t, tc.pass, "done")
				}
				for i, o := range writes {
					traces = append(traces, begun(r, strconv.Itoa(i)))
					r.wrote(traces[i], o)
				}
				if !early {
					r.look(t, tc.pass, "done")
				}
				for i, trace := range traces {
					want := []string(nil)
					if strconv.Itoa(i) == tc.want {
						want = []string{"done"}
					}
					if diff := cmp.Diff(want, results(r.Get(trace.done().name))); diff != "" {
						t.Errorf("unexpected passes of write %d (-want +got):\n%s", i, diff)
					}
				}
			})
		}
	}
}

func TestTheFirstPassIsKept(t *testing.T) {
	r := newRecorder(9)
	trace := begun(r, "a")
	r.wrote(trace, object("uid", 1, "7"))
	trace.done()
	var want []string
	for i := range maxPasses + 3 {
		r.look(t, object("uid", 1, "7"), strconv.Itoa(i))
		if i == 0 || i > 3 {
			want = append(want, strconv.Itoa(i))
		}
	}
	record := r.Get("a")
	if diff := cmp.Diff(want, results(record)); diff != "" {
		t.Errorf("unexpected passes (-want +got):\n%s", diff)
	}
	if record.PassesDropped != 3 {
		t.Errorf("got %d dropped", record.PassesDropped)
	}
}

func TestEarlyPassesAreBounded(t *testing.T) {
	r := newRecorder(9)
	for i := range maxEarly + 1 {
		r.look(t, object("uid", int64(i), "7"), "done")
	}
	for generation, want := range map[int64]int{0: 0, 1: 1, maxEarly: 1} {
		trace := begun(r, "")
		r.wrote(trace, object("uid", generation, "7"))
		if got := r.Get(trace.done().name).Passes; len(got) != want {
			t.Errorf("generation %d: got %d passes, want %d", generation, len(got), want)
		}
	}
}

func TestWhatAPassTells(t *testing.T) {
	r := newRecorder(9)
	trace := begun(r, "a")
	network := metaOf(object("uid", 1, "7"))
	r.wrote(trace, object("uid", 1, "7"))
	trace.done()
	r.Enqueued(nameOf(network), "ADDED")
	r.Enqueued(nameOf(network), "MODIFIED")
	ctx, pass := r.StartPass(t.Context(), network)
	if !Shown(ctx) || Shown(t.Context()) {
		t.Error("it does not know whether it is shown")
	}
	if got := r.Get("a").Passes[0]; got.Duration != Unknown || got.Settled {
		t.Errorf("while it goes on: got %+v", got)
	}
	_, version := r.List()
	Note(ctx, Plan, "create the network", Detail{"name", "net"})
	if changes, _, err := r.Changes(version); err != nil || len(changes) != 1 {
		t.Errorf("a note is no change: %v, %v", changes, err)
	}
	pass.End("Ready", true)
	Note(ctx, Plan, "too late")
	r.Enqueued(nameOf(network), "resync")
	r.Gone(nameOf(network))
	r.look(t, object("uid", 1, "8"), "again")

	passes := r.Get("a").Passes
	for i := range passes {
		if passes[i].Duration < 0 || passes[i].Start < 0 {
			t.Errorf("pass %d takes %v from %v", i, passes[i].Duration, passes[i].Start)
		}
		passes[i].Duration, passes[i].Start = 0, 0
		for s := range passes[i].Stages {
			passes[i].Stages[s].Start, passes[i].Stages[s].Duration = 0, 0
		}
	}
	want := []PassRecord{
		{ResourceVersion: "7", Result: "Ready", Settled: true, Stages: []Stage{
			{Name: Informer, Subject: "ADDED", Outcome: Passed, Details: []Detail{{"revision", "7"}}},
			{Name: Queue, Outcome: Passed},
			{Name: Plan, Outcome: Passed, Message: "create the network", Details: []Detail{{"name", "net"}}},
		}},
		{ResourceVersion: "8", Result: "again", Settled: true, Stages: []Stage{}},
	}
	if diff := cmp.Diff(want, passes); diff != "" {
		t.Errorf("unexpected passes (-want +got):\n%s", diff)
	}
	if len(r.queue) > 0 {
		t.Errorf("the queue holds %v", r.queue)
	}
}

func TestStagesOfAPassAreBounded(t *testing.T) {
	r := newRecorder(9)
	ctx, pass := r.StartPass(t.Context(), metaOf(object("uid", 1, "7")))
	for range maxPassStages + 5 {
		Note(ctx, Plan, "nothing to do")
	}
	if got := pass.record(time.Now()).Stages; len(got) != maxPassStages {
		t.Errorf("got %d", len(got))
	}
}

// A pass may end when its trace is long gone.
func TestALatePassDoesNotRemoveTwice(t *testing.T) {
	r := newRecorder(1)
	trace := begun(r, "a")
	r.wrote(trace, object("uid", 1, "7"))
	trace.done()
	ctx, pass := r.StartPass(t.Context(), metaOf(object("uid", 1, "7")))
	begun(r, "b").done()
	_, version := r.List()
	Note(ctx, Plan, "nothing to do")
	pass.End("Ready", true)
	if changes, _, err := r.Changes(version); len(changes) > 0 || err != nil {
		t.Errorf("got %v: %v", changes, err)
	}
}

func TestTransports(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.Header.Get(causeHeader))
		w.Header().Set("Audit-ID", "id-of-the-answer")
		w.Header().Set("X-Subject-Token", "CANARY")
		code, err := strconv.Atoi(req.URL.Query().Get("code"))
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(code)
		if _, err := io.WriteString(w, "CANARY"); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for name, tc := range map[string]struct {
		transport func(http.RoundTripper) http.RoundTripper
		code      string
		inner     http.RoundTripper
		want      Stage
		wantCause string
	}{
		"Neutron":         {CloudTransport, "201", http.DefaultTransport, Stage{Name: Neutron, Subject: "POST /v2.0/networks?code=201", Outcome: Passed, Details: []Detail{{"status", "201 Created"}}}, ""},
		"Neutron refuses": {CloudTransport, "409", http.DefaultTransport, Stage{Name: Neutron, Subject: "POST /v2.0/networks?code=409", Outcome: Refused, Details: []Detail{{"status", "409 Conflict"}}}, ""},
		"Neutron fails":   {CloudTransport, "503", http.DefaultTransport, Stage{Name: Neutron, Subject: "POST /v2.0/networks?code=503", Outcome: Failed, Details: []Detail{{"status", "503 Service Unavailable"}}}, ""},
		"no answer":       {CloudTransport, "", broken{}, Stage{Name: Neutron, Subject: "POST /v2.0/networks?code=", Outcome: Failed, Message: "no answer: out of order"}, ""},
		"the API server":  {APITransport, "200", http.DefaultTransport, Stage{Name: Status, Subject: "POST /v2.0/networks", Outcome: Passed, Details: []Detail{{"status", "200 OK"}, {"trace", "id-of-the-answer"}}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			r := newRecorder(9)
			trace := begun(r, "a")
			r.wrote(trace, object("uid", 1, "7"))
			trace.done()
			ctx, _ := r.StartPass(t.Context(), metaOf(object("uid", 1, "7")))
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v2.0/networks?code="+tc.code, strings.NewReader("CANARY"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Auth-Token", "CANARY")
			if response, err := tc.transport(tc.inner).RoundTrip(req); err == nil {
				response.Body.Close()
				if diff := cmp.Diff([]string{tc.wantCause}, asked); diff != "" {
					t.Errorf("unexpected causes (-want +got):\n%s", diff)
				}
			}
			if req.Header.Get(causeHeader) != "" {
				t.Error("the request of the caller is changed")
			}
			got := r.Get("a").Passes[0].Stages
			if len(got) != 1 {
				t.Fatalf("got %v", got)
			}
			got[0].Start, got[0].Duration = 0, 0
			if diff := cmp.Diff(tc.want, got[0]); diff != "" {
				t.Errorf("unexpected stage (-want +got):\n%s", diff)
			}
			if all := fmt.Sprintf("%+v", got); strings.Contains(all, "CANARY") {
				t.Errorf("it tells a secret: %s", all)
			}
		})
	}
}

type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("out of order")
}

// Where nothing is recorded the hooks that stay in place cost nothing.
func TestNotRecordingAllocatesNothing(t *testing.T) {
	var recorder *Recorder
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2.0/networks", nil)
	answer := &http.Response{StatusCode: http.StatusOK}
	next := roundTripper(func(*http.Request) (*http.Response, error) { return answer, nil })
	cloud, api := CloudTransport(next), APITransport(next)
	object := &metav1.ObjectMeta{Namespace: "default", Name: "a"}
	for name, do := range map[string]func(){
		"enqueue": func() { recorder.Enqueued(cache.ObjectName{Namespace: "default", Name: "a"}, "added") },
		"pass": func() {
			_, p := recorder.StartPass(t.Context(), object)
			p.End("Success", true)
		},
		"gone":  func() { recorder.Gone(cache.ObjectName{Namespace: "default", Name: "a"}) },
		"note":  func() { Note(t.Context(), Plan, "nothing to do") },
		"shown": func() { Shown(t.Context()) },
		"a call to the cloud": func() {
			if _, err := cloud.RoundTrip(request); err != nil { //nolint:bodyclose // there is none
				t.Error(err)
			}
		},
		"a call to the server": func() {
			if _, err := api.RoundTrip(request); err != nil { //nolint:bodyclose // there is none
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(100, do); got != 0 {
				t.Errorf("got %v allocations, want none", got)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
