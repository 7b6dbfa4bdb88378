package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

var update = flag.Bool("update", false, "write what is drawn to testdata")

func TestTree(t *testing.T) {
	for name, tc := range map[string]struct {
		trace, want    string
		objects, color bool
		width          int
	}{
		"a create and its passes":     {trace: "created", want: "created.txt"},
		"the same with whole objects": {trace: "created", want: "created-objects.txt", objects: true},
		"a narrow terminal":           {trace: "created", want: "created-narrow.txt", width: 60},
		"a refusal":                   {trace: "refused", want: "refused.txt"},
		"a refusal in colours":        {trace: "refused", want: "refused-color.txt", color: true, objects: true},
		"a failure":                   {trace: "failed", want: "failed.txt"},
		"a pass that goes on":         {trace: "pending", want: "pending.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.width == 0 {
				tc.width = 100
			}
			var drawn bytes.Buffer
			tree := &tree{out: &drawn, painter: painter{color: tc.color}, width: tc.width, objects: tc.objects}
			trace := readTrace(t, tc.trace)
			tree.request(trace)
			tree.passes(trace)

			file := filepath.Join("testdata", tc.want)
			if *update {
				if err := os.WriteFile(file, drawn.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(string(want)), lines(drawn.String())); diff != "" {
				t.Errorf("the tree is not that of %s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// TestTreeObeysNothing shows that no text of a trace moves the cursor.
func TestTreeObeysNothing(t *testing.T) {
	for _, objects := range []bool{false, true} {
		for _, name := range []string{"created", "refused", "failed", "pending"} {
			var drawn bytes.Buffer
			tree := &tree{out: &drawn, width: 100, objects: objects}
			trace := readTrace(t, name)
			tree.request(trace)
			tree.passes(trace)
			if i := strings.IndexFunc(drawn.String(), func(r rune) bool { return r < ' ' && r != '\n' || r == 0x9b }); i >= 0 {
				t.Errorf("%s: control character %q in %q", name, drawn.String()[i], drawn.String())
			}
		}
	}
}

func TestFinishedPassesAreDrawnOnce(t *testing.T) {
	var drawn bytes.Buffer
	tree := &tree{out: &drawn, width: 100}
	trace := readTrace(t, "created")
	all := trace.Passes
	all = append(all[:1:1], v1alpha1.Pass{StartMicroseconds: 100_000, ResourceVersion: "1044"}, all[1])
	finished := all[1]
	finished.DurationMicroseconds = new(int64(70))

	for step, tc := range []struct {
		passes      []v1alpha1.Pass
		dropped     int32
		wantSettled bool
		wantDrawn   int
	}{
		{nil, 0, false, 0},
		{all[:1], 0, false, 1},
		{all[:2], 0, false, 1}, // the second goes on
		{[]v1alpha1.Pass{all[0], finished}, 0, false, 2},
		{[]v1alpha1.Pass{all[0], finished}, 0, false, 2},
		{[]v1alpha1.Pass{all[0], all[2]}, 3, true, 5}, // two between were too many for the server
	} {
		trace.Passes, trace.PassesDropped = tc.passes, tc.dropped
		if settled := tree.finishedPasses(trace); settled != tc.wantSettled || tree.drawn != tc.wantDrawn {
			t.Errorf("step %d: settled %t with %d drawn, want %t with %d", step, settled, tree.drawn, tc.wantSettled, tc.wantDrawn)
		}
	}
	var headings []string
	for line := range strings.Lines(drawn.String()) {
		if strings.Contains(line, "pass") {
			headings = append(headings, strings.TrimSpace(line))
		}
	}
	want := []string{
		"~ controller, pass 1: Creating, at +15.200ms, for 80.123ms, from resourceVersion 1042",
		"~ controller, pass 2: at +100.000ms, for 0.070ms, from resourceVersion 1044",
		"… passes not kept by the server: 2",
		"✓ controller, pass 5: Success, settled, at +1096.000ms, for 31.000ms, from resourceVersion 1049",
	}
	if diff := cmp.Diff(want, headings); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
}

// TestLongLinesOfAPass shows what an update does in Neutron, and a refusal there.
func TestLongLinesOfAPass(t *testing.T) {
	const id = "85fdf6ae-5ab7-4780-abec-f75e5bbd5c84"
	trace := &v1alpha1.RequestTrace{Passes: []v1alpha1.Pass{{
		DurationMicroseconds: new(int64(8826)), StartMicroseconds: 3643, ResourceVersion: "30",
		Result: "QuotaExceeded: create network \"over\": Quota exceeded for resources: ['network'].",
		Stages: []v1alpha1.Stage{
			{Name: v1alpha1.StageQueue, Outcome: v1alpha1.OutcomePassed, StartMicroseconds: new(int64(3616)), DurationMicroseconds: new(int64(26))},
			{Name: v1alpha1.StageNeutron, Subject: "GET /v2.0/subnets?limit=1000&network_id=" + id, Outcome: v1alpha1.OutcomePassed,
				StartMicroseconds: new(int64(4806)), DurationMicroseconds: new(int64(118)), Details: []v1alpha1.Detail{{Name: "status", Value: "200 OK"}}},
			{Name: v1alpha1.StageNeutron, Subject: "POST /v2.0/networks", Outcome: v1alpha1.OutcomeRefused,
				StartMicroseconds: new(int64(9484)), DurationMicroseconds: new(int64(508))},
		},
	}}}
	trace.Passes = append(trace.Passes, v1alpha1.Pass{Result: strings.Repeat("x", 80), DurationMicroseconds: new(int64(1)), ResourceVersion: "31"})
	var drawn bytes.Buffer
	(&tree{out: &drawn, width: 80}).passes(trace)
	want := `
✗ controller, pass 1: QuotaExceeded: create network "over": Quota exceeded for
  resources: ['network'], at +3.643ms, for 8.826ms, from resourceVersion 30
├─ ✓ Queue                           +3.616ms     0.026ms
├─ ✓ Neutron GET                     +4.806ms     0.118ms
│    /v2.0/subnets?limit=1000&network_id=` + id + `
│    status: 200 OK
└─ ✗ Neutron POST /v2.0/networks     +9.484ms     0.508ms

~ controller, pass 2:
  ` + strings.Repeat("x", 80) + `,
  at +0.000ms, for 0.001ms, from resourceVersion 31
`
	if diff := cmp.Diff(want, drawn.String()); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
}

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"short":              {"a b", 3, []string{"a b"}},
		"between words":      {"aa bb cc", 5, []string{"aa bb", "cc"}},
		"a word too long":    {"a bbbbbbb c", 3, []string{"a", "bbbbbbb", "c"}},
		"runes, not bytes":   {"·· ··", 5, []string{"·· ··"}},
		"lines of their own": {"a\nb b", 9, []string{"a", "b b"}},
		"nothing":            {"", 9, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, wrap(tc.text, tc.width)); diff != "" {
				t.Errorf("wrapped (-want +got):\n%s", diff)
			}
		})
	}
}

// readTrace returns that of testdata, in UTC wherever the test runs.
func readTrace(t *testing.T, name string) *v1alpha1.RequestTrace {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	trace := &v1alpha1.RequestTrace{}
	if err := yaml.UnmarshalStrict(text, trace); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	trace.StartTime.Time = trace.StartTime.UTC()
	return trace
}
