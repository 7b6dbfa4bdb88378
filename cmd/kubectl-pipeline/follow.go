package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/lru"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

func newFollowCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "follow",
		Short: "Show a line for each request, until it is stopped",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			finder, err := p.finder()
			if err != nil {
				return err
			}
			return newTable(p.Out, p.painter()).follow(command.Context(), finder, p.ErrOut)
		},
	}
}

// table draws a line a request, once each.
type table struct {
	painter
	out     io.Writer
	pending bytes.Buffer
	columns interface { // keeps the widths from one line to the next
		io.Writer
		Flush() error
	}
	// seen are names: after a pause, or from another replica, requests come again.
	seen *lru.Cache
}

func newTable(out io.Writer, painter painter) *table {
	t := &table{painter: painter, out: out, seen: lru.New(10_000)}
	t.columns = printers.GetNewTabWriter(&t.pending)
	return t
}

// follow lists, watches, and lists again when a watch ends, for whatever
// reason. It returns an error where the first list fails or none may be had.
func (t *table) follow(ctx context.Context, finder *finder, errOut io.Writer) error {
	backoff := finder.backoff
	for first := true; ctx.Err() == nil; first = false {
		list, err := finder.traces.List(ctx, metav1.ListOptions{})
		switch {
		case err == nil:
			if first {
				t.head()
			}
			for i := range list.Items {
				t.request(&list.Items[i])
			}
			if t.watch(ctx, finder, list.ResourceVersion) {
				backoff = finder.backoff
			}
		case ctx.Err() != nil: // it was told to stop
		case first || final(err):
			return fmt.Errorf("listing traces: %w", err)
		default:
			fmt.Fprintln(errOut, "asking again:", err)
		}
		sleep(ctx, backoff.Step())
	}
	return nil
}

// watch returns whether it heard of a request; why it ended, the next list will tell.
func (t *table) watch(ctx context.Context, finder *finder, resourceVersion string) (heard bool) {
	events, err := finder.traces.Watch(ctx, metav1.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		return false
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		trace, ok := event.Object.(*v1alpha1.RequestTrace)
		if ok && (event.Type == watch.Added || event.Type == watch.Modified) {
			t.request(trace)
			heard = true
		}
	}
	return heard
}

// head is as wide as most lines, so that few of them move the columns.
func (t *table) head() {
	wide := func(name, like string) string { return fmt.Sprintf("%-*s", len(like), name) }
	t.line(bold, wide("TIME", clockFormat), wide("VERB", "update"), wide("RESOURCE", "networks/status"), wide("OBJECT", "default/a-longer-network"),
		wide("USER", "system:apiserver"), "CODE", "STOPPED-AT", "DURATION")
}

func (t *table) request(trace *v1alpha1.RequestTrace) {
	if _, again := t.seen.Get(trace.Name); again {
		return
	}
	t.seen.Add(trace.Name, nil)
	who := ""
	if trace.User != nil {
		who = trace.User.Name
	}
	look := plain
	if refused(trace) {
		look = red
	}
	t.line(look,
		trace.StartTime.Format(clockFormat),
		trace.Request.Verb,
		resourceOf(trace),
		objectOf(trace),
		who,
		strconv.Itoa(int(trace.Response.Code)),
		string(trace.Response.StoppedAt),
		clock(&trace.Response.DurationMicroseconds),
	)
}

// line colours a line when its columns are set: an escape sequence has no width.
func (t *table) line(s style, cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		cells[i] = painter{}.paint(plain, cell)
	}
	fmt.Fprintln(t.columns, strings.Join(cells, "\t"))
	if err := t.columns.Flush(); err != nil {
		return // never: a buffer takes all
	}
	fmt.Fprintln(t.out, t.paint(s, strings.TrimRight(t.pending.String(), " \n")))
	t.pending.Reset()
}
