package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/klog/v2"
)

const (
	etcdDir   = "etcd"
	memberDir = "member" // in etcdDir; the name is etcd's

	// startTimeout bounds what etcd does not: it waits for ever on a database file that another process has locked.
	startTimeout = time.Minute
	// etcdQuota is where etcd turns read-only, in bytes: room for about a million objects.
	etcdQuota = 2 << 30
)

// Etcd is a single-member etcd that runs inside this process.
type Etcd struct {
	// Endpoint is the client URL, unix:///ABSOLUTE/PATH.
	Endpoint string

	server *embed.Etcd
	life   *lifecycle
}

// StartEtcd starts etcd on dir/etcd, which gets mode 0700, and returns when it serves. The only way in is a unix socket
// in that directory: there is no TCP port and no peer listener. Writes are synced to disk before they are answered.
// A relative dir is taken from the working directory. The caller holds the [Lock] of dir.
//
// It fails when the path of the socket is longer than the system allows, when etcd cannot read its files, and when ctx
// ends or a minute passes first.
func StartEtcd(ctx context.Context, dir string) (*Etcd, error) {
	dir, err := filepath.Abs(filepath.Join(dir, etcdDir))
	if err != nil {
		return nil, fmt.Errorf("find etcd directory: %w", err)
	}
	socket, err := socketURL(filepath.Join(dir, "sock"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create etcd directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder without x can't be entered
		return nil, fmt.Errorf("close etcd directory to other users: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := form(ctx, dir); err != nil {
		return nil, fmt.Errorf("make a new etcd in %s: %w", dir, err)
	}
	life := newLifecycle()
	server, err := serve(ctx, etcdConfig(dir, socket), life)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	return &Etcd{Endpoint: socket.String(), server: server, life: life}, nil
}

// Err returns a channel that carries the error etcd ended with, should it end by itself. [Etcd.Close] closes it.
func (e *Etcd) Err() <-chan error {
	return e.server.Err()
}

// Close stops etcd and returns when its files are closed. Clients still connected hold it up for some 5 seconds.
func (e *Etcd) Close() {
	e.life.phase.Store(closing)
	e.server.Close()
}

func socketURL(path string) (url.URL, error) {
	// The kernel wants a zero byte at the end, see unix(7).
	limit := len(syscall.RawSockaddrUnix{}.Path) - 1
	if over := len(path) - limit; over > 0 {
		return url.URL{}, fmt.Errorf("path of etcd socket %s has %d bytes and the system allows %d: use a data directory whose path is at least %d bytes shorter",
			path, len(path), limit, over)
	}
	return url.URL{Scheme: "unix", Path: path}, nil
}

// form lays down the files of a new etcd, if there are none. They appear in dir whole: a member killed before its log
// says that it belongs to its own cluster never serves again.
func form(ctx context.Context, dir string) error {
	member := filepath.Join(dir, memberDir)
	if _, err := os.Stat(member); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	forming := filepath.Join(dir, "forming")
	if err := os.RemoveAll(forming); err != nil {
		return err
	}
	config, life := etcdConfig(forming), newLifecycle()
	config.TickMs, config.ElectionMs = 10, 50
	server, err := serve(ctx, config, life)
	if err != nil {
		return err
	}
	life.phase.Store(closing)
	server.Close()
	if err := os.Rename(filepath.Join(forming, memberDir), member); err != nil {
		return err
	}
	return errors.Join(os.Remove(forming), syncDir(dir))
}

// etcdConfig is for a lone member on dir that listens on listenURLs.
func etcdConfig(dir string, listenURLs ...url.URL) *embed.Config {
	config := embed.NewConfig()
	config.Name = "standalone"
	config.Dir = dir
	config.ListenClientUrls = listenURLs
	config.AdvertiseClientUrls = listenURLs
	// etcd listens for peers on the host part of a URL, and with a unix URL that is an abstract socket, open to every user.
	config.ListenPeerUrls = nil
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.EnableGRPCGateway = false
	config.AuthToken = "" // who may open the socket may do everything
	config.QuotaBackendBytes = etcdQuota
	// A lone member elects itself after one to five ticks: half of the default ticks make a faster start, a fifth would
	// double the load of an idle server.
	config.TickMs = 50
	config.ElectionMs = 250
	// Old entries are held in memory for members that lag behind; there are none.
	config.SnapshotCatchUpEntries = 100
	return config
}

// serve returns etcd when it is ready. embed.StartEtcd knows no context: past the end of ctx it is left to itself, and
// closed should it get there after all.
func serve(ctx context.Context, config *embed.Config, life *lifecycle) (*embed.Etcd, error) {
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newEtcdLogger(klog.FromContext(ctx), life))
	ready := make(chan *embed.Etcd)
	go func() {
		defer life.recover()
		server, err := embed.StartEtcd(config)
		if err != nil {
			life.fail(err)
			return
		}
		select {
		case <-server.Server.ReadyNotify():
		case <-ctx.Done():
			// Close waits for a listener that waits for ready, unless the server stops first.
			server.Server.Stop()
			server.Close()
			return
		}
		select {
		case ready <- server:
		case <-ctx.Done():
			server.Close()
		}
	}()
	select {
	case server := <-ready:
		life.phase.Store(serving)
		return server, nil
	case err := <-life.failures:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
