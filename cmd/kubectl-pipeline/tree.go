package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

const (
	// maxLabel bounds the column of names and subjects.
	maxLabel = 46
	// clockFormat is that of the times of a request.
	clockFormat = "15:04:05.000"
)

// tree draws traces.
type tree struct {
	painter
	out     io.Writer
	width   int  // columns
	objects bool // whole objects too
	drawn   int  // number of the last pass drawn
}

// request draws all of a trace but the passes of the controller.
func (t *tree) request(trace *v1alpha1.RequestTrace) {
	result, mark := green, "✓"
	if refused(trace) {
		result, mark = red, "✗"
	}
	request, response := trace.Request, trace.Response
	t.print(t.paint(result, mark), " ", t.paint(bold, title(trace)), t.paint(plain, " by "+user(trace.User)+": "),
		t.paint(result, answer(trace)), t.paint(plain, " in "+clock(&response.DurationMicroseconds)))

	t.row("request", plain, request.Method+" "+request.Path)
	t.row("options", plain, request.Parameters...)
	t.row("body", plain, size(request.ContentType, request.BodyBytes))
	t.row("client", plain, request.UserAgent)
	t.row("answer", plain, size(response.ContentType, response.Bytes))
	if o := trace.Object; o != nil && o.ResourceVersion != "" {
		t.row("object", plain, fmt.Sprintf("generation %d", o.Generation), "resourceVersion "+o.ResourceVersion, "uid "+string(o.UID))
	}
	t.row("replica", plain, trace.Replica)
	t.row("trace", plain, trace.Name, trace.StartTime.Format(time.DateOnly+" "+clockFormat))
	t.row("cause", plain, trace.Cause)
	t.row("omitted", yellow, trace.Omitted)
	for _, warning := range response.Warnings {
		t.row("warning", yellow, warning)
	}
	if !explained(trace.Stages) {
		t.row("reason", red, response.Message)
	}
	t.stages(trace.Stages)
}

// passes draws what the controller did so far.
func (t *tree) passes(trace *v1alpha1.RequestTrace) {
	for i := range trace.Passes {
		t.pass(trace, i)
	}
}

// finishedPasses draws the finished passes that were not drawn before, and
// returns whether the controller is done.
func (t *tree) finishedPasses(trace *v1alpha1.RequestTrace) (settled bool) {
	for i, pass := range trace.Passes {
		if pass.DurationMicroseconds == nil {
			return false
		}
		t.pass(trace, i)
		if pass.Settled {
			return true
		}
	}
	return false
}

// pass draws one that was not drawn before.
func (t *tree) pass(trace *v1alpha1.RequestTrace, i int) {
	pass, number := &trace.Passes[i], i+1
	if i > 0 {
		number += int(trace.PassesDropped)
	}
	if number <= t.drawn {
		return
	}
	if missing := number - t.drawn - 1; missing > 0 {
		t.print("\n", t.paint(dim, fmt.Sprintf("… passes not kept by the server: %d", missing)))
	}
	t.drawn = number

	result, mark := yellow, "~"
	facts := []string{strings.TrimSuffix(pass.Result, "."), "", "at " + offset(&pass.StartMicroseconds), "", "from resourceVersion " + pass.ResourceVersion}
	switch {
	case pass.DurationMicroseconds == nil:
		mark, facts[1] = "…", "still going on"
	case stopped(pass.Stages):
		result, mark = red, "✗"
	case pass.Settled:
		result, mark = green, "✓"
	}
	if pass.Settled {
		facts[1] = "settled"
	}
	if pass.DurationMicroseconds != nil {
		facts[3] = "for " + clock(pass.DurationMicroseconds)
	}
	head := fmt.Sprintf("controller, pass %d:", number)
	for i, line := range wrap(head+" "+join(", ", facts...), t.width-len("✓ ")) {
		if i > 0 {
			t.print(t.paint(plain, "  "+line))
			continue
		}
		t.print("\n", t.paint(result, mark), " ", t.paint(bold, head), t.paint(plain, strings.TrimPrefix(line, head)))
	}
	t.stages(pass.Stages)
}

func (t *tree) stages(stages []v1alpha1.Stage) {
	width := 0
	for i := range stages {
		left, _ := label(&stages[i])
		width = max(width, utf8.RuneCountInString(left))
	}
	for i := range stages {
		branch, stem := "├─ ", "│    "
		if i == len(stages)-1 {
			branch, stem = "└─ ", "     "
		}
		t.stage(&stages[i], branch, stem, width)
	}
}

