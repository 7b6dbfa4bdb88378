package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

const network = `apiVersion: samplecrd.k8s.io/v1
kind: Network
metadata:
  name: example-network
spec:
  cidr: 192.168.0.0/16
`

var settled = v1alpha1.Pass{
	StartMicroseconds: 2000, DurationMicroseconds: new(int64(70)), ResourceVersion: "1001",
	Result: "Success", Settled: true,
	Stages: []v1alpha1.Stage{{Name: v1alpha1.StageStatus, Outcome: v1alpha1.OutcomeChanged}},
}

func auditID(id string) func(*v1alpha1.RequestTrace) {
	return func(trace *v1alpha1.RequestTrace) { trace.AuditID = id }
}

func object(name string) func(*v1alpha1.RequestTrace) {
	return func(trace *v1alpha1.RequestTrace) { trace.Object.Name = name }
}

func withPass(trace *v1alpha1.RequestTrace) {
	trace.Passes = []v1alpha1.Pass{settled}
}

func refusedBy(stage v1alpha1.StageName, problem string) func(*v1alpha1.RequestTrace) {
	return func(trace *v1alpha1.RequestTrace) {
		trace.Response.StoppedAt = stage
		trace.Stages = []v1alpha1.Stage{{Name: stage, Outcome: v1alpha1.OutcomeRefused, Errors: []string{problem}}}
	}
}

func status(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "no",
	}
}

