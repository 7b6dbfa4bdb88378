// Package fuzzer fills the hub types with values that a round trip through
// each version must bring back.
package fuzzer

import (
	"k8s.io/apimachinery/pkg/api/equality"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// Funcs returns the fuzzer functions of the group. Specs come out as
// defaulting leaves them, since decoding defaults them again.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(spec *samplecrd.NetworkSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.Subnets = make([]samplecrd.Subnet, c.Intn(4))
			for i := range spec.Subnets {
				c.Fill(&spec.Subnets[i])
			}
			// The one thing that v1 can't express.
			if len(spec.Subnets) == 1 && equality.Semantic.DeepEqual(spec.Subnets[0], samplecrd.Subnet{}) {
				spec.Subnets = nil
			}
			fillDefaults(spec)
		},
	}
}

// fillDefaults does to a hub spec what the versions do to theirs.
func fillDefaults(spec *samplecrd.NetworkSpec) {
	fill(&spec.ManagementPolicy, samplecrd.ManagementPolicyManaged)
	if spec.OpenStack != nil && spec.OpenStack.NetworkID != "" {
		fill(&spec.DeletionPolicy, samplecrd.DeletionPolicyRetain)
		return
	}
	fill(&spec.DeletionPolicy, samplecrd.DeletionPolicyDelete)
	fill(&spec.AdminState, samplecrd.AdminStateUp)
	for i := range spec.Subnets {
		if spec.Subnets[i].CIDR != "" {
			fill(&spec.Subnets[i].DHCP, samplecrd.Enabled)
		}
	}
}

func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
