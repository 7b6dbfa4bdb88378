package pipeline

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// ObserveStore shows what the strategies of a store do. Optional interfaces of a
// strategy are not passed on: those of a delete strategy are left as they are.
func (r *Recorder) ObserveStore(store *genericregistry.Store) {
	store.CreateStrategy = createStrategy{store.CreateStrategy}
	store.UpdateStrategy = updateStrategy{store.UpdateStrategy}
}

type createStrategy struct{ rest.RESTCreateStrategy }

func (s createStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	prepare(ctx, "PrepareForCreate", obj, func() { s.RESTCreateStrategy.PrepareForCreate(ctx, obj) })
}

func (s createStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validate(ctx, "Validate", func() field.ErrorList { return s.RESTCreateStrategy.Validate(ctx, obj) })
}

func (s createStrategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	return warn(ctx, s.RESTCreateStrategy.WarningsOnCreate(ctx, obj))
}

type updateStrategy struct{ rest.RESTUpdateStrategy }

func (s updateStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	prepare(ctx, "PrepareForUpdate", obj, func() { s.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old) })
}

func (s updateStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	takeOver(ctx, obj)
	return validate(ctx, "ValidateUpdate", func() field.ErrorList { return s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old) })
}

func (s updateStrategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	return warn(ctx, s.RESTUpdateStrategy.WarningsOnUpdate(ctx, obj, old))
}

// prepare shows, beside what the strategy sets, what the registry set just
// before: uid, creationTimestamp, namespace.
func prepare(ctx context.Context, method string, obj runtime.Object, inner func()) {
	t := from(ctx)
	if t == nil {
		inner()
		return
	}
	before, merging := t.lastSeen()
	if seen := t.see(obj); before == nil || merging {
		before = seen
	}
	s := t.step(Strategy, method)
	inner()
	t.saw(s, before, obj)
}

// takeOver adds to what the strategy did what the registry takes over from the
// old object just after: uid, creationTimestamp.
func takeOver(ctx context.Context, obj runtime.Object) {
	t := from(ctx)
	if t == nil {
		return
	}
	before, _ := t.lastSeen()
	after := t.see(obj)
	if after == before {
		return
	}
	t.note(Strategy, func(s *Stage) {
		if s.Before == nil {
			s.Before = before
		}
		s.Outcome, s.After = Changed, after
	})
}

func validate(ctx context.Context, method string, inner func() field.ErrorList) field.ErrorList {
	t := from(ctx)
	if t == nil {
		return inner()
	}
	s := t.step(Validation, method)
	errs := inner()
	if len(errs) == 0 {
		s.end(Passed, "")
		return errs
	}
	s.end(Refused, "")
	s.change(func(stage *Stage) {
		for _, err := range errs {
			stage.Errors = append(stage.Errors, err.Error())
		}
	})
	return errs
}

// warn adds the warnings to the validation that is over.
func warn(ctx context.Context, warnings []string) []string {
	if t := from(ctx); t != nil {
		t.note(Validation, func(s *Stage) {
			for _, w := range warnings {
				s.Details = append(s.Details, Detail{"warning", w})
			}
		})
	}
	return warnings
}
