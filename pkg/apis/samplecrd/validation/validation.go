// Package validation holds the rules that need nothing but the Network itself;
// a rule that needs another object is an admission plugin. All functions take
// hub objects and answer in the field paths of the version that the client sent.
package validation

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

const (
	maxSubnets = 16

	minMTU     = 68   // RFC 791
	minMTUIPv6 = 1280 // RFC 8200, section 5
	maxMTU     = 9216

	maxPhysicalNetwork = 64 // characters, the column of Neutron
)

var (
	metadataPath  = field.NewPath("metadata")
	specPath      = field.NewPath("spec")
	openStackPath = specPath.Child("openStack")

	networkTypes = []string{"flat", "vlan", "vxlan", "geneve", "gre", "local"}

	// maxSegmentationID holds the network types that have segments. The key of
	// GRE has 32 bits, of which the field can express 31.
	maxSegmentationID = map[string]int{"vlan": 4094, "vxlan": 1<<24 - 1, "geneve": 1<<24 - 1, "gre": math.MaxInt32}
)

// SubnetPath returns where subnet i of the hub stands in a version: in v1 the
// first one is the spec itself and the others are in spec.additionalSubnets;
// everywhere else all are in spec.subnets.
func SubnetPath(version string) func(i int) *field.Path {
	if version != "v1" {
		return func(i int) *field.Path { return specPath.Child("subnets").Index(i) }
	}
	return func(i int) *field.Path {
		if i == 0 {
			return specPath
		}
		return specPath.Child("additionalSubnets").Index(i - 1)
	}
}

// ValidateNetwork checks a Network that is to be created.
func ValidateNetwork(network *samplecrd.Network, subnetPath func(int) *field.Path) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMeta(&network.ObjectMeta, true, apimachineryvalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, validateSpec(&network.Spec, subnetPath)...)
	return append(errs, validateSubnets(&network.Spec, nil, subnetPath)...)
}

// ValidateNetworkUpdate checks a change of a Network. An error that the stored
// object has too is not reported: what an older rule accepted, or what got into
// etcd past validation, must not block a change of something else.
func ValidateNetworkUpdate(newNetwork, oldNetwork *samplecrd.Network, subnetPath func(int) *field.Path) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&newNetwork.ObjectMeta, &oldNetwork.ObjectMeta, metadataPath)
	newSpec, oldSpec := &newNetwork.Spec, &oldNetwork.Spec
	if equality.Semantic.DeepEqual(newSpec, oldSpec) {
		return errs
	}
	if oldNetwork.DeletionTimestamp != nil {
		return append(errs, field.Forbidden(specPath, "must not be changed while the Network is being deleted"))
	}
	errs = append(errs, introduced(validateSpec(newSpec, subnetPath), validateSpec(oldSpec, subnetPath))...)
	errs = append(errs, validateSubnets(newSpec, oldSpec, subnetPath)...)
	return append(errs, validateImmutable(newSpec, oldSpec)...)
}

// ValidateNetworkStatusUpdate checks a change of the status. What Neutron said
// is taken as it is.
func ValidateNetworkStatusUpdate(newNetwork, oldNetwork *samplecrd.Network) field.ErrorList {
	conditionsPath := field.NewPath("status", "conditions")
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&newNetwork.ObjectMeta, &oldNetwork.ObjectMeta, metadataPath)
	return append(errs, introduced(
		metav1validation.ValidateConditions(newNetwork.Status.Conditions, conditionsPath),
		metav1validation.ValidateConditions(oldNetwork.Status.Conditions, conditionsPath))...)
}

// introduced returns those of errs that the stored object does not have.
func introduced(errs, storedErrs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(storedErrs, func(stored *field.Error) bool { return reflect.DeepEqual(err, stored) })
	})
}

