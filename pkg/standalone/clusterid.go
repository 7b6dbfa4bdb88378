package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// ClusterID returns the UUID (RFC 9562, canonical text, 36 characters) kept in dir/cluster-id, made at first use.
// Call it before [StartEtcd].
//
// Networks in Neutron carry this ID as proof of who made them, so it is never replaced: a file that does not hold a
// UUID is an error, and so is a missing one where an etcd with data shows that this is not the first use.
func ClusterID(dir string) (string, error) {
	path := filepath.Join(dir, "cluster-id")
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newClusterID(dir, path)
	}
	if err != nil {
		return "", fmt.Errorf("read cluster ID: %w", err)
	}
	text := strings.TrimSpace(string(content))
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return "", fmt.Errorf("cluster ID file %s does not hold a UUID: restore it; "+
			"the ID stands between the slashes in the description of each network in Neutron", path)
	}
	return text, nil
}

func newClusterID(dir, path string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, etcdDir, memberDir)); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cluster ID file %s is missing from a data directory that was used before: restore it; "+
			"the ID stands between the slashes in the description of each network in Neutron", path)
	}
	id := uuid.NewString()
	if err := writeFile(path, []byte(id+"\n")); err != nil {
		return "", fmt.Errorf("write cluster ID: %w", err)
	}
	return id, nil
}