func TestTrace(t *testing.T) {
	const (
		read    = "GET " + networksPath + "/example-network"
		created = "POST " + networksPath + "?fieldManager=kubectl-pipeline&fieldValidation=Strict"
		updated = "PUT " + networksPath + "/example-network?fieldManager=kubectl-pipeline&fieldValidation=Strict"
		applied = "PATCH " + networksPath + "/example-network?fieldManager=kubectl-pipeline&fieldValidation=Strict"
	)
	everyOther := func(_ *http.Request, number int) bool { return number%2 == 0 }
	for name, tc := range map[string]struct {
		args    []string
		file    string
		stored  string // the CIDR of what exists
		standIn func(*standIn)

		wantRequests []string // for Networks
		wantVersion  string   // sent
		wantOut      []string
		wantErrOut   string
		wantErr      string
	}{
		"what does not exist is created": {
			standIn:      func(s *standIn) { s.record = withPass },
			wantRequests: []string{read, created},
			wantOut: []string{
				"✓ create networks default/example-network by alice: 201 in 1.500ms", "└─ ✓ Etcd",
				"✓ controller, pass 1: Success, settled", "└─ ~ Status",
			},
		},
		"what exists is updated": {
			stored:       "10.0.0.0/8",
			standIn:      func(s *standIn) { s.record = withPass },
			wantRequests: []string{read, updated},
			wantVersion:  "7",
			wantOut:      []string{"✓ update networks default/example-network", "settled"},
		},
		"nothing is waited for where nothing changed": {
			stored:       "192.168.0.0/16",
			wantRequests: []string{read, updated},
			wantVersion:  "7",
			wantOut:      []string{"✓ update networks"},
			wantErrOut:   "nothing changed, so the controller has nothing to do\n",
		},
		"an apply": {
			args:         []string{"--server-side"},
			stored:       "10.0.0.0/8",
			standIn:      func(s *standIn) { s.record = withPass },
			wantRequests: []string{read, applied},
			wantOut:      []string{"✓ apply networks", "settled"},
		},
		"an apply that takes fields": {
			args:         []string{"--server-side", "--force-conflicts"},
			standIn:      func(s *standIn) { s.record = withPass },
			wantRequests: []string{read, applied + "&force=true"},
			wantOut:      []string{"✓ apply networks", "settled"},
		},
		"an apply in conflict": {
			args: []string{"--server-side"},
			standIn: func(s *standIn) {
				s.refuse = status(http.StatusConflict, metav1.StatusReasonConflict)
				s.record = refusedBy(v1alpha1.StageMerge, `conflict with "kubectl": .spec.cidr`)
			},
			wantRequests: []string{read, applied},
			wantOut:      []string{"✗ apply networks default/example-network by alice: 409 Conflict at Merge", "└─ ✗ Merge", `✗ conflict with "kubectl": .spec.cidr`},
			wantErr:      "networks/example-network was refused: 409 Conflict at Merge",
		},
		"a refusal": {
			standIn: func(s *standIn) {
				s.refuse = status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
				s.record = refusedBy(v1alpha1.StageValidation, "spec.cidr: Invalid value")
			},
			wantRequests: []string{read, created},
			wantOut:      []string{"✗ create networks", "422 Invalid at Validation", "✗ spec.cidr: Invalid value"},
			wantErr:      "was refused: 422 Invalid at Validation",
		},
		"a refusal to wait, which is not sent again": {
			standIn: func(s *standIn) {
				s.refuse = status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
			},
			wantRequests: []string{read, created},
			wantOut:      []string{"429 TooManyRequests"},
			wantErr:      "was refused: 429 TooManyRequests",
		},
		"a dry run": {
			args:         []string{"--dry-run=server"},
			wantRequests: []string{read, strings.Replace(created, "?", "?dryRun=All&", 1)},
			wantOut:      []string{"dryRun=All"},
		},
		"a generated name": {
			file:         strings.Replace(network, "name:", "generateName:", 1),
			standIn:      func(s *standIn) { s.record = withPass },
			wantRequests: []string{created},
			wantOut:      []string{"✓ create networks"},
		},
		"a trace with a name of its own": {
			standIn: func(s *standIn) {
				s.record = func(trace *v1alpha1.RequestTrace) {
					withPass(trace)
					trace.Name = "some-other-name"
				}
			},
			wantRequests: []string{read, created},
			wantOut:      []string{"some-other-name", "settled"},
		},
		"two replicas, of which the other is asked first": {
			standIn: func(s *standIn) {
				s.record = withPass
				s.reads = everyOther
			},
			wantRequests: []string{read, created},
			wantOut:      []string{"✓ create networks", "settled"},
		},
		"two replicas, of which the other gets each watch": {
			standIn: func(s *standIn) {
				s.reads = func(r *http.Request, number int) bool {
					if number == 4 {
						s.addPass(settled)
					}
					return r.URL.Query().Get("watch") == ""
				}
			},
			wantRequests: []string{read, created},
			wantOut:      []string{"✓ create networks", "settled"},
		},
		"a controller that runs elsewhere": {
			args:         []string{"--timeout=10ms"},
			wantRequests: []string{read, created},
			wantOut:      []string{"✓ create networks"},
			wantErrOut:   "no pass of the controller was seen on replica replica-a within 10ms: it may run elsewhere\n",
		},
		"a controller that is not done": {
			args: []string{"--timeout=10ms"},
			standIn: func(s *standIn) {
				s.record = func(trace *v1alpha1.RequestTrace) {
					withPass(trace)
					trace.Passes[0].Settled = false
					trace.Name = "id"
				}
			},
			wantRequests: []string{read, created},
			wantOut:      []string{"~ controller, pass 1: Success, at"},
			wantErrOut:   "the controller is not done within 10ms: kubectl pipeline show id tells how it went on\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			if tc.stored != "" {
				s.networks["example-network"] = stored7(t, tc.stored)
			}
			if tc.standIn != nil {
				tc.standIn(s)
			}
			file := tc.file
			if file == "" {
				file = network
			}
			out, errOut, err := run(t, s, append([]string{"trace", "-f", writeFile(t, file)}, tc.args...)...)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantRequests, s.sent(networksPath)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if got := s.bodies[0].GetResourceVersion(); got != tc.wantVersion {
				t.Errorf("sent resourceVersion %q, want %q", got, tc.wantVersion)
			}
			for rest := out; len(tc.wantOut) > 0; tc.wantOut = tc.wantOut[1:] {
				_, after, found := strings.Cut(rest, tc.wantOut[0])
				if !found {
					t.Fatalf("no %q at its place in\n%s", tc.wantOut[0], out)
				}
				rest = after
			}
			if errOut != tc.wantErrOut {
				t.Errorf("stderr is %q, want %q", errOut, tc.wantErrOut)
			}
			if watches := s.sent(tracesPath + "?"); tc.wantErr != "" && len(watches) > 0 {
				t.Errorf("sent %q though the controller has nothing to do", watches)
			}
		})
	}
}

