// Package integration tests the whole server in process: real HTTP, a real
// etcd, real clients, and the simulator in the place of Neutron.
package integration

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/samplecrd/network-apiserver/cmd/network-apiserver/app"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

// shared serves all tests that need no flags of their own, each in a
// namespace of its own.
var shared *server

func TestMain(m *testing.M) {
	// The command configures the logs of the process, and here runs more than once.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	countNeutronCalls()
	// Most tests wait, each for something else. A flag on the command line comes later and wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) (code int) {
	dir, err := dataDir()
	if err == nil {
		shared, err = startServer(context.Background(), dir) //nolint:forbidigo // TestMain has no test to end with
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the shared server:", err)
		return 1
	}
	defer func() {
		if err := errors.Join(shared.stop(), os.RemoveAll(dir)); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the shared server:", err)
			code = 1
		}
	}()
	return m.Run()
}

// server is a network-apiserver inside this process.
type server struct {
	dir     string
	config  *rest.Config // the administrator's
	clients versioned.Interface
	neutron string // base URL of the simulator
	stop    func() error
}

// dataDir makes a folder with a short name: that of a test holds its name, and
// the path of a socket has no room for it.
func dataDir() (string, error) { return os.MkdirTemp("", "na") }

// starting is held by whoever makes a command: its flags are, in part, those of
// the process.
var starting sync.Mutex

// startServer runs the command until it has printed its addresses. Its error
// is that of the command where that ended first.
func startServer(ctx context.Context, dir string, flags ...string) (*server, error) {
	starting.Lock()
	defer starting.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	cmd := app.NewCommand()
	cmd.SetArgs(append([]string{"--standalone", "--data-dir", dir, "--secure-port", "0"}, flags...))
	cmd.SetOut(writer)
	cmd.SetErr(io.Discard)
	go func() {
		err := cmd.ExecuteContext(ctx)
		ended <- err
		writer.CloseWithError(errors.Join(err, io.EOF))
	}()
	s := &server{dir: dir}
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	if err := s.readAddresses(reader); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) readAddresses(output io.Reader) (err error) {
	lines := bufio.NewScanner(output)
	for s.neutron == "" && lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "Neutron" {
			s.neutron = fields[1]
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "kubeconfig")); err != nil {
		return err
	}
	s.config.QPS = -1
	s.clients, err = versioned.NewForConfig(s.config)
	return err
}

// newServer starts a server with flags of its own, which ends with the test.
func newServer(t testing.TB, flags ...string) *server {
	t.Helper()
	dir, err := dataDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return serveFrom(t, dir, flags...)
}

// restart ends the server and starts another one from its data.
func (s *server) restart(t testing.TB, flags ...string) *server {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatalf("stopping the server: %v", err)
	}
	return serveFrom(t, s.dir, flags...)
}

func serveFrom(t testing.TB, dir string, flags ...string) *server {
	t.Helper()
	// Not the context of the test: it ends before the clean-up, which waits.
	s, err := startServer(context.WithoutCancel(t.Context()), dir, flags...)
	if err != nil {
		t.Fatalf("starting a server with %q: %v", flags, err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
	})
	return s
}
