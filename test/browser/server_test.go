//go:build browser

// Package browser looks at the pipeline page with a real browser, as a learner
// does who has kubectl beside it.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clientset "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

const (
	// startDeadline and stopDeadline are far above what a start and a stop take.
	startDeadline = time.Minute
	stopDeadline  = time.Minute
	// commandDeadline is for what a lesson has one run: the controller tries
	// again after half a minute.
	commandDeadline = 5 * time.Minute

	root = "../.."
	// policy is what "make run" is started with for the lessons.
	policyFlag, policyFile = "--admission-control-config-file", "artifacts/example/admission-configuration.yaml"
)

// server is a standalone network-apiserver that runs.
type server struct {
	kubeconfig string
	neutron    string // HOST:PORT
	page       string // the URL
}

var addresses = regexp.MustCompile(`(?s)KUBECONFIG=(\S+).*Neutron +http://(\S+).*Pipeline +(http://\S+/)\n`)

// output is what a program writes, to be read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // told of each write
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs the server of bin/ on free ports, and ends it with the test.
func start(t *testing.T) *server {
	t.Helper()
	// A path so short that the Unix socket of etcd in it stays below 108 bytes.
	dir, err := os.MkdirTemp("", "page") //nolint:usetesting // t.TempDir() is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// Not of the context of the test: the server is asked to end, not killed.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "network-apiserver"), "--standalone",
		"--data-dir", filepath.Join(dir, "data"), "--secure-port", "0", policyFlag, filepath.Join(root, policyFile))
	command.Env = []string{}
	stdout, stderr := &output{more: make(chan struct{}, 1)}, &output{}
	command.Stdout, command.Stderr = stdout, stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(stopDeadline):
			t.Errorf("network-apiserver, process %d, did not end within %v", command.Process.Pid, stopDeadline)
			_ = command.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("network-apiserver said:\n%s", stderr)
		}
	})
	deadline := time.After(startDeadline)
	for {
		if m := addresses.FindStringSubmatch(stdout.String()); m != nil {
			return &server{kubeconfig: m[1], neutron: m[2], page: m[3]}
		}
		select {
		case <-stdout.more:
		case <-ended:
			t.Fatalf("network-apiserver ended before it was ready")
		case <-deadline:
			t.Fatalf("network-apiserver was not ready after %v", startDeadline)
		}
	}
}

// program is one that the Makefile builds.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf(`%s is not built, "make browser" does that: %v`, name, err)
	}
	return path
}

// shell runs commands as they were copied, with what the page says a shell
// needs. Some of them are refused, as they should be.
func (s *server) shell(t *testing.T, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandDeadline)
	defer cancel()
	home := t.TempDir()
	command := exec.CommandContext(ctx, "sh")
	command.Stdin = strings.NewReader(commands)
	command.Dir = home
	command.Env = []string{
		"KUBECONFIG=" + s.kubeconfig, "NEUTRON=" + s.neutron, "HOME=" + home,
		"PATH=" + filepath.Dir(program(t, "kubectl")) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	text, err := command.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s\n%s\n%v", commands, text, err)
	}
	return string(text)
}

// config is the administrator's.
func (s *server) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (s *server) clients(t *testing.T) clientset.Interface {
	t.Helper()
	clients, err := clientset.NewForConfig(s.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// body reads all of an answer.
func body(t *testing.T, from io.ReadCloser) string {
	t.Helper()
	defer from.Close()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lines are those of a text that comes bit by bit.
func lines(t *testing.T, from io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		scanner := bufio.NewScanner(from)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			if !yield(scanner.Text()) {
				return
			}
		}
		t.Errorf("the stream ended: %v", scanner.Err())
	}
}