// validateSpec checks everything but the single subnets.
func validateSpec(spec *samplecrd.NetworkSpec, subnetPath func(int) *field.Path) field.ErrorList {
	errs := validateSubnetCount(spec, subnetPath)
	errs = append(errs, validateMTU(spec)...)
	errs = append(errs, validateEnum(specPath.Child("adminState"), spec.AdminState,
		samplecrd.AdminStateUp, samplecrd.AdminStateDown)...)
	errs = append(errs, validatePolicies(spec)...)
	if spec.OpenStack != nil {
		errs = append(errs, validateOpenStack(spec.OpenStack)...)
	}
	return errs
}

func validateSubnetCount(spec *samplecrd.NetworkSpec, subnetPath func(int) *field.Path) field.ErrorList {
	count, observed := len(spec.Subnets), spec.ManagementPolicy == samplecrd.ManagementPolicyObserve
	switch {
	case observed && count > 0:
		return field.ErrorList{field.Forbidden(subnetsPath(subnetPath), "subnets must not be declared where managementPolicy is Observe")}
	case !observed && count == 0 && networkID(spec) == "":
		return field.ErrorList{field.Required(subnetsPath(subnetPath), "")}
	case count > maxSubnets:
		// The index of the first subnet too many is also the length that its list may have.
		list, index, _ := strings.Cut(subnetPath(maxSubnets).String(), "[")
		limit, _ := strconv.Atoi(strings.TrimSuffix(index, "]"))
		return field.ErrorList{field.TooMany(field.NewPath(list), count-maxSubnets+limit, limit)}
	}
	return nil
}

// subnetsPath stands for the subnets as a whole: the list, or where the first
// one stands flat, the field that it begins with.
func subnetsPath(subnetPath func(int) *field.Path) *field.Path {
	first := subnetPath(0)
	if list, _, isList := strings.Cut(first.String(), "["); isList {
		return field.NewPath(list)
	}
	return first.Child("cidr")
}

func validateMTU(spec *samplecrd.NetworkSpec) field.ErrorList {
	if spec.MTU == nil {
		return nil
	}
	mtuPath, mtu := specPath.Child("mtu"), *spec.MTU
	if mtu < minMTU || mtu > maxMTU {
		return field.ErrorList{field.Invalid(mtuPath, mtu, utilvalidation.InclusiveRangeError(minMTU, maxMTU))}
	}
	if mtu < minMTUIPv6 && slices.ContainsFunc(spec.Subnets, isIPv6) {
		return field.ErrorList{field.Invalid(mtuPath, mtu, fmt.Sprintf("must be at least %d with an IPv6 subnet", minMTUIPv6))}
	}
	return nil
}

func validatePolicies(spec *samplecrd.NetworkSpec) field.ErrorList {
	deletionPath := specPath.Child("deletionPolicy")
	errs := validateEnum(specPath.Child("managementPolicy"), spec.ManagementPolicy,
		samplecrd.ManagementPolicyManaged, samplecrd.ManagementPolicyObserve)
	errs = append(errs, validateEnum(deletionPath, spec.DeletionPolicy,
		samplecrd.DeletionPolicyDelete, samplecrd.DeletionPolicyRetain)...)
	if spec.ManagementPolicy != samplecrd.ManagementPolicyObserve {
		return errs
	}
	if networkID(spec) == "" {
		// deletionPolicy is not looked at: with a networkID it would have another default.
		return append(errs, field.Required(openStackPath.Child("networkID"), ""))
	}
	if spec.DeletionPolicy == samplecrd.DeletionPolicyDelete {
		errs = append(errs, field.Invalid(deletionPath, spec.DeletionPolicy,
			"must be Retain where managementPolicy is Observe, which never writes to Neutron"))
	}
	return errs
}

