package v1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

func init() {
	localSchemeBuilder.Register(addFieldLabelConversions)
}

//nolint:revive // the name is what conversion-gen looks for
func Convert_v1_NetworkSpec_To_samplecrd_NetworkSpec(in *NetworkSpec, out *samplecrd.NetworkSpec, s conversion.Scope) error {
	if err := autoConvert_v1_NetworkSpec_To_samplecrd_NetworkSpec(in, out, s); err != nil {
		return err
	}
	// One flat field is enough to make a subnet of, even without a CIDR:
	// validation then asks for it, and no user data moves or vanishes.
	if len(in.AdditionalSubnets) == 0 && equality.Semantic.DeepEqual(in.Subnet, Subnet{}) {
		out.Subnets = nil
		return nil
	}
	out.Subnets = make([]samplecrd.Subnet, 1+len(in.AdditionalSubnets))
	if err := Convert_v1_Subnet_To_samplecrd_Subnet(&in.Subnet, &out.Subnets[0], s); err != nil {
		return err
	}
	for i := range in.AdditionalSubnets {
		if err := Convert_v1_Subnet_To_samplecrd_Subnet(&in.AdditionalSubnets[i], &out.Subnets[i+1], s); err != nil {
			return err
		}
	}
	return nil
}

//nolint:revive // the name is what conversion-gen looks for
func Convert_samplecrd_NetworkSpec_To_v1_NetworkSpec(in *samplecrd.NetworkSpec, out *NetworkSpec, s conversion.Scope) error {
	if err := autoConvert_samplecrd_NetworkSpec_To_v1_NetworkSpec(in, out, s); err != nil {
		return err
	}
	out.Subnet, out.AdditionalSubnets = Subnet{}, nil
	if len(in.Subnets) == 0 {
		return nil
	}
	if err := Convert_samplecrd_Subnet_To_v1_Subnet(&in.Subnets[0], &out.Subnet, s); err != nil {
		return err
	}
	if len(in.Subnets) > 1 {
		out.AdditionalSubnets = make([]Subnet, len(in.Subnets)-1)
	}
	for i := range out.AdditionalSubnets {
		if err := Convert_samplecrd_Subnet_To_v1_Subnet(&in.Subnets[i+1], &out.AdditionalSubnets[i], s); err != nil {
			return err
		}
	}
	return nil
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("Network"), func(label, value string) (string, string, error) {
		switch label {
		case "metadata.name", "metadata.namespace", "spec.cidr", "status.networkID":
			return label, value, nil
		}
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q, %q, %q",
			label, "metadata.name", "metadata.namespace", "spec.cidr", "status.networkID")
	})
}
