// Kube runs a Kubernetes control plane on this machine: etcd, kube-apiserver and kube-controller-manager, with RBAC and
// mutual TLS, on loopback only. It is there for API servers that join a cluster through aggregation, and to watch them
// do so. Nodes, and so running pods, it has none.
//
//	kube -bin DIR -data DIR [-apiserver FLAG]... [-- COMMAND [ARGUMENT]...]
//
// When the cluster is ready, kube prints "export KUBECONFIG=..." to standard error. Then it serves until SIGINT or
// SIGTERM; or it runs COMMAND with the variables of the file DATA/env and with -bin first in PATH, and ends with it and
// with its exit code.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

// options are what the command line says.
type options struct {
	bin, data      string // absolute
	apiserverFlags []string
	command        []string
}

func main() {
	// The kernel ends a child with the thread that started it: let that be one that lives as long as this program.
	runtime.LockOSThread()
	code, err := run(context.Background(), os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "kube:", err)
		code = 1
	}
	os.Exit(code)
}

// run returns the exit code of the command, if there is one.
func run(ctx context.Context, args []string) (code int, err error) {
	o, err := parse(args)
	if err != nil {
		return 0, err
	}
	asked, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(asked, stop) // a second signal ends kube at once

	ctx, fail := context.WithCancelCause(asked)
	defer fail(nil)
	c, err := newCluster(ctx, o)
	if err != nil {
		return 0, err
	}
	defer c.stop()
	if err := c.start(ctx, fail); err != nil {
		return 0, err
	}
	fmt.Fprintf(os.Stderr, "export KUBECONFIG=%s\n", c.kubeconfig())
	if len(o.command) > 0 {
		if code, err = c.run(ctx, o.command); err != nil {
			return 0, err
		}
	} else {
		<-ctx.Done()
	}
	if ctx.Err() != nil && asked.Err() == nil {
		return 0, context.Cause(ctx)
	}
	return code, nil
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("kube", flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "", "`DIR` that holds etcd, kube-apiserver and kube-controller-manager")
	flags.StringVar(&o.data, "data", "", "`DIR` that holds the state; that of an earlier run is gone on with")
	flags.Func("apiserver", "`FLAG` for kube-apiserver, such as --v=4; may be repeated", func(value string) error {
		o.apiserverFlags = append(o.apiserverFlags, value)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.command = flags.Args()
	var err error
	if o.bin, err = folder("bin", o.bin); err != nil {
		return options{}, err
	}
	o.data, err = folder("data", o.data)
	return o, err
}

func folder(name, value string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("-%s DIR is missing", name)
	}
	path, err := filepath.Abs(value)
	if err != nil {
		return "", fmt.Errorf("find folder of -%s: %w", name, err)
	}
	return path, nil
}