func validateOpenStack(openStack *samplecrd.OpenStack) field.ErrorList {
	var errs field.ErrorList
	if openStack.NetworkID != "" {
		errs = validate.UUID(context.Background(), operation.Operation{}, openStackPath.Child("networkID"), &openStack.NetworkID, nil)
	}
	if ref := openStack.CredentialsRef; ref != nil {
		errs = append(errs, validateCredentialsRef(ref, openStackPath.Child("credentialsRef"))...)
	}
	if openStack.Provider != nil {
		errs = append(errs, validateProvider(openStack.Provider, openStackPath.Child("provider"))...)
	}
	errs = append(errs, validateToggle(openStackPath.Child("external"), openStack.External)...)
	errs = append(errs, validateToggle(openStackPath.Child("shared"), openStack.Shared)...)
	return append(errs, validateToggle(openStackPath.Child("portSecurity"), openStack.PortSecurity)...)
}

func validateCredentialsRef(ref *samplecrd.CredentialsRef, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	secretPath := fldPath.Child("secretName")
	if ref.SecretName == "" {
		errs = append(errs, field.Required(secretPath, ""))
	} else {
		for _, msg := range apimachineryvalidation.NameIsDNSSubdomain(ref.SecretName, false) {
			errs = append(errs, field.Invalid(secretPath, ref.SecretName, msg))
		}
	}
	if ref.CloudName == "" {
		errs = append(errs, field.Required(fldPath.Child("cloudName"), ""))
	}
	return errs
}

func validateProvider(provider *samplecrd.Provider, fldPath *field.Path) field.ErrorList {
	errs := validateEnum(fldPath.Child("networkType"), provider.NetworkType, networkTypes...)
	if utf8.RuneCountInString(provider.PhysicalNetwork) > maxPhysicalNetwork {
		errs = append(errs, field.TooLongCharacters(fldPath.Child("physicalNetwork"), provider.PhysicalNetwork, maxPhysicalNetwork))
	}
	if provider.SegmentationID == nil {
		return errs
	}
	idPath, id := fldPath.Child("segmentationID"), int(*provider.SegmentationID)
	limit, segmented := maxSegmentationID[provider.NetworkType]
	switch {
	case provider.NetworkType == "":
		errs = append(errs, field.Forbidden(idPath, "must not be set without networkType"))
	case segmented && (id < 1 || id > limit):
		errs = append(errs, field.Invalid(idPath, id, utilvalidation.InclusiveRangeError(1, limit)))
	case !segmented && slices.Contains(networkTypes, provider.NetworkType):
		errs = append(errs, field.Forbidden(idPath, fmt.Sprintf("must not be set with networkType %s", provider.NetworkType)))
	}
	return errs
}

// validateImmutable checks the fields that must stay; the ipv6 modes of a kept
// subnet are checked with the subnet.
func validateImmutable(newSpec, oldSpec *samplecrd.NetworkSpec) field.ErrorList {
	errs := apimachineryvalidation.ValidateImmutableField(networkID(newSpec), networkID(oldSpec), openStackPath.Child("networkID"))
	if !equality.Semantic.DeepEqual(provider(newSpec), provider(oldSpec)) {
		// The hub has no JSON names to show the value with.
		errs = append(errs, field.Invalid(openStackPath.Child("provider"), field.OmitValueType{}, apimachineryvalidation.FieldImmutableErrorMsg))
	}
	return errs
}

// validateEnum accepts the empty value: defaulting has filled what has a
// default, elsewhere empty means "as it is".
func validateEnum[T ~string](fldPath *field.Path, value T, choices ...T) field.ErrorList {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(fldPath, value, choices)}
}

func validateToggle(fldPath *field.Path, toggle samplecrd.Toggle) field.ErrorList {
	return validateEnum(fldPath, toggle, samplecrd.Enabled, samplecrd.Disabled)
}

func networkID(spec *samplecrd.NetworkSpec) string {
	return ptr.Deref(spec.OpenStack, samplecrd.OpenStack{}).NetworkID
}

func provider(spec *samplecrd.NetworkSpec) samplecrd.Provider {
	return ptr.Deref(ptr.Deref(spec.OpenStack, samplecrd.OpenStack{}).Provider, samplecrd.Provider{})
}
