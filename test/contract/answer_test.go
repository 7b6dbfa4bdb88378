package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unordered are the lists that Neutron gives in any order. Scripts have them sorted.
var unordered = []string{"allocation_pools", "fixed_ips"}

// narrow leaves of got what want names.
func narrow(got, want any) any {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || len(want) == 0 {
			return got
		}
		out := map[string]any{}
		for key, v := range want {
			value, ok := object[key]
			if list, is := value.([]any); is && slices.Contains(unordered, key) {
				value = sorted(list)
			}
			if ok {
				out[key] = narrow(value, v)
			}
		}
		return out
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return got
		}
		out := make([]any, len(list))
		for i, v := range list {
			out[i] = narrow(v, want[i])
		}
		return out
	case string:
		text, ok := got.(string)
		if expr, is := strings.CutPrefix(want, "~"); is && ok && regexp.MustCompile("^(?:"+expr+")$").MatchString(text) {
			return want
		}
	}
	return got
}

func sorted(list []any) []any {
	return slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// dig takes a value out of an answer: network.subnets.0.
func dig(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(node) {
				return nil
			}
			v = node[i]
		}
	}
	return v
}
