package standalone

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestEtcdKeepsItsData(t *testing.T) {
	// A URL would read some of these characters as its own.
	dir := filepath.Join(t.TempDir(), "a b%20#?c")
	for _, want := range []string{"", "1", "12"} {
		etcd := startEtcd(t, dir)
		client := newClient(t, etcd)
		if got := storedValue(t, client); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		next := want + strconv.Itoa(len(want)+1)
		if _, err := client.Put(t.Context(), storedKey, next); err != nil {
			t.Fatal(err)
		}
		if got := storedValue(t, client); got != next {
			t.Errorf("got %q, want %q", got, next)
		}
		client.Close()
		etcd.Close()
		if err, open := <-etcd.Err(); open {
			t.Errorf("closed etcd reports %v", err)
		}
	}
}

func TestEtcdKeepsItsDataThroughAKill(t *testing.T) {
	dir := t.TempDir()
	kill(startServer(t, dir, stageServing))
	if _, err := os.Stat(filepath.Join(dir, etcdDir, "sock")); err != nil {
		t.Fatalf("the killed server left no socket, so this test shows nothing: %v", err)
	}
	etcd := startEtcd(t, dir)
	defer etcd.Close()
	client := newClient(t, etcd)
	defer client.Close()
	if got := storedValue(t, client); got != "value" {
		t.Errorf("got %q, want the value stored before the kill", got)
	}
}

// A kill leaves such files in the first moments of a first start.
func TestEtcdStartsOverWhatWasNeverWhole(t *testing.T) {
	dir := t.TempDir()
	database := filepath.Join(dir, etcdDir, "forming", memberDir, "snap", "db")
	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(database, []byte("half a page"), 0o600); err != nil {
		t.Fatal(err)
	}
	startEtcd(t, dir).Close()
	left, err := os.ReadDir(filepath.Join(dir, etcdDir))
	if err != nil || len(left) != 1 || left[0].Name() != memberDir {
		t.Errorf("etcd directory holds %v (%v) afterwards, want %s only", left, err, memberDir)
	}
}

func TestEtcdDirectoryIsClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, etcdDir)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	defer startEtcd(t, dir).Close()
	wantMode(t, path, 0o700)
}

func TestEtcdOnARelativeDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	etcd := startEtcd(t, "data")
	defer etcd.Close()
	if want := "unix://" + dir + "/data/etcd/sock"; etcd.Endpoint != want {
		t.Errorf("got endpoint %q, want %q", etcd.Endpoint, want)
	}
	client := newClient(t, etcd)
	defer client.Close()
	if got := storedValue(t, client); got != "" {
		t.Errorf("a fresh etcd holds %q", got)
	}
}

func TestEtcdSocketPathTooLong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	_, err := StartEtcd(t.Context(), dir)
	wantError(t, err, dir, "allows 107", "shorter")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made all the same (%v)", err)
	}
}

// heldDatabases stay locked until the process ends: the start that is left behind would go on otherwise.
var heldDatabases []*os.File

func TestEtcdOnALockedDatabase(t *testing.T) {
	dir := dirOfFailedStart(t)
	startEtcd(t, dir).Close()
	database, err := os.Open(filepath.Join(dir, etcdDir, memberDir, "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	heldDatabases = append(heldDatabases, database)
	if err := flock(database); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = StartEtcd(ctx, dir)
	wantError(t, err, dir)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want one that says the deadline passed", err)
	}
}

func TestEtcdOnDamagedFiles(t *testing.T) {
	garbage := bytes.Repeat([]byte{0xa5}, 4096)
	testCases := map[string]struct {
		pattern string
		damage  func(content []byte) []byte
	}{
		"a database of zeros":        {"member/snap/db", func(content []byte) []byte { return make([]byte, len(content)) }},
		"a database cut short":       {"member/snap/db", func(content []byte) []byte { return content[:4096] }},
		"a log with garbage inside":  {"member/wal/*.wal", func(content []byte) []byte { return slices.Concat(content[:200], garbage) }},
		"a log that is garbage only": {"member/wal/*.wal", func([]byte) []byte { return garbage }},
		"a log that is empty":        {"member/wal/*.wal", func([]byte) []byte { return nil }},
	}
	for name, tc := range testCases {
		t.Run(name, func(t *testing.T) {
			dir := dirOfFailedStart(t)
			startEtcd(t, dir).Close()
			paths, err := filepath.Glob(filepath.Join(dir, etcdDir, tc.pattern))
			if err != nil || len(paths) != 1 {
				t.Fatalf("found %q (%v), want one file", paths, err)
			}
			content, err := os.ReadFile(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(paths[0], tc.damage(content), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			etcd, err := StartEtcd(ctx, dir)
			if err == nil {
				etcd.Close()
			}
			wantError(t, err, dir)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("start hung: %v", err)
			}
		})
	}
}

// dirOfFailedStart returns a folder for a start that fails: goroutines of etcd outlive that, and one makes the next
// log file in advance, perhaps while the folder is being removed.
func dirOfFailedStart(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd") //nolint:usetesting // that one removes its folder once
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
		}
		t.Error(err)
	})
	return dir
}

func startEtcd(t *testing.T, dir string) *Etcd {
	t.Helper()
	etcd, err := StartEtcd(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return etcd
}

// storedValue returns the value at storedKey, empty if there is none.
func storedValue(t *testing.T, client *clientv3.Client) string {
	t.Helper()
	response, err := client.Get(t.Context(), storedKey)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) == 0 {
		return ""
	}
	return string(response.Kvs[0].Value)
}
