package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// startTimeout is what a component has to become ready in; on a machine at rest it needs a few seconds.
	startTimeout = 3 * time.Minute
	pollInterval = 100 * time.Millisecond
	// logTail is how many bytes of its log are shown of a component that ended.
	logTail = 2000
)

// cluster is a control plane.
type cluster struct {
	options
	ports   *ports
	pki     *pki
	running []*process // in the order of their start
}

// newCluster lays down the files of a cluster, and takes up those of an earlier run.
func newCluster(ctx context.Context, o options) (*cluster, error) {
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	c := &cluster{options: o}
	var err error
	// Before all else: taken ports tell of another cluster on this folder.
	if c.ports, err = loadPorts(ctx, c.path("ports.json")); err != nil {
		return nil, err
	}
	if c.pki, err = newPKI(c.path("pki")); err != nil {
		return nil, err
	}
	return c, c.writeAccess()
}

// path is that of a file in the data folder.
func (c *cluster) path(name string) string {
	return filepath.Join(c.data, name)
}

func (c *cluster) etcdURL() string {
	return secureURL(c.ports.Etcd)
}

// start returns when all components are ready. One that ends calls fail; the first that is seen to end may be
// one that could not do without another.
func (c *cluster) start(ctx context.Context, fail context.CancelCauseFunc) error {
	for _, component := range c.components() {
		if err := c.startComponent(ctx, component, fail); err != nil {
			return fmt.Errorf("start %s: %w", component.name, err)
		}
	}
	return nil
}

func (c *cluster) startComponent(ctx context.Context, component component, fail context.CancelCauseFunc) error {
	log, err := os.OpenFile(c.path(component.name+".log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // nothing was written; the child has its own

	// Not of ctx: components are asked to end, in order, not killed.
	command := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(c.bin, component.name), component.flags...) //nolint:gosec // the folder is the operator's
	command.Dir = c.data
	command.Env = []string{} // etcd and client-go read settings from it
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = sysProcAttr(true)
	p, err := startProcess(command)
	if err != nil {
		return err
	}
	c.running = append(c.running, p)
	fmt.Fprintf(os.Stderr, "started %s, process %d, log %s\n", component.name, command.Process.Pid, log.Name())
	go func() {
		<-p.ended
		fail(fmt.Errorf("%s ended: %v; the end of its log %s:\n%s", component.name, command.ProcessState, log.Name(), tail(log.Name())))
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v, see %s", startTimeout, log.Name()))
	defer cancel()
	return component.waitReady(ctx)
}

// tail returns the last lines of a file, as far as it can be read.
func tail(path string) string {
	content, _ := os.ReadFile(path)
	if len(content) > logTail {
		content = content[len(content)-logTail:]
	}
	return strings.TrimSpace(string(content))
}

func (c component) waitReady(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for _, url := range c.ready {
		for !c.answers(ctx, url) {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-ticker.C:
			}
		}
	}
	return nil
}

func (c component) answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := c.client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // nothing was read of it
	return response.StatusCode == http.StatusOK
}

// run runs a command, ends it when ctx ends, and returns its exit code.
func (c *cluster) run(ctx context.Context, args []string) (int, error) {
	// Before the command is looked up: kubectl is to be the one of this cluster's version.
	if err := os.Setenv("PATH", c.bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 0, err
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...) //nolint:gosec // it was given to be run
	command.Env = append(os.Environ(), c.environment()...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = sysProcAttr(false) // a terminal belongs to one process group
	p, err := startProcess(command)
	if err != nil {
		return 0, err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.stop()
	}
	return p.exitCode(), nil
}

// stop ends what runs, the last first: who uses another ends before it.
func (c *cluster) stop() {
	for _, p := range slices.Backward(c.running) {
		p.stop()
		fmt.Fprintf(os.Stderr, "ended %s, %v\n", filepath.Base(p.command.Path), p.command.ProcessState)
	}
}
