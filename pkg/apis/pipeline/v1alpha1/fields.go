package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Fields that traces can be selected by.
const (
	FieldName      = "metadata.name"
	FieldObjectUID = "object.uid"
)

func init() {
	localSchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("RequestTrace"), func(label, value string) (string, string, error) {
			switch label {
			case FieldName, FieldObjectUID:
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label, FieldName, FieldObjectUID)
		})
	})
}
