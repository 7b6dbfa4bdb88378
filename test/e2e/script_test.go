package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// eventuallyDeadline bounds the wait for what comes by itself; most of it
	// comes in milliseconds, and in a real cloud in seconds.
	eventuallyDeadline = time.Minute
	eventuallyInterval = 100 * time.Millisecond
)

// run is the run of one script; runKey is where its commands find it.
type (
	run struct {
		t       testing.TB
		server  *server
		neutron string                                                  // its URL
		token   func(ctx context.Context, cloud string) (string, error) // nil where Neutron wants none
		clouds  string                                                  // the path of its clouds.yaml, if there is one
	}
	runKey struct{}
)

// TestScript runs each file of testdata/script against a server of its own.
// Beside the usual commands of testscript there are
//
//	[!] neutron METHOD PATH [FILE]      calls Neutron as $OS_CLOUD, where there is no cloud as
//	                                    the administrator; FILE is the body
//	eventually REGEXP COMMAND ARG...    runs a program, calls Neutron or reads the logs, until
//	                                    the output matches, whether that succeeds or not
//	capture NAME REGEXP                 sets $NAME to the first group, found in the last stdout
//	logs                                prints what the server logged so far
//
// and in the environment $KUBECONFIG, $EXAMPLE (the folder artifacts/example),
// $MARKER (how the description of all that the server makes begins), and $STATE
// (a format of kubectl get: generation, Ready, Progressing and the reason). A
// file flags of the script holds more flags for the server.
func TestScript(t *testing.T) {
	runScripts(t, "testdata/script", func(t testing.TB, flags ...string) run {
		s := start(t, dataDir(t), append([]string{"--cluster-id", "e2e"}, flags...)...)
		return run{t: t, server: s, neutron: s.neutronURL}
	})
}

// TestPipeline does so with what is recorded of requests.
func TestPipeline(t *testing.T) {
	runScripts(t, "testdata/pipeline", func(t testing.TB, flags ...string) run {
		s := start(t, dataDir(t), flags...)
		return run{t: t, server: s, neutron: s.neutronURL}
	})
}

// TestDrift does so with a server that compares everything with Neutron each
// second.
func TestDrift(t *testing.T) {
	runScripts(t, "testdata/drift", func(t testing.TB, flags ...string) run {
		s := start(t, dataDir(t), append([]string{"--cluster-id", "e2e", "--resync-period", "1s"}, flags...)...)
		return run{t: t, server: s, neutron: s.neutronURL}
	})
}

func runScripts(t *testing.T, dir string, begin func(t testing.TB, flags ...string) run) {
	example, err := filepath.Abs("../../artifacts/example")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			flags, err := os.ReadFile(filepath.Join(env.WorkDir, "flags"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r := begin(env.T().(testing.TB), strings.Fields(string(flags))...)
			env.Values[runKey{}] = r
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("OS_CLOUD", osCloud)
			env.Setenv("OS_CLIENT_CONFIG_FILE", r.clouds)
			env.Setenv("KUBECONFIG", r.server.kubeconfig)
			env.Setenv("EXAMPLE", example)
			env.Setenv("MARKER", "samplecrd.k8s.io/e2e/")
			env.Setenv("STATE", "jsonpath={.status.observedGeneration} {.status.conditions[*].status} {.status.conditions[0].reason}")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"neutron":    neutronCommand,
			"eventually": eventuallyCommand,
			"capture":    captureCommand,
			"logs": func(ts *testscript.TestScript, _ bool, _ []string) {
				fmt.Fprint(ts.Stdout(), ts.Value(runKey{}).(run).server.log)
			},
		},
	})
}

func neutronCommand(ts *testscript.TestScript, neg bool, args []string) {
	answer, err := callNeutronFrom(ts, args)
	fmt.Fprint(ts.Stdout(), answer)
	switch {
	case neg && err == nil:
		ts.Fatalf("unexpected success of a call to Neutron")
	case !neg:
		ts.Check(err)
	}
}

func callNeutronFrom(ts *testscript.TestScript, args []string) (string, error) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: neutron METHOD PATH [FILE]")
	}
	var body []byte
	if len(args) == 3 {
		body = []byte(os.Expand(ts.ReadFile(args[2]), ts.Getenv))
	}
	r := ts.Value(runKey{}).(run)
	token := ""
	if r.token != nil {
		var err error
		token, err = r.token(r.t.Context(), ts.Getenv("OS_CLOUD"))
		ts.Check(err)
	}
	return callNeutron(r.t.Context(), token, args[0], r.neutron+args[1], body)
}

func eventuallyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually REGEXP COMMAND ARG...")
	}
	want := regexp.MustCompile(args[0])
	r := ts.Value(runKey{}).(run)
	var got string
	err := wait.PollUntilContextTimeout(r.t.Context(), eventuallyInterval, eventuallyDeadline, true, func(ctx context.Context) (bool, error) {
		switch args[1] {
		case "neutron":
			got, _ = callNeutronFrom(ts, args[2:])
		case "logs":
			got = r.server.log.String()
		default:
			command := r.server.command(ctx, ts.Getenv("HOME"), args[1:]...)
			combined, _ := command.CombinedOutput()
			got = string(combined)
		}
		return want.MatchString(got), nil
	})
	fmt.Fprint(ts.Stdout(), got)
	if err != nil {
		ts.Fatalf("nothing matched %s within %v", want, eventuallyDeadline)
	}
}

func captureCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME REGEXP")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("no group of %s is found in stdout", args[1])
	}
	ts.Setenv(args[0], m[1])
}
