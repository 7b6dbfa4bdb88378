package standalone

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// serverDir names the environment variable that holds the data directory of a server in a process of its own.
const serverDir = "STANDALONE_TEST_DIR"

// The stages of a start, each written to standard output when it is reached.
const (
	stageLocked   = "stage: locked"
	stageID       = "stage: has a cluster ID"
	stagePKI      = "stage: has certificates"
	stageStarting = "stage: starts etcd"
	stageServing  = "stage: serves, and stored a key"
)

const storedKey = "/stored"

// TestServer goes through a server's life on a fresh directory. Run by startServer it is that server: its life lasts
// until it is killed or its standard input ends.
func TestServer(t *testing.T) {
	dir, input := os.Getenv(serverDir), io.Reader(os.Stdin)
	if dir == "" {
		dir, input = t.TempDir(), strings.NewReader("")
	}
	lock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	reach(stageLocked)
	if _, err := ClusterID(dir); err != nil {
		t.Fatal(err)
	}
	reach(stageID)
	if _, err := LoadOrCreatePKI(dir); err != nil {
		t.Fatal(err)
	}
	reach(stagePKI)
	reach(stageStarting)
	etcd, err := StartEtcd(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	client := newClient(t, etcd)
	defer client.Close()
	if _, err := client.Put(t.Context(), storedKey, "value"); err != nil {
		t.Fatal(err)
	}
	reach(stageServing)
	if _, err := io.Copy(io.Discard, input); err != nil {
		t.Fatal(err)
	}
}

// reach does not go through t: its lines must stand alone and come at once.
func reach(stage string) {
	fmt.Fprintln(os.Stdout, stage)
}

// startServer runs TestServer on dir in a process of its own, and returns when it has reached stage.
func startServer(t *testing.T, dir, stage string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestServer$")
	cmd.Env = append(os.Environ(), serverDir+"="+dir)
	// An open pipe that nobody writes to: the server waits at its end.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if scanner.Text() == stage {
			return cmd
		}
		lines = append(lines, scanner.Text())
	}
	t.Fatalf("server ended before %q:\n%s", stage, strings.Join(lines, "\n"))
	return nil
}

// kill ends cmd with SIGKILL and returns when it is gone.
func kill(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

func newClient(t *testing.T, etcd *Etcd) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAKilledServerStartsAgain(t *testing.T) {
	for _, stage := range []string{stageLocked, stageID, stagePKI, stageStarting, stageServing} {
		t.Run(strings.TrimPrefix(stage, "stage: "), func(t *testing.T) {
			dir := t.TempDir()
			kill(startServer(t, dir, stage))
			firstID, _ := os.ReadFile(filepath.Join(dir, "cluster-id"))
			kill(startServer(t, dir, stageServing))
			secondID, _ := os.ReadFile(filepath.Join(dir, "cluster-id"))
			if len(firstID) > 0 && string(firstID) != string(secondID) {
				t.Errorf("cluster ID changed from %q to %q", firstID, secondID)
			}
		})
	}
}
