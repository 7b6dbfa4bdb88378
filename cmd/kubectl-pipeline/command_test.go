package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

// patience is a deadline that no test meets unless it fails.
const patience = time.Minute

func TestMain(m *testing.M) {
	time.Local = time.UTC // what is drawn has local times
	os.Exit(m.Run())
}

// run runs the program as main does. Whatever the test, no output has
// secrets, nor colours that nobody asked for.
func run(t *testing.T, s *standIn, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errOut bytes.Buffer
	err = execute(ctx, &out, &errOut, append(args, s.kubeconfig(t)...))
	all := out.String() + errOut.String()
	if err != nil {
		all += err.Error()
	}
	for _, secret := range []string{token, "Bearer", "Authorization:", "CERTIFICATE"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in the output:\n%s", secret, all)
		}
	}
	if !slices.Contains(args, "--color=always") && strings.Contains(all, "\x1b") {
		t.Errorf("an escape sequence is in the output:\n%q", all)
	}
	return out.String(), errOut.String(), err
}

func execute(ctx context.Context, out, errOut io.Writer, args []string) error {
	command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut})
	command.SetArgs(args)
	return command.ExecuteContext(ctx)
}

// running is a program that has not ended.
type running struct {
	t     *testing.T
	lines chan string // what it writes, closed when it ends
	ended chan error
}

func start(ctx context.Context, t *testing.T, s *standIn, args ...string) *running {
	t.Helper()
	r := &running{t: t, lines: make(chan string, 1000), ended: make(chan error, 1)}
	args = append(args, s.kubeconfig(t)...)
	go func() {
		err := execute(ctx, &lineWriter{lines: r.lines}, io.Discard, args)
		close(r.lines)
		r.ended <- err
	}()
	return r
}

// wait returns the lines up to the first that has the text.
func (r *running) wait(text string) (lines []string) {
	r.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.t.Fatalf("the program ended with %v before it wrote %q, after\n%s", <-r.ended, text, strings.Join(lines, "\n"))
			}
			lines = append(lines, line)
			if strings.Contains(line, text) {
				return lines
			}
		case <-deadline:
			r.t.Fatalf("the program did not write %q, but\n%s", text, strings.Join(lines, "\n"))
		}
	}
}

func await(ctx context.Context, t *testing.T, watched <-chan struct{}) {
	t.Helper()
	select {
	case <-watched:
	case <-ctx.Done():
		t.Fatal("nothing watches the traces")
	}
}

func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		r.t.Fatal("the program does not end")
		return nil
	}
}

type lineWriter struct {
	lines chan<- string
	rest  string
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest += string(text)
	for {
		line, rest, found := strings.Cut(w.rest, "\n")
		if !found {
			return len(text), nil
		}
		w.rest = rest
		w.lines <- line
	}
}

func TestCommandLine(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		wantErr string
	}{
		"a colour":                     {[]string{"follow", "--color=green"}, `--color "green" must be`},
		"no file":                      {[]string{"trace"}, "-f"},
		"a dry run of the client":      {[]string{"trace", "-f", "x", "--dry-run=client"}, "none or server"},
		"force without apply":          {[]string{"trace", "-f", "x", "--force-conflicts"}, "--server-side"},
		"no trace to show":             {[]string{"show"}, "accepts 1 arg"},
		"a file that is not there":     {[]string{"trace", "-f", "nonexistent.yaml"}, "nonexistent.yaml"},
		"an unknown command":           {[]string{"nope"}, `unknown command "nope"`},
		"an argument that is not used": {[]string{"follow", "x"}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			_, _, err := run(t, s, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got error %v, want one with %q", err, tc.wantErr)
			}
			if writes := s.sent(networksPath); len(writes) > 0 {
				t.Errorf("sent %q", writes)
			}
		})
	}
}

