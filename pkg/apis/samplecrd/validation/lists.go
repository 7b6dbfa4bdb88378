package validation

import (
	"fmt"
	"net/netip"
	"slices"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

// addrRange is a range of addresses, both ends included.
type addrRange struct{ first, last netip.Addr }

func (r addrRange) String() string { return r.first.String() + "-" + r.last.String() }

func (r addrRange) contains(addr netip.Addr) bool {
	return r.first.Compare(addr) <= 0 && addr.Compare(r.last) <= 0
}

// allocatable is the range that Neutron hands out addresses from: not the
// network address, and for IPv4 not the broadcast address.
func allocatable(prefix netip.Prefix) addrRange {
	r := addrRange{prefix.Addr(), lastAddr(prefix)}
	if isPointToPoint(prefix) || prefix.IsSingleIP() {
		return r
	}
	r.first = r.first.Next()
	if prefix.Addr().Is4() {
		r.last = r.last.Prev()
	}
	return r
}

func validatePools(pools []samplecrd.AllocationPool, prefix netip.Prefix, gateway netip.Addr, fldPath *field.Path) field.ErrorList {
	pools, errs := truncate(pools, maxAllocationPools, fldPath)
	var before []addrRange
	for i, pool := range pools {
		poolPath := fldPath.Index(i)
		first, startErrs := parsePoolAddr(pool.Start, prefix, poolPath.Child("start"))
		last, endErrs := parsePoolAddr(pool.End, prefix, poolPath.Child("end"))
		if len(startErrs)+len(endErrs) > 0 {
			errs = append(append(errs, startErrs...), endErrs...)
			continue
		}
		if last.Less(first) {
			errs = append(errs, field.Invalid(poolPath.Child("end"), pool.End, fmt.Sprintf("must not be below start %s", first)))
			continue
		}
		r := addrRange{first, last}
		if gateway.IsValid() && r.contains(gateway) {
			errs = append(errs, field.Invalid(poolPath, r.String(), fmt.Sprintf("must not hold the gateway %s", gateway)))
		}
		for _, other := range before {
			if r.first.Compare(other.last) <= 0 && other.first.Compare(r.last) <= 0 {
				errs = append(errs, field.Invalid(poolPath, r.String(), fmt.Sprintf("must not overlap the pool %s", other)))
			}
		}
		before = append(before, r)
	}
	return errs
}

func parsePoolAddr(value string, prefix netip.Prefix, fldPath *field.Path) (netip.Addr, field.ErrorList) {
	addr, errs := parseAddr(value, prefix, fldPath)
	if len(errs) > 0 || !prefix.IsValid() {
		return addr, errs
	}
	if within := allocatable(prefix); !within.contains(addr) {
		errs = append(errs, field.Invalid(fldPath, value, fmt.Sprintf("must be within %s", within)))
	}
	return addr, errs
}

func validateNameservers(nameservers []string, prefix netip.Prefix, fldPath *field.Path) field.ErrorList {
	nameservers, errs := truncate(nameservers, maxDNSNameservers, fldPath)
	for i, nameserver := range nameservers {
		_, addrErrs := parseAddr(nameserver, prefix, fldPath.Index(i))
		errs = append(errs, addrErrs...)
		if len(addrErrs) == 0 && slices.Contains(nameservers[:i], nameserver) {
			errs = append(errs, field.Duplicate(fldPath.Index(i), nameserver))
		}
	}
	return errs
}

func validateRoutes(routes []samplecrd.HostRoute, prefix netip.Prefix, fldPath *field.Path) field.ErrorList {
	routes, errs := truncate(routes, maxHostRoutes, fldPath)
	for i, route := range routes {
		routePath := fldPath.Index(i)
		routeErrs := validateDestination(route.Destination, prefix, routePath.Child("destination"))
		_, addrErrs := parseAddr(route.NextHop, prefix, routePath.Child("nextHop"))
		routeErrs = append(routeErrs, addrErrs...)
		if len(routeErrs) == 0 && slices.Contains(routes[:i], route) {
			routeErrs = append(routeErrs, field.Duplicate(routePath, route.Destination+" via "+route.NextHop))
		}
		errs = append(errs, routeErrs...)
	}
	return errs
}

// validateDestination refuses host bits, as Neutron does.
func validateDestination(destination string, prefix netip.Prefix, fldPath *field.Path) field.ErrorList {
	if destination == "" {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	if errs := utilvalidation.IsValidCIDR(fldPath, destination); len(errs) > 0 {
		return errs
	}
	parsed, _ := netip.ParsePrefix(destination)
	return validateFamily(parsed.Addr(), destination, prefix, "range", fldPath)
}

// parseAddr also refuses an address of another family than a valid prefix has.
func parseAddr(value string, prefix netip.Prefix, fldPath *field.Path) (netip.Addr, field.ErrorList) {
	if value == "" {
		return netip.Addr{}, field.ErrorList{field.Required(fldPath, "")}
	}
	if errs := utilvalidation.IsValidIP(fldPath, value); len(errs) > 0 {
		return netip.Addr{}, errs
	}
	addr, _ := netip.ParseAddr(value)
	return addr, validateFamily(addr, value, prefix, "address", fldPath)
}

func validateFamily(addr netip.Addr, value string, prefix netip.Prefix, noun string, fldPath *field.Path) field.ErrorList {
	if !prefix.IsValid() || addr.BitLen() == prefix.Addr().BitLen() {
		return nil
	}
	family := "IPv4"
	if prefix.Addr().Is6() {
		family = "IPv6"
	}
	return field.ErrorList{field.Invalid(fldPath, value, fmt.Sprintf("must be an %s %s, as the CIDR is", family, noun))}
}

// truncate refuses a list that is too long and returns what is left to look at.
func truncate[T any](list []T, limit int, fldPath *field.Path) ([]T, field.ErrorList) {
	if len(list) <= limit {
		return list, nil
	}
	return list[:limit], field.ErrorList{field.TooMany(fldPath, len(list), limit)}
}