func (t *tree) stage(s *v1alpha1.Stage, branch, stem string, width int) {
	result, mark := outcome(s.Outcome)
	name := plain
	if result == red {
		name = red
	}
	when := fmt.Sprintf(" %12s %11s", offset(s.StartMicroseconds), clock(s.DurationMicroseconds))
	if s.Replayed {
		when = fmt.Sprintf("%25s", "replayed")
	}
	left, below := label(s)
	left = fmt.Sprintf("%-*s", width, left)
	line := []string{t.paint(dim, branch), t.paint(result, mark), " ", t.paint(name, left), t.paint(dim, when)}

	used := utf8.RuneCountInString(branch+mark+" "+left+when) + len("  ")
	inline := below == "" && s.Message != "" && !strings.Contains(s.Message, "\n") && used+utf8.RuneCountInString(s.Message) <= t.width
	if inline {
		line = append(line, "  ", t.paint(plain, s.Message))
	}
	t.print(line...)
	t.below(stem, name, below)
	if !inline {
		t.below(stem, plain, s.Message)
	}
	for _, problem := range s.Errors {
		t.below(stem, red, "✗ "+problem)
	}
	t.below(stem, dim, details(s.Details))
	t.object(s, stem)
}

// object draws what a stage made of an object.
func (t *tree) object(s *v1alpha1.Stage, stem string) {
	whole := s.After
	switch {
	case s.Before == nil && s.After == nil:
		return
	case s.Before != nil && s.After != nil:
		t.difference(s, stem)
		return
	case s.After == nil:
		whole = s.Before
	}
	if !t.objects {
		object, err := decode(whole)
		if err != nil {
			t.below(stem, red, "✗ the object can't be read: "+err.Error())
			return
		}
		t.below(stem, dim, fmt.Sprintf("object of %d fields: --objects shows it", countFields(object)))
		return
	}
	document, err := document(whole)
	if err != nil {
		t.below(stem, red, "✗ the object can't be read: "+err.Error())
	}
	for _, line := range document {
		t.print(t.paint(dim, stem), t.paint(cyan, strings.TrimSuffix(line, "\n")))
	}
}

func (t *tree) difference(s *v1alpha1.Stage, stem string) {
	changes, err := diff(s.Before, s.After)
	if err != nil {
		t.below(stem, red, "✗ the objects can't be compared: "+err.Error())
		return
	}
	for _, line := range changes {
		look := plain
		switch line[:min(1, len(line))] {
		case "+":
			look = green
		case "-":
			look = red
		case "@":
			look = cyan
		}
		t.print(t.paint(dim, stem), t.paint(look, line))
	}
	if len(changes) == 0 && string(s.Before.Raw) != string(s.After.Raw) {
		t.below(stem, dim, "metadata.managedFields changed")
	}
}

// row draws a line of the head, of the parts that are there.
func (t *tree) row(name string, s style, parts ...string) {
	text := join(", ", parts...)
	if text == "" {
		return
	}
	const indent = "           "
	for i, line := range wrap(text, t.width-len(indent)) {
		head := indent
		if i == 0 {
			head = fmt.Sprintf("  %-9s", name)
		}
		t.print(t.paint(dim, head), t.paint(s, line))
	}
}

// below draws what belongs to the stage above.
func (t *tree) below(stem string, s style, text string) {
	if text == "" {
		return
	}
	for _, line := range wrap(text, t.width-utf8.RuneCountInString(stem)) {
		t.print(t.paint(dim, stem), t.paint(s, line))
	}
}

func (t *tree) print(painted ...string) {
	fmt.Fprintln(t.out, strings.TrimRight(strings.Join(painted, ""), " "))
}

// wrap breaks text between words; a longer word stays whole.
func wrap(text string, width int) []string {
	var wrapped []string
	for _, paragraph := range lines(text) {
		line := ""
		for word := range strings.SplitSeq(paragraph, " ") {
			if line != "" && utf8.RuneCountInString(line+" "+word) > width {
				wrapped = append(wrapped, line)
				line = word
				continue
			}
			line = join(" ", line, word)
		}
		wrapped = append(wrapped, line)
	}
	return wrapped
}
