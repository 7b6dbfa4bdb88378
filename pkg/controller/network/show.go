package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
)

// show tells who watches the pipeline what is there, and what is to be done.
func (p *pass) show(ctx context.Context, plan ...string) {
	if !pipeline.Shown(ctx) {
		return
	}
	there := "no network"
	var details []pipeline.Detail
	if n := p.have.network; n != nil {
		there = fmt.Sprintf("network %s", n.ID)
		details = append(details, pipeline.Detail{Name: "status", Value: n.Status})
	}
	for _, s := range p.have.subnets {
		details = append(details, pipeline.Detail{Name: "subnet", Value: s.ID + " " + s.CIDR})
	}
	pipeline.Note(ctx, pipeline.Observe, there, details...)
	pipeline.Note(ctx, pipeline.Plan, cmp.Or(strings.Join(plan, ", "), "nothing to do"))
}

func (p *pass) showPlan(ctx context.Context, operations []operation) {
	texts := make([]string, len(operations))
	for i, o := range operations {
		texts[i] = o.String()
	}
	p.show(ctx, texts...)
}

// result is how a pass ended, in one word or sentence, and whether it was the
// last for now.
func (p *pass) result(err error) (string, bool) {
	f, failed := errors.AsType[*failure](err)
	switch {
	case failed:
		return f.Error(), needsPerson(f.reason)
	case err != nil:
		return err.Error(), false
	case p.network.DeletionTimestamp != nil:
		return "deleted", true
	}
	if ready := meta.FindStatusCondition(p.network.Status.Conditions, samplecrdv1.ConditionReady); ready != nil {
		return ready.Reason, true
	}
	return "", true
}
