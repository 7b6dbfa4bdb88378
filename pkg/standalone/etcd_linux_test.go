package standalone

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEtcdListensOnItsSocketOnly(t *testing.T) {
	dir := t.TempDir()
	before := listening(t) // what the failed starts of other tests left open
	etcd := startEtcd(t, dir)
	defer etcd.Close()
	got := slices.DeleteFunc(listening(t), func(address string) bool { return slices.Contains(before, address) })
	want := []string{filepath.Join(dir, etcdDir, "sock")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("etcd listens on (-want +got):\n%s", diff)
	}
}

// listening returns the addresses this process listens on: paths, abstract names (they begin with @) and hexadecimal
// TCP addresses, as proc_net(5) shows them.
func listening(t *testing.T) []string {
	t.Helper()
	own := ownSockets(t)
	var addresses []string
	for _, fields := range procNet(t, "tcp", "tcp6") {
		if fields[3] == "0A" && own[fields[9]] { // state TCP_LISTEN
			addresses = append(addresses, fields[1])
		}
	}
	for _, fields := range procNet(t, "unix") {
		if fields[3] == "00010000" && own[fields[6]] { // flag __SO_ACCEPTCON
			addresses = append(addresses, strings.Join(fields[7:], " "))
		}
	}
	return addresses
}

// ownSockets returns the inodes of the sockets this process has open.
func ownSockets(t *testing.T) map[string]bool {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // closed since the listing
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes
}

// procNet returns the lines of files in /proc/net, less their headings, split at white space.
func procNet(t *testing.T, files ...string) [][]string {
	t.Helper()
	var lines [][]string
	for _, file := range files {
		content, err := os.ReadFile("/proc/self/net/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(strings.SplitN(string(content), "\n", 2)[1]) {
			lines = append(lines, strings.Fields(line))
		}
	}
	return lines
}
