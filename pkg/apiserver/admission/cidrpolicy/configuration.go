package cidrpolicy

import (
	"fmt"
	"io"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkadmission "github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
)

// ConfigurationKind is the kind of the plugin's configuration.
var ConfigurationKind = schema.GroupVersionKind{
	Group:   "cidrpolicy.admission.samplecrd.k8s.io",
	Version: "v1",
	Kind:    "CIDRPolicyConfiguration",
}

// Configuration says which subnets Networks may have. The empty one allows all.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// allowed are ranges such as 10.0.0.0/8 or fd00::/8. If there is one, each
	// subnet must lie inside one of them, whatever its family: a family
	// without an allowed range is refused.
	// +optional
	Allowed []string `json:"allowed,omitempty"`

	// reserved are ranges that no subnet may overlap, allowed or not.
	// +optional
	Reserved []string `json:"reserved,omitempty"`

	// overlap says what becomes of a subnet that overlaps one in the spec of
	// another Network of the namespace: Allow (the default), Warn or Deny.
	// It is best effort: two Networks made at one moment can both pass.
	// +optional
	Overlap Overlap `json:"overlap,omitempty"`
}

// Overlap is what becomes of a subnet that overlaps another Network's.
type Overlap string

// The values of Overlap.
const (
	OverlapAllow Overlap = "Allow"
	OverlapWarn  Overlap = "Warn"
	OverlapDeny  Overlap = "Deny"
)

// newPlugin makes a plugin of its configuration; nil is the empty one. A
// configuration that is not wholly understood is an error.
func newPlugin(config io.Reader) (*plugin, error) {
	var c Configuration
	if config != nil {
		data, err := io.ReadAll(config)
		if err != nil {
			return nil, fmt.Errorf("reading the %s: %w", ConfigurationKind.Kind, err)
		}
		if err := networkadmission.DecodeConfiguration(data, ConfigurationKind, &c); err != nil {
			return nil, fmt.Errorf("decoding the %s: %w", ConfigurationKind.Kind, err)
		}
	}
	allowed, errs := parseRanges(field.NewPath("allowed"), c.Allowed)
	reserved, reservedErrs := parseRanges(field.NewPath("reserved"), c.Reserved)
	errs = append(errs, reservedErrs...)
	switch c.Overlap {
	case "":
		c.Overlap = OverlapAllow
	case OverlapAllow, OverlapWarn, OverlapDeny:
	default:
		errs = append(errs, field.NotSupported(field.NewPath("overlap"), c.Overlap, []Overlap{OverlapAllow, OverlapWarn, OverlapDeny}))
	}
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("checking the %s: %w", ConfigurationKind.Kind, err)
	}
	return &plugin{Handler: newHandler(), allowed: allowed, reserved: reserved, overlap: c.Overlap}, nil
}

// parseRanges refuses host bits: in a policy they are a slip of the pen.
func parseRanges(fldPath *field.Path, values []string) ([]netip.Prefix, field.ErrorList) {
	var ranges []netip.Prefix
	var errs field.ErrorList
	for i, value := range values {
		if invalid := validation.IsValidCIDR(fldPath.Index(i), value); len(invalid) > 0 {
			errs = append(errs, invalid...)
			continue
		}
		ranges = append(ranges, netip.MustParsePrefix(value))
	}
	return ranges, errs
}
