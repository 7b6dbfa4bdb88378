package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// desired is what a Network wants of Neutron, in Neutron's words. A nil
// attribute is neither sent nor compared.
type desired struct {
	marker string
	// takenOver says that the network is not of our making: what the spec
	// leaves out is as it is, and what goes from the spec is let go.
	takenOver bool
	// from is the marker of the owner that it may be taken over from.
	from    string
	network neutron.NetworkAttributes
	subnets []desiredSubnet
}

// owns tells whether the description proves that a network or subnet is ours
// to change. On what we made it is the marker and nothing else: any other text
// was written by someone else.
func (d desired) owns(description string) bool {
	if d.takenOver {
		return marked(description, d.marker)
	}
	return description == d.marker
}

// desiredSubnet is told from the others by its masked CIDR.
type desiredSubnet struct {
	cidr       netip.Prefix
	attributes neutron.SubnetAttributes
}

// actual is what there is in Neutron.
type actual struct {
	network *neutron.Network // nil: none
	subnets []neutron.Subnet // of that network, whoever made them
}

// verb is what an operation does.
type verb string

const (
	createNetwork verb = "create network"
	updateNetwork verb = "update network"
	createSubnet  verb = "create subnet"
	updateSubnet  verb = "update subnet"
	deleteSubnet  verb = "delete subnet"
)

// label names the verb in a metric.
func (v verb) label() string { return strings.ReplaceAll(string(v), " ", "_") }

// operation is one call to Neutron. It refers to no other.
type operation struct {
	verb     verb
	id       string // of the network or subnet that is there
	cidr     string // of the subnet, for people
	revision int    // of what is changed
	network  neutron.NetworkAttributes
	subnet   neutron.SubnetAttributes
}

func (o operation) String() string {
	if o.cidr == "" {
		return string(o.verb)
	}
	return fmt.Sprintf("%s %s", o.verb, o.cidr)
}

// plan returns the operations that lead from what is there to what is wanted.
// It is pure: the caller does the first one, folds the answer into have, and
// plans again, until nothing is left.
//
// Changes in place come first, then new subnets, then those that can only be
// made once an old one that overlaps is gone, then the rest of the old ones: a
// subnet whose ports keep it holds up nothing that does not need its place.
func plan(want desired, have actual) []operation {
	if have.network == nil {
		return []operation{{verb: createNetwork, network: want.network}}
	}
	var operations []operation
	if changes, ok := networkChanges(want, *have.network); ok {
		operations = append(operations, operation{
			verb: updateNetwork, id: have.network.ID, revision: have.network.Revision, network: changes,
		})
	}
	surplus := surplusSubnets(want, have)
	var crowded []desiredSubnet
	for _, w := range want.subnets {
		if h := find(have.subnets, w.cidr); h != nil {
			if changes, ok := subnetChanges(want, w, *h); ok {
				operations = append(operations, operation{
					verb: updateSubnet, id: h.ID, cidr: h.CIDR, revision: h.Revision, subnet: changes,
				})
			}
		} else if slices.ContainsFunc(surplus, overlaps(w.cidr)) {
			crowded = append(crowded, w)
		} else {
			operations = append(operations, create(have.network.ID, w))
		}
	}
	for _, w := range crowded {
		for _, s := range surplus {
			if overlaps(w.cidr)(s) {
				operations = append(operations, letGo(want, s))
			}
		}
		surplus = slices.DeleteFunc(surplus, overlaps(w.cidr))
		operations = append(operations, create(have.network.ID, w))
	}
	for _, s := range surplus {
		operations = append(operations, letGo(want, s))
	}
	return operations
}

// surplusSubnets are those that are ours and that nobody wants any more.
func surplusSubnets(want desired, have actual) []neutron.Subnet {
	var surplus []neutron.Subnet
	for _, s := range have.subnets {
		wanted := slices.ContainsFunc(want.subnets, func(w desiredSubnet) bool { return same(w.cidr, s.CIDR) })
		if !wanted && want.owns(s.Description) {
			surplus = append(surplus, s)
		}
	}
	return surplus
}

func create(networkID string, w desiredSubnet) operation {
	return operation{verb: createSubnet, id: networkID, cidr: w.cidr.String(), subnet: w.attributes}
}

// letGo deletes a subnet that we made, and takes the marker off one that was
// there before us.
func letGo(want desired, s neutron.Subnet) operation {
	if s.Description == want.marker {
		return operation{verb: deleteSubnet, id: s.ID, cidr: s.CIDR}
	}
	released := unmark(s.Description, want.marker)
	return operation{
		verb: updateSubnet, id: s.ID, cidr: s.CIDR, revision: s.Revision,
		subnet: neutron.SubnetAttributes{Description: &released},
	}
}

func find(subnets []neutron.Subnet, cidr netip.Prefix) *neutron.Subnet {
	i := slices.IndexFunc(subnets, func(s neutron.Subnet) bool { return same(cidr, s.CIDR) })
	if i < 0 {
		return nil
	}
	return &subnets[i]
}

func same(cidr netip.Prefix, text string) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Masked() == cidr
}

func overlaps(cidr netip.Prefix) func(neutron.Subnet) bool {
	return func(s neutron.Subnet) bool {
		p, err := netip.ParsePrefix(s.CIDR)
		return err == nil && p.Overlaps(cidr)
	}
}