func TestNotServed(t *testing.T) {
	for _, args := range [][]string{{"trace", "-f", writeFile(t, network)}, {"show", "x"}, {"follow"}} {
		t.Run(args[0], func(t *testing.T) {
			s := newStandIn(t)
			s.notServed = true
			_, _, err := run(t, s, args...)
			if err == nil || err.Error() != "the server records no requests: start it with --pipeline-traces=256" {
				t.Errorf("got error %v", err)
			}
			if writes := s.sent(networksPath); len(writes) > 0 {
				t.Errorf("sent %q though it can't be shown", writes)
			}
		})
	}
}

func TestColor(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		noColor bool
		want    bool
	}{
		"a buffer is no terminal":        {nil, false, false},
		"asked for":                      {[]string{"--color=always"}, false, true},
		"asked for in spite of NO_COLOR": {[]string{"--color=always"}, true, true},
		"asked not to":                   {[]string{"--color=never"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.noColor {
				t.Setenv("NO_COLOR", "1")
			}
			s := newStandIn(t)
			s.addTrace("one")
			out, _, err := run(t, s, append([]string{"show", "one"}, tc.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out, "\x1b["); got != tc.want {
				t.Errorf("colours %t, want %t:\n%q", got, tc.want, out)
			}
		})
	}
}

// TestOneConnectionIsNotEnough has a replica behind each connection: the first
// has no trace. Its second request waits for one on another connection, which
// would never come if all went by one.
func TestOneConnectionIsNotEnough(t *testing.T) {
	s := newStandIn(t)
	s.addTrace("one")
	var first string
	another := make(chan struct{})
	come := sync.OnceFunc(func() { close(another) })
	s.reads = func(r *http.Request, number int) bool {
		s.mu.Lock()
		if first == "" {
			first = r.RemoteAddr
		}
		same := r.RemoteAddr == first
		s.mu.Unlock()
		if !same {
			come()
			return true
		}
		if number > 2 { // the first round is a get and a list
			select {
			case <-another:
			case <-r.Context().Done():
			}
		}
		return false
	}
	out, _, err := run(t, s, "show", "one")
	if err != nil || !strings.Contains(out, "replica-a") {
		t.Errorf("got error %v and\n%s", err, out)
	}
}

func TestShowPassesByAReplicaThatHangs(t *testing.T) {
	s := newStandIn(t)
	s.addTrace("one")
	s.reads = func(r *http.Request, number int) bool {
		if number == 1 {
			<-r.Context().Done()
		}
		return number > 1
	}
	if _, _, err := run(t, s, "show", "one"); err != nil {
		t.Error(err)
	}
}

func TestShow(t *testing.T) {
	for name, tc := range map[string]struct {
		id, wantTitle string
	}{
		"by name":                       {"one", "create networks default/one"},
		"by audit ID":                   {"audit-2", "create networks default/two"},
		"the newest of an audit ID":     {"audit-3", "create networks default/four"},
		"by one that can be no name":    {"a/b", "create networks default/five"},
		"where there is a pass as well": {"six", "controller, pass 1: Success, settled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			for _, trace := range []struct{ name, auditID string }{
				{"one", "one"}, {"two", "audit-2"}, {"three", "audit-3"}, {"four", "audit-3"}, {"five", "a/b"}, {"six", "six"},
			} {
				s.addTrace(trace.name, auditID(trace.auditID), object(trace.name))
			}
			s.addPass(settled)
			out, _, err := run(t, s, "show", tc.id)
			if err != nil || !strings.Contains(out, tc.wantTitle) {
				t.Errorf("got error %v and, without %q,\n%s", err, tc.wantTitle, out)
			}
		})
	}
}

// The controller may run in a replica that did not answer.
func TestShowWithPassesOfAnotherReplica(t *testing.T) {
	s := newStandIn(t)
	s.addTrace("write", object("net"))
	s.addTrace("status", object("net"), func(trace *v1alpha1.RequestTrace) { trace.Request.Subresource = "status" })
	s.addPass(settled)
	out, _, err := run(t, s, "show", "write")
	if err != nil || !strings.Contains(out, "✓ create networks default/net") || !strings.Contains(out, "controller, pass 1: Success, settled") {
		t.Errorf("got error %v and\n%s", err, out)
	}
}
