package v2alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	localSchemeBuilder.Register(addFieldLabelConversions)
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("Network"), func(label, value string) (string, string, error) {
		switch label {
		case "metadata.name", "metadata.namespace", "status.networkID":
			return label, value, nil
		}
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q, %q",
			label, "metadata.name", "metadata.namespace", "status.networkID")
	})
}
