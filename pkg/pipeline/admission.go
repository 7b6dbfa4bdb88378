package pipeline

import (
	"context"

	genericadmission "k8s.io/apiserver/pkg/admission"
)

// Decorator shows what each admission plugin does. It is the first to be added:
// what other decorators make of a plugin does not tell any more what it is.
func (r *Recorder) Decorator() genericadmission.Decorator {
	return genericadmission.DecoratorFunc(func(handler genericadmission.Interface, name string) genericadmission.Interface {
		mutates, isMutating := handler.(genericadmission.MutationInterface)
		validates, isValidating := handler.(genericadmission.ValidationInterface)
		switch {
		case isMutating && isValidating:
			return struct {
				mutating
				validator
			}{mutating{mutates, name}, validator{validates, name}}
		case isMutating:
			return mutating{mutates, name}
		case isValidating:
			return validating{validates, validator{validates, name}}
		}
		return handler
	})
}

type mutating struct {
	genericadmission.MutationInterface
	name string
}

func (p mutating) Admit(ctx context.Context, a genericadmission.Attributes, o genericadmission.ObjectInterfaces) error {
	t := from(ctx)
	if t == nil || a.GetObject() == nil {
		return p.MutationInterface.Admit(ctx, a, o)
	}
	before := t.see(a.GetObject())
	s := t.step(MutatingAdmission, p.name)
	if err := p.MutationInterface.Admit(ctx, a, o); err != nil {
		s.endWith(Refused, err)
		return err
	}
	t.saw(s, before, a.GetObject())
	return nil
}

type validating struct {
	genericadmission.Interface
	validator
}

type validator struct {
	plugin genericadmission.ValidationInterface
	name   string
}

func (p validator) Validate(ctx context.Context, a genericadmission.Attributes, o genericadmission.ObjectInterfaces) error {
	t := from(ctx)
	if t == nil {
		return p.plugin.Validate(ctx, a, o)
	}
	s := t.step(ValidatingAdmission, p.name)
	err := p.plugin.Validate(ctx, a, o)
	s.endWith(Refused, err)
	return err
}
