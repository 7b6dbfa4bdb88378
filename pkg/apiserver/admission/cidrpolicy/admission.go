// Package cidrpolicy is the admission plugin CIDRPolicy: it says which subnets
// Networks may have, by allowed and reserved ranges and by the subnets of the
// other Networks of the namespace.
package cidrpolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/validation"
	networkadmission "github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
	listers "github.com/samplecrd/network-apiserver/pkg/generated/listers/samplecrd/v1"
)

// PluginName is the plugin's name in flags and in the admission configuration.
const PluginName = "CIDRPolicy"

// Register makes the plugin known. Its configuration is a Configuration;
// without one it allows everything.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(config io.Reader) (admission.Interface, error) {
		return newPlugin(config)
	})
}

type plugin struct {
	*admission.Handler
	allowed  []netip.Prefix
	reserved []netip.Prefix
	overlap  Overlap
	lister   listers.NetworkLister
}

var (
	_ admission.ValidationInterface                = &plugin{}
	_ networkadmission.WantsNetworkInformerFactory = &plugin{}
)

func newHandler() *admission.Handler {
	return admission.NewHandler(admission.Create, admission.Update)
}

// SetNetworkInformerFactory asks for Networks only where other Networks
// matter: nobody else pays for a watch.
func (p *plugin) SetNetworkInformerFactory(factory informers.SharedInformerFactory) {
	if p.overlap == OverlapAllow {
		return
	}
	networks := factory.Samplecrd().V1().Networks()
	p.lister = networks.Lister()
	p.SetReadyFunc(networks.Informer().HasSynced)
}

// ValidateInitialization refuses to start without what the configuration needs.
func (p *plugin) ValidateInitialization() error {
	if p.overlap != OverlapAllow && p.lister == nil {
		return fmt.Errorf("overlap %s needs informers of Networks, which read %s: that version must be served", p.overlap, samplecrdv1.GroupVersion)
	}
	return nil
}

// Validate refuses subnets that the policy does not allow, all of them in one
// answer, in the field paths of the version the client sent. What an object
// already has is not looked at, nor an object that is being deleted: a policy
// that came later must not lock it in.
func (p *plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != samplecrd.Resource("networks") || a.GetSubresource() != "" {
		return nil
	}
	network, ok := a.GetObject().(*samplecrd.Network)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("%s: object is a %T, not a Network", PluginName, a.GetObject()))
	}
	if network.DeletionTimestamp != nil {
		return nil
	}
	oldNetwork, _ := a.GetOldObject().(*samplecrd.Network)
	added := addedSubnets(network, oldNetwork, validation.SubnetPath(a.GetKind().Version))
	if len(added) == 0 {
		return nil
	}
	others, err := p.others(a, network.Name)
	if err != nil {
		return err
	}
	var errs field.ErrorList
	for _, s := range added {
		errs = append(errs, p.checkRanges(s)...)
		other, prefix := firstOverlapping(others, s.prefix)
		switch {
		case other == nil:
		case p.overlap == OverlapDeny:
			errs = append(errs, field.Invalid(s.fldPath, s.cidr, fmt.Sprintf("must not overlap %s of Network %q", prefix, other.Name)))
		default:
			warning.AddWarning(ctx, "", fmt.Sprintf("%s: %q overlaps %s of Network %q", s.fldPath, s.cidr, prefix, other.Name))
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// subnet is a subnet as the client wrote it, and what it means.
type subnet struct {
	fldPath *field.Path
	cidr    string
	prefix  netip.Prefix
}

// addedSubnets leaves out CIDRs that do not parse: they are validation's.
func addedSubnets(newNetwork, oldNetwork *samplecrd.Network, subnetPath func(int) *field.Path) []subnet {
	kept := sets.New[netip.Prefix]()
	if oldNetwork != nil {
		for _, s := range oldNetwork.Spec.Subnets {
			if prefix, err := netip.ParsePrefix(s.CIDR); err == nil {
				kept.Insert(prefix.Masked())
			}
		}
	}
	var added []subnet
	for i, s := range newNetwork.Spec.Subnets {
		if prefix, err := netip.ParsePrefix(s.CIDR); err == nil && !kept.Has(prefix.Masked()) {
			added = append(added, subnet{fldPath: subnetPath(i).Child("cidr"), cidr: s.CIDR, prefix: prefix.Masked()})
		}
	}
	return added
}

func (p *plugin) checkRanges(s subnet) field.ErrorList {
	var errs field.ErrorList
	if len(p.allowed) > 0 && !slices.ContainsFunc(p.allowed, func(r netip.Prefix) bool {
		return r.Bits() <= s.prefix.Bits() && r.Overlaps(s.prefix)
	}) {
		errs = append(errs, field.Invalid(s.fldPath, s.cidr, p.notAllowed(s.prefix)))
	}
	for _, r := range p.reserved {
		if r.Overlaps(s.prefix) {
			errs = append(errs, field.Invalid(s.fldPath, s.cidr, fmt.Sprintf("must not overlap the reserved range %s", r)))
		}
	}
	return errs
}

func (p *plugin) notAllowed(prefix netip.Prefix) string {
	ranges := make([]string, len(p.allowed))
	sameFamily := false
	for i, r := range p.allowed {
		ranges[i] = r.String()
		sameFamily = sameFamily || r.Addr().Is4() == prefix.Addr().Is4()
	}
	detail := "must lie inside an allowed range: " + strings.Join(ranges, ", ")
	switch {
	case sameFamily:
		return detail
	case prefix.Addr().Is4():
		return detail + " (none is IPv4)"
	default:
		return detail + " (none is IPv6)"
	}
}

// others returns the other Networks of the namespace by name; none where they
// do not matter. One that is being deleted still has its subnets and counts.
func (p *plugin) others(a admission.Attributes, name string) ([]*samplecrdv1.Network, error) {
	if p.overlap == OverlapAllow {
		return nil, nil
	}
	if !p.WaitForReady() {
		return nil, admission.NewForbidden(a, errors.New("the other Networks of the namespace are not known yet, try again"))
	}
	networks, err := p.lister.Networks(a.GetNamespace()).List(labels.Everything())
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("listing the Networks of namespace %s: %w", a.GetNamespace(), err))
	}
	networks = slices.DeleteFunc(networks, func(n *samplecrdv1.Network) bool { return n.Name == name })
	slices.SortFunc(networks, func(x, y *samplecrdv1.Network) int { return cmp.Compare(x.Name, y.Name) })
	return networks, nil
}

// firstOverlapping returns the first Network with a subnet that overlaps
// prefix, and that subnet; nil if there is none.
func firstOverlapping(networks []*samplecrdv1.Network, prefix netip.Prefix) (*samplecrdv1.Network, netip.Prefix) {
	for _, n := range networks {
		for _, s := range append([]samplecrdv1.Subnet{n.Spec.Subnet}, n.Spec.AdditionalSubnets...) {
			if other, err := netip.ParsePrefix(s.CIDR); err == nil && other.Overlaps(prefix) {
				return n, other.Masked()
			}
		}
	}
	return nil, netip.Prefix{}
}
