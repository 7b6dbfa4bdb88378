package e2e

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// startDeadline and stopDeadline are far above what a start and a stop take.
	startDeadline = time.Minute
	stopDeadline  = time.Minute
)

// server is a network-apiserver that runs, or ran.
type server struct {
	kubeconfig string
	apiURL     string
	neutronURL string

	process *os.Process
	log     *output
	ended   chan struct{}
	err     error // once ended; nil for exit code 0
}

// output is what a program writes, to be read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// dataDir returns a folder with a path so short that the Unix socket of etcd
// in it stays below the 108 bytes of sun_path.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e") //nolint:usetesting // t.TempDir() is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "data")
}

// start runs a standalone server on free ports, with no environment at all,
// and returns when it says that it is ready. It is ended with the test.
func start(t testing.TB, dir string, flags ...string) *server {
	t.Helper()
	return startWith(t, []string{}, dir, flags...)
}

// startWith gives the server that environment and no other.
func startWith(t testing.TB, environment []string, dir string, flags ...string) *server {
	t.Helper()
	// Not of the context of the test: the server is asked to end, not killed.
	command := program(context.WithoutCancel(t.Context()), append([]string{"--standalone", "--data-dir", dir, "--secure-port", "0"}, flags...)...)
	command.Env = environment
	s := &server{log: &output{}, ended: make(chan struct{})}
	command.Stderr = s.log
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = command.Process
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			t.Logf("network-apiserver, process %d, on %s:\n%s", s.process.Pid, dir, s.log)
		}
	})
	ready := make(chan struct{})
	go func() {
		defer close(s.ended)
		s.read(bufio.NewScanner(stdout), ready)
		s.err = command.Wait()
	}()
	select {
	case <-ready:
	case <-s.ended:
		t.Fatalf("network-apiserver ended before it was ready: %v", s.err)
	case <-time.After(startDeadline):
		t.Fatalf("network-apiserver was not ready after %v", startDeadline)
	}
	return s
}

// program is network-apiserver with no environment at all.
func program(ctx context.Context, flags ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "network-apiserver", flags...)
	command.Env = []string{}
	return command
}

var addresses = regexp.MustCompile(`(?s)KUBECONFIG=(\S+).*API +(https://\S+).*Neutron +(?:(http://\S+)|cloud )`)

// read closes ready when all addresses are printed, and reads on to the end.
func (s *server) read(lines *bufio.Scanner, ready chan<- struct{}) {
	var printed strings.Builder
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if m := addresses.FindStringSubmatch(printed.String()); m != nil && s.apiURL == "" {
			s.kubeconfig, s.apiURL, s.neutronURL = m[1], m[2], m[3]
			close(ready)
		}
	}
}

// stop asks the server to end, as a service manager does.
func (s *server) stop(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
}

// kill gives it no chance to say a word.
func (s *server) kill(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGKILL)
}

// signal ends the server and waits for it. One that ended is left alone.
func (s *server) signal(t testing.TB, signal os.Signal) {
	t.Helper()
	select {
	case <-s.ended:
		return
	default:
	}
	if err := s.process.Signal(signal); err != nil {
		t.Errorf("ending process %d: %v", s.process.Pid, err)
	}
	select {
	case <-s.ended:
	case <-time.After(stopDeadline):
		t.Errorf("process %d did not end within %v of %v", s.process.Pid, stopDeadline, signal)
		_ = s.process.Kill()
		<-s.ended
	}
}

// kubectl runs kubectl against the server and returns its stdout; a failure
// fails the test.
func (s *server) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	command := s.command(t.Context(), t.TempDir(), append([]string{"kubectl"}, args...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command.Args, " "), err, stderr.String())
	}
	return string(stdout)
}

// command is a program that finds the server as kubectl does.
func (s *server) command(ctx context.Context, home string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir = home
	command.Env = []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + home}
	return command
}