// stored7 is a Network as it is in the server, at resourceVersion 7.
func stored7(t *testing.T, cidr string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.Replace(network, "192.168.0.0/16", cidr, 1)), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetResourceVersion("7")
	return object
}

// TestTraceDrawsPassesAsTheyCome adds each pass only when the one before is
// drawn, so that none can come but through the watch.
func TestTraceDrawsPassesAsTheyCome(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newStandIn(t)
	watched := make(chan struct{}, 10)
	s.reads = func(r *http.Request, _ int) bool {
		if r.URL.Query().Get("watch") != "" {
			watched <- struct{}{}
		}
		return true
	}
	program := start(ctx, t, s, "trace", "-f", writeFile(t, network))
	program.wait("└─ ✓ Etcd")
	await(ctx, t, watched)
	for number, result := range []string{"Creating", "Creating"} {
		s.addPass(v1alpha1.Pass{DurationMicroseconds: new(int64(number)), ResourceVersion: "1", Result: result})
		program.wait("pass " + string(rune('1'+number)) + ": Creating")
	}
	s.addPass(settled)
	program.wait("pass 3: Success, settled")
	if err := program.end(); err != nil {
		t.Error(err)
	}
	if reads := s.sent(tracesPath + "/"); len(reads) != 1 {
		t.Errorf("the trace was read by %q, want one read before the watch", reads)
	}
}

func TestTraceFrom(t *testing.T) {
	text := []byte(network)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	t.Cleanup(web.Close)
	stdin, err := os.Open(writeFile(t, network))
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = stdin // the only one that the library reads
	t.Cleanup(func() { os.Stdin = old })
	for name, source := range map[string]string{"a URL": web.URL, "standard input": "-", "a folder": filepath.Dir(stdin.Name())} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.record = withPass
			out, _, err := run(t, s, "trace", "-f", source)
			if err != nil || !strings.Contains(out, "✓ create networks default/example-network") {
				t.Errorf("got error %v and\n%s", err, out)
			}
		})
	}
}

func TestTraceOfWhatIsNotRecorded(t *testing.T) {
	s := newStandIn(t)
	_, _, err := run(t, s, "trace", "-f", writeFile(t, "apiVersion: pipeline.samplecrd.k8s.io/v1alpha1\nkind: RequestTrace\nmetadata: {name: x}\n"))
	if err == nil || !strings.Contains(err.Error(), "requesttraces/x was not sent") {
		t.Errorf("got error %v", err)
	}
	if requests := s.sent(tracesPath); len(requests) > 0 {
		t.Errorf("sent %q", requests)
	}
}

// TestTraceOfSeveral shows that a refusal does not keep the others from being sent.
func TestTraceOfSeveral(t *testing.T) {
	s := newStandIn(t)
	s.refuse = status(http.StatusForbidden, metav1.StatusReasonForbidden)
	file := writeFile(t, network+"---\n"+strings.Replace(network, "example-network", "second", 1))
	out, _, err := run(t, s, "trace", "-f", file)
	if err == nil || !strings.Contains(err.Error(), "networks/example-network was refused: 403") || !strings.Contains(err.Error(), "networks/second was refused: 403") {
		t.Errorf("got error %v", err)
	}
	if trees := strings.Count("\n"+out, "\n✗ create networks"); trees != 2 || strings.Count(out, "\n\n✗") != 1 {
		t.Errorf("%d trees are drawn, want 2:\n%s", trees, out)
	}
}

// TestTraceIsNotFound tells what the server said, though the way of the request
// is not to be seen.
func TestTraceIsNotFound(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse  *metav1.Status
		wantErr string
	}{
		"of what was accepted": {nil, "networks/example-network was accepted: "},
		"of what was refused":  {status(http.StatusForbidden, metav1.StatusReasonForbidden), "networks/example-network was refused: no ("},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // all patience is needed
			s := newStandIn(t)
			s.refuse = tc.refuse
			s.reads = func(*http.Request, int) bool { return false }
			_, errOut, err := run(t, s, "trace", "-f", writeFile(t, network))
			if err == nil || !strings.HasPrefix(err.Error(), tc.wantErr) || !strings.Contains(err.Error(), "no server that was reached has a trace of request") {
				t.Errorf("got error %v", err)
			}
			if errOut != "Warning: a word from the server\n" {
				t.Errorf("stderr is %q", errOut)
			}
		})
	}
}
