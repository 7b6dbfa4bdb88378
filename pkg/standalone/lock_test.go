package standalone

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestLockOfAHeldDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	lock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Lock(dir)
	wantError(t, err, dir, strconv.Itoa(os.Getpid()), os.Args[0])

	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("lock of a released directory: %v", err)
	}
	again.Close()
}

func TestLockHeldByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	server := startServer(t, dir, stageLocked)
	_, err := Lock(dir)
	wantError(t, err, dir, strconv.Itoa(server.Process.Pid), "-test.run=^TestServer$")

	kill(server)
	lock, err := Lock(dir)
	if err != nil {
		t.Fatalf("lock after the holder was killed: %v", err)
	}
	lock.Close()
}

func TestLockNotYetSigned(t *testing.T) {
	dir := t.TempDir()
	lock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := lock.file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	_, err = Lock(dir)
	wantError(t, err, "another process")
}

func TestLockRefusesADirectory(t *testing.T) {
	testCases := map[string]struct {
		prepare func(path string) error
		want    string
	}{
		"that every user may write to": {
			prepare: func(path string) error {
				if err := os.Mkdir(path, 0o700); err != nil {
					return err
				}
				return os.Chmod(path, 0o777)
			},
			want: "mode 0777",
		},
		"that is a file": {
			prepare: func(path string) error { return os.WriteFile(path, nil, 0o600) },
			want:    "not a directory",
		},
		"whose lock is a directory": {
			prepare: func(path string) error { return os.MkdirAll(filepath.Join(path, "lock"), 0o700) },
			want:    "is a directory",
		},
	}
	for name, tc := range testCases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := tc.prepare(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Lock(dir)
			wantError(t, err, dir, tc.want)
		})
	}
}

func TestLockCreatesADirectoryOfItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parent", "data")
	lock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	wantMode(t, dir, 0o700)
	wantMode(t, filepath.Join(dir, "lock"), 0o600)
}

// wantError fails the test unless err holds every text.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want it to hold %q", err, text)
		}
	}
}

func wantMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %04o, want %04o", path, got, want)
	}
}
