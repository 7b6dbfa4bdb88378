package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// text is a value as Python's str has it, which Neutron's messages show.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return repr(v)
}

// repr is a value as Python's repr has it. Keys of a dictionary come sorted.
func repr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
			return `"` + v + `"`
		}
		return "'" + strings.ReplaceAll(v, "'", `\'`) + "'"
	case []string:
		return reprList(v)
	case []any:
		return reprList(v)
	case map[string]any:
		items := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, repr(key)+": "+repr(v[key]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

func reprList[T any](list []T) string {
	items := make([]string, len(list))
	for i, v := range list {
		items[i] = repr(v)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// integer converts as Python's int does.
func integer(v any) (any, error) {
	switch n := v.(type) {
	case bool:
		if n {
			return 1, nil
		}
		return 0, nil
	case string:
		if i, err := strconv.ParseInt(strings.TrimSpace(n), 10, 32); err == nil {
			return int(i), nil
		}
	case json.Number:
		if f, err := n.Float64(); err == nil && f > -(1<<31) && f < 1<<31 {
			return int(f), nil
		}
	}
	return nil, invalidInput("'%s' is not an integer", text(v))
}

// boolean converts as oslo's strict bool_from_string does.
func boolean(v any) (any, error) {
	switch strings.ToLower(strings.TrimSpace(text(v))) {
	case "1", "t", "true", "on", "y", "yes":
		return true, nil
	case "0", "f", "false", "off", "n", "no":
		return false, nil
	}
	return nil, invalidInput("'%s' cannot be converted to boolean", text(v))
}
