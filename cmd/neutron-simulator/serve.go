package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/samplecrd/network-apiserver/pkg/neutron/simulator"
)

const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 5 * time.Second
)

// run serves until ctx ends. It writes the URL to out as soon as connections are accepted.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("neutron-simulator", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	listen := flags.String("listen", "127.0.0.1:9696", "`address` to serve on; port 0 picks a free one")
	state := flags.String("state", "", "`file` that keeps the networks; without it they are gone at exit")
	faults := flags.Bool("faults", false, "serve /faults, where requests can be made to go wrong")
	lifetime := flags.Duration("token-lifetime", time.Hour, "how long a token of /identity/v3 is good")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	neutron, err := simulator.New(simulator.Options{Path: *state, Faults: *faults, TokenLifetime: *lifetime})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, neutron.Close()) }()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", *listen, err)
	}
	fmt.Fprintf(out, "Neutron simulator: http://%s\n", listener.Addr())
	return serve(ctx, listener, neutron)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
