package pipeline

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// Names of the stages.
const (
	Authentication      = "Authentication"
	Audit               = "Audit"
	Impersonation       = "Impersonation"
	PriorityAndFairness = "PriorityAndFairness"
	Authorization       = "Authorization"
	Mux                 = "Mux"
	Decode              = "Decode"
	Defaulting          = "Defaulting"
	ConversionToHub     = "ConversionToHub"
	Merge               = "Merge"
	MutatingAdmission   = "MutatingAdmission"
	Strategy            = "Strategy"
	Validation          = "Validation"
	ValidatingAdmission = "ValidatingAdmission"
	StorageEncoding     = "StorageEncoding"
	Etcd                = "Etcd"
	WatchCache          = "WatchCache"
	Watch               = "Watch"
	ConversionFromHub   = "ConversionFromHub"
	Encoding            = "Encoding"

	Informer = "Informer"
	Queue    = "Queue"
	Observe  = "Observe"
	Plan     = "Plan"
	Neutron  = "Neutron"
	Status   = "Status"
)

// Outcome tells how a stage ended.
type Outcome string

// How a stage can end.
const (
	Passed  Outcome = "Passed"
	Changed Outcome = "Changed"
	Refused Outcome = "Refused"
	Failed  Outcome = "Failed"
	Unseen  Outcome = "Unseen"
)

// Unknown is the time of what no hook times.
const Unknown time.Duration = -1

// Stage is one step on the way.
type Stage struct {
	Name, Subject   string
	Outcome         Outcome
	Start, Duration time.Duration // since the beginning of the trace; Unknown
	Replayed        bool
	Message         string
	Errors          []string
	Details         []Detail
	// Before and After are there where the stage changed the object.
	Before, After runtime.Object
}

// Detail is something to know about a stage.
type Detail struct{ Name, Value string }

func (s *Stage) stopped() bool { return s.Outcome == Refused || s.Outcome == Failed }

// timeline is a list of stages that is written to while it is read.
type timeline struct {
	start time.Time

	mu     sync.Mutex
	stages []*Stage
	over   bool // nothing is added any more
}

// step is a stage that goes on. A nil step records nothing.
type step struct {
	line  *timeline
	stage *Stage
}

// step begins a stage.
func (l *timeline) step(name, subject string) *step {
	s := &Stage{Name: name, Subject: subject, Start: time.Since(l.start), Duration: Unknown}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil
	}
	l.stages = append(l.stages, s)
	return &step{l, s}
}

// lastGoingOn returns the last stage, or nil if that is over.
func (l *timeline) lastGoingOn() *step {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.stages) == 0 || l.stages[len(l.stages)-1].Outcome != "" {
		return nil
	}
	return &step{l, l.stages[len(l.stages)-1]}
}

// stage adds one that is over.
func (l *timeline) stage(s Stage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.stages = append(l.stages, &s)
	}
}

// change lets f see the stage, if it may still change.
func (s *step) change(f func(*Stage)) {
	if s == nil {
		return
	}
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	if !s.line.over {
		f(s.stage)
	}
}

func (s *step) detail(name, value string) {
	if value == "" {
		return
	}
	s.change(func(stage *Stage) { stage.Details = append(stage.Details, Detail{name, value}) })
}

// count raises the number in a detail.
func (s *step) count(name string) {
	s.change(func(stage *Stage) {
		i := slices.IndexFunc(stage.Details, func(d Detail) bool { return d.Name == name })
		if i < 0 {
			stage.Details = append(stage.Details, Detail{name, "1"})
			return
		}
		n, _ := strconv.Atoi(stage.Details[i].Value) // which is from here
		stage.Details[i].Value = strconv.Itoa(n + 1)
	})
}

// end ends the stage, unless it has ended.
func (s *step) end(outcome Outcome, message string) {
	s.change(func(stage *Stage) {
		if stage.Outcome != "" {
			return
		}
		stage.Duration = time.Since(s.line.start) - stage.Start
		stage.Outcome, stage.Message = outcome, message
	})
}

// endWith ends the stage with an error, or without one.
func (s *step) endWith(outcome Outcome, err error) {
	if err != nil {
		s.end(outcome, err.Error())
		return
	}
	s.end(Passed, "")
}

// show adds what the stage made, and of what.
func (s *step) show(before, after runtime.Object) {
	s.change(func(stage *Stage) { stage.Before, stage.After = before, after })
}

// copyStages returns the stages as they are now.
func (l *timeline) copyStages() []Stage {
	l.mu.Lock()
	defer l.mu.Unlock()
	stages := make([]Stage, len(l.stages))
	for i, s := range l.stages {
		stages[i] = *s
		stages[i].Details = slices.Clone(s.Details)
	}
	return stages
}

// same tells that two states of an object are one.
func same(a, b runtime.Object) bool {
	return a != nil && b != nil && equality.Semantic.DeepEqual(a, b)
}
