// Package standalone holds what a server needs when there is no cluster to lean on: a data directory of its own, etcd
// inside the process, certificates, a kubeconfig and a cluster ID.
//
// Every function takes the same data directory. Call [Lock] first and close it last; call [ClusterID] before
// [StartEtcd]. A kill at any moment leaves a directory that starts again.
package standalone

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// DirLock is a data directory held by this process.
type DirLock struct {
	file *os.File
}

// Lock takes dir for this process alone, creating it with mode 0700 if need be. The lock is flock(2) on dir/lock, so
// the kernel releases it when the process ends, however it ends.
//
// It fails at once when dir is held, with an error that names the holder's process ID and command, and when anyone on
// the machine may write to dir.
func Lock(dir string) (*DirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("check data directory: %w", err)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("data directory %s is writable by every user (mode %04o): use one of your own, or chmod o-w",
			dir, info.Mode().Perm())
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of data directory: %w", err)
	}
	if err := flock(file); err != nil {
		defer file.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by %s", dir, holder(file))
		}
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if err := sign(file); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock of data directory: %w", err), file.Close())
	}
	return &DirLock{file: file}, nil
}

// Close releases the directory. The lock file stays: removing it would let two processes each lock a file of that name.
func (l *DirLock) Close() error {
	return l.file.Close()
}

func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(file, "%d\n%s\n", os.Getpid(), strings.Join(os.Args, " "))
	return err
}

// holder describes the process that signed the lock file. One that has the lock but did not sign yet has no name.
func holder(file *os.File) string {
	content, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return "another process"
	}
	pid, command, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	if _, err := strconv.Atoi(pid); err != nil {
		return "another process"
	}
	return fmt.Sprintf("process %s (%s)", pid, command)
}
