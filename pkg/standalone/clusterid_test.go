package standalone

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
)

func TestClusterIDStays(t *testing.T) {
	dir := t.TempDir()
	first, err := ClusterID(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := uuid.Validate(first); err != nil || len(first) != 36 {
		t.Errorf("got cluster ID %q, want a UUID of 36 characters", first)
	}
	wantMode(t, filepath.Join(dir, "cluster-id"), 0o600)
	second, err := ClusterID(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("got cluster ID %q at second use, want %q", second, first)
	}
}

func TestClusterIDIsNeverReplaced(t *testing.T) {
	const id = "2f6b1f5e-6f0c-4e8a-9d0b-0c1a5a1f7f11"
	testCases := map[string]string{
		"empty file":              "",
		"truncated":               id[:20],
		"zeros":                   "\x00\x00\x00\x00",
		"two IDs":                 id + "\n" + id,
		"not in canonical text":   "2F6B1F5E-6F0C-4E8A-9D0B-0C1A5A1F7F11",
		"longer than one ID":      id + "0",
		"another notation of one": "urn:uuid:" + id,
	}
	for name, content := range testCases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cluster-id")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ClusterID(filepath.Dir(path))
			wantError(t, err, path, "does not hold a UUID")
			if got, err := os.ReadFile(path); err != nil || string(got) != content {
				t.Errorf("file holds %q (%v) afterwards, want %q", got, err, content)
			}
		})
	}
}

func TestClusterIDMissingFromAUsedDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, etcdDir, memberDir), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := ClusterID(dir)
	wantError(t, err, filepath.Join(dir, "cluster-id"), "is missing")
}

func TestWriteFileReplacesWhatAKilledWriterLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path+".tmp", []byte("half of a longer content"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		if err := writeFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("file holds %q (%v), want %q", got, err, want)
		}
		wantMode(t, path, 0o600)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || left != nil {
		t.Errorf("files left: %q (%v)", left, err)
	}
}
