package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

// title says what was asked.
func title(trace *v1alpha1.RequestTrace) string {
	return join(" ", trace.Request.Verb, resourceOf(trace), objectOf(trace))
}

func resourceOf(trace *v1alpha1.RequestTrace) string {
	return join("/", trace.Request.Resource, trace.Request.Subresource)
}

// objectOf prefers what was written to what was asked: a generated name is only
// there. * stands for all.
func objectOf(trace *v1alpha1.RequestTrace) string {
	namespace, name := trace.Request.Namespace, trace.Request.Name
	if o := trace.Object; o != nil && o.Name != "" {
		namespace, name = o.Namespace, o.Name
	}
	if name == "" && trace.Request.Verb != "create" {
		name = "*"
	}
	return join("/", namespace, name)
}

// answer says what was answered, and where it stopped.
func answer(trace *v1alpha1.RequestTrace) string {
	r := trace.Response
	code := "no answer"
	if r.Code != 0 {
		code = strconv.Itoa(int(r.Code))
	}
	text := join(" ", code, string(r.Reason))
	if r.StoppedAt != "" {
		text += " at " + string(r.StoppedAt)
	}
	return text
}

func refused(trace *v1alpha1.RequestTrace) bool {
	r := trace.Response
	return r.Code == 0 || r.Code >= http.StatusBadRequest || r.StoppedAt != ""
}

func user(u *v1alpha1.User) string {
	if u == nil {
		return "nobody recognized"
	}
	text := u.Name
	if u.ImpersonatedBy != "" {
		text += " (impersonated by " + u.ImpersonatedBy + ")"
	}
	return text
}

func size(mediaType string, bytes int64) string {
	if bytes == 0 {
		return mediaType
	}
	return join(", ", mediaType, fmt.Sprintf("%d bytes", bytes))
}

// label names a stage. The last word of one that is too long for the column goes
// below: it is the path of a call, as a rule.
func label(s *v1alpha1.Stage) (left, below string) {
	left = join(" ", string(s.Name), s.Subject)
	if last := strings.LastIndex(left, " "); last > 0 && utf8.RuneCountInString(left) > maxLabel {
		return left[:last], left[last+1:]
	}
	return left, ""
}

// details are on one line, to be wrapped.
func details(all []v1alpha1.Detail) string {
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = d.Name + ": " + d.Value
	}
	return strings.Join(texts, " · ")
}

// outcome returns a mark for who sees no colours.
func outcome(o v1alpha1.Outcome) (style, string) {
	switch o {
	case v1alpha1.OutcomePassed:
		return green, "✓"
	case v1alpha1.OutcomeChanged:
		return yellow, "~"
	case v1alpha1.OutcomeRefused:
		return red, "✗"
	case v1alpha1.OutcomeFailed:
		return red, "!"
	}
	return dim, "?"
}

func stopped(stages []v1alpha1.Stage) bool {
	return slices.ContainsFunc(stages, func(s v1alpha1.Stage) bool {
		return s.Outcome == v1alpha1.OutcomeRefused || s.Outcome == v1alpha1.OutcomeFailed
	})
}

// explained returns whether a stage says why the request went no further.
func explained(stages []v1alpha1.Stage) bool {
	return slices.ContainsFunc(stages, func(s v1alpha1.Stage) bool { return len(s.Errors) > 0 })
}

// offset is a time since the request arrived; empty where nothing tells.
func offset(microseconds *int64) string {
	if microseconds == nil {
		return ""
	}
	return "+" + clock(microseconds)
}

// clock has one unit, so that times in a column compare at a glance.
func clock(microseconds *int64) string {
	if microseconds == nil {
		return ""
	}
	return fmt.Sprintf("%.3fms", float64(*microseconds)/1000)
}

// join leaves out what is empty.
func join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), separator)
}
