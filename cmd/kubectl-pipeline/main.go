// Command kubectl-pipeline is a plugin of kubectl that shows the way of a request through the server, and what the controller did then.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := newCommand(streams).ExecuteContext(ctx)
	stop()
	if err != nil {
		for _, line := range lines(err.Error()) {
			fmt.Fprintln(os.Stderr, "error:", painter{}.paint(plain, line))
		}
		os.Exit(1)
	}
}
