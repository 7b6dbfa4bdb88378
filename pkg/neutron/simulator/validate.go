package simulator

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

const (
	maxText        = 255 // characters
	maxNameservers = 5
	maxRoutes      = 20
)

func stringUpTo(limit int) func(any) string {
	return func(v any) string {
		s, ok := v.(string)
		switch {
		case !ok:
			return fmt.Sprintf("'%s' is not a valid string", text(v))
		case utf8.RuneCountInString(s) > limit:
			return fmt.Sprintf("'%s' exceeds maximum length of %d", s, limit)
		}
		return ""
	}
}

func uniqueStrings(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("'%s' is not a list", text(v))
	}
	seen, twice := []string{}, []string{}
	for _, item := range list {
		if slices.Contains(seen, repr(item)) && !slices.Contains(twice, text(item)) {
			twice = append(twice, text(item))
		}
		seen = append(seen, repr(item))
	}
	if len(twice) > 0 {
		return fmt.Sprintf("Duplicate items in the list: '%s'", strings.Join(twice, ", "))
	}
	for _, item := range list {
		if reason := stringUpTo(maxText)(item); reason != "" {
			return reason
		}
	}
	return ""
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = text(item)
	}
	return out
}

func notNegative(v any) string {
	if n, _ := v.(int); n < 0 {
		return fmt.Sprintf("'%d' should be non-negative", n)
	}
	return ""
}

func oneOf[T comparable](valid ...T) func(any) string {
	return func(v any) string {
		if given, ok := v.(T); !ok || !slices.Contains(valid, given) {
			return text(v) + " is not in valid_values"
		}
		return ""
	}
}

func isUUID(v any) string {
	if s, ok := v.(string); ok {
		if _, err := uuid.Parse(s); err == nil {
			return ""
		}
	}
	return fmt.Sprintf("'%s' is not a valid UUID", text(v))
}

func address(v any) string {
	s, ok := v.(string)
	if ok && strings.Count(s, ".") == 3 && !strings.ContainsAny(s, ": ") {
		if plain, ok := decimalAddress(s); ok && plain.String() != s {
			return fmt.Sprintf("'%s' is not an accepted IP address, '%s' is recommended", s, plain)
		}
	}
	if a, err := netip.ParseAddr(s); !ok || err != nil || a.Zone() != "" {
		return fmt.Sprintf("'%s' is not a valid IP address", text(v))
	}
	return ""
}

func addressOrNone(v any) string {
	if v == nil {
		return ""
	}
	return address(v)
}

// decimalAddress reads an IPv4 address as Python's netaddr does: leading zeros mean nothing, absent numbers are 0.
func decimalAddress(s string) (netip.Addr, bool) {
	var b [4]byte
	numbers := strings.Split(s, ".")
	if len(numbers) > len(b) {
		return netip.Addr{}, false
	}
	for i, number := range numbers {
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		b[i] = byte(n)
	}
	return netip.AddrFrom4(b), true
}

func hasKeys(v any, first, second string) string {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprintf("Invalid input. '%s' must be a dictionary with keys: ['%s', '%s']", text(v), first, second)
	}
	_, one := object[first]
	_, two := object[second]
	if !one || !two || len(object) != 2 {
		provided := strings.Trim(repr(slices.Sorted(maps.Keys(object))), "[]")
		return fmt.Sprintf("Validation of dictionary's keys failed. Expected keys: {'%s', '%s'} Provided keys: {%s}", first, second, provided)
	}
	return ""
}

func allocationPools(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("Invalid data format for IP pool: '%s'", text(v))
	}
	for _, item := range list {
		if reason := hasKeys(item, "start", "end"); reason != "" {
			return reason
		}
		for _, end := range []string{"start", "end"} {
			if reason := address(item.(map[string]any)[end]); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// noneIsEmpty converts null to an empty list.
func noneIsEmpty(v any) (any, error) {
	if v == nil {
		return []any{}, nil
	}
	return v, nil
}

func nameservers(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("Invalid data format for nameserver: '%s'", text(v))
	}
	seen := []any{}
	for _, host := range list {
		if reason := address(host); reason != "" {
			return fmt.Sprintf("'%s' is not a valid nameserver. %s", text(host), reason)
		}
		if slices.Contains(seen, host) {
			return fmt.Sprintf("Duplicate nameserver '%s'", host)
		}
		seen = append(seen, host)
	}
	return ""
}

func hostRoutes(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("Invalid data format for hostroute: '%s'", text(v))
	}
	seen := []string{}
	for _, item := range list {
		if reason := hasKeys(item, "destination", "nexthop"); reason != "" {
			return reason
		}
		object := item.(map[string]any)
		if reason := destination(object["destination"]); reason != "" {
			return reason
		}
		if reason := address(object["nexthop"]); reason != "" {
			return reason
		}
		if slices.Contains(seen, repr(item)) {
			return fmt.Sprintf("Duplicate hostroute '%s'", repr(item))
		}
		seen = append(seen, repr(item))
	}
	return ""
}

func destination(v any) string {
	s, _ := v.(string)
	prefix, ok := parseCIDR(s)
	host, _, hasLength := strings.Cut(s, "/")
	addr, _ := parseCIDR(host)
	switch {
	case !ok || strings.ContainsAny(s, " \t\n"):
		return fmt.Sprintf("'%s' is not a valid CIDR", text(v))
	case !hasLength || addr.Addr() != prefix.Addr():
		return fmt.Sprintf("'%s' is not a recognized CIDR, '%s' is recommended", s, prefix)
	case within(prefix, loopback4) || within(prefix, loopback6):
		return fmt.Sprintf("'%s' is not a routable CIDR", s)
	}
	return ""
}

func fixedIPs(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("Invalid data format for fixed IP: '%s'", text(v))
	}
	seen := []any{}
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return fmt.Sprintf("Invalid data format for fixed IP: '%s'", text(item))
		}
		if ip, ok := object["ip_address"]; ok {
			if reason := address(ip); reason != "" {
				return reason
			}
			if slices.Contains(seen, ip) {
				return fmt.Sprintf("Duplicate IP address '%s'", ip)
			}
			seen = append(seen, ip)
		}
		if id, ok := object["subnet_id"]; ok {
			if reason := isUUID(id); reason != "" {
				return reason
			}
		}
	}
	return ""
}
