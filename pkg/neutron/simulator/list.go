package simulator

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type parameter struct{ name, value string }

// query is the query of a URL, in the order of the URL.
type query []parameter

func parseQuery(raw string) query {
	q := query{}
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		q = append(q, parameter{unescape(name), unescape(value)})
	}
	return q
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// all are the values of a parameter.
func (q query) all(name string) []string {
	list := []string{}
	for _, p := range q {
		if p.name == name {
			list = append(list, p.value)
		}
	}
	return list
}

// last is the value of a parameter that comes once, or the last of them.
func (q query) last(name string) (value string, ok bool) {
	for _, p := range q {
		if p.name == name {
			value, ok = p.value, true
		}
	}
	return value, ok
}

// list answers a GET of a collection.
func (c *call) list(k *kind) (map[string]any, error) {
	keep, err := c.filter(k)
	if err != nil {
		return nil, err
	}
	order, err := c.order(k)
	if err != nil {
		return nil, err
	}
	page, err := c.page(k)
	if err != nil {
		return nil, err
	}
	items := []view{}
	for v := range k.all(c) {
		if keep(v) {
			items = append(items, v)
		}
	}
	slices.SortFunc(items, order)
	body := map[string]any{}
	if page.limit > 0 {
		items = page.cut(items, order)
		body[k.collection()+"_links"] = c.links(k, items, page)
	}
	for i, v := range items {
		items[i] = c.show(k, v)
	}
	body[k.collection()] = items
	return body, nil
}

// notFilters are the parameters of a list that choose no items.
var notFilters = []string{"fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir"}

// filter is what the query asks of an item: each attribute has one of the values given for it.
func (c *call) filter(k *kind) (keep func(view) bool, err error) {
	wanted, tagged, invalid := map[string][]string{}, map[string][]string{}, []string{}
	for _, p := range c.query {
		if slices.Contains(notFilters, p.name) {
			continue
		}
		if tagFilters[p.name] != nil {
			tagged[p.name] = append(tagged[p.name], strings.Split(p.value, ",")...)
			continue
		}
		a := k.attribute(p.name)
		if a == nil || !a.is(filters) {
			if !slices.Contains(invalid, p.name) {
				invalid = append(invalid, p.name)
			}
			continue
		}
		value := any(p.value)
		if a.convert != nil {
			if value, err = a.convert(p.value); err != nil {
				return nil, err
			}
		}
		wanted[p.name] = append(wanted[p.name], text(value))
	}
	if len(invalid) > 0 {
		return nil, badRequest("%s is invalid attribute for filtering", repr(invalid))
	}
	tests := []func(view) bool{}
	for name, tags := range tagged {
		tests = append(tests, func(v view) bool { return tagFilters[name](v["tags"].([]string), tags) })
	}
	if ips := wanted["fixed_ips"]; ips != nil {
		test, err := filterByFixedIPs(ips)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
		delete(wanted, "fixed_ips")
	}
	return func(v view) bool {
		for name, valid := range wanted {
			if v[name] == nil || !slices.Contains(valid, text(v[name])) {
				return false
			}
		}
		return !slices.ContainsFunc(tests, func(test func(view) bool) bool { return !test(v) })
	}, nil
}

// order compares two items by the keys of the query and then by id.
func (c *call) order(k *kind) (func(a, b view) int, error) {
	keys, directions := notEmpty(c.query.all("sort_key")), notEmpty(c.query.all("sort_dir"))
	if len(keys) != len(directions) {
		return nil, badRequest("The number of sort_keys and sort_dirs must be same")
	}
	unknown := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		a := k.attribute(key)
		return a != nil && a.is(sorts)
	})
	if len(unknown) > 0 {
		return nil, badRequest("%s is invalid attribute for sort_keys", repr(unknown))
	}
	wrong := slices.DeleteFunc(slices.Clone(directions), func(d string) bool { return d == "asc" || d == "desc" })
	if len(wrong) > 0 {
		return nil, badRequest("%s is invalid value for sort_dirs, valid value is 'asc' and 'desc'", repr(wrong))
	}
	return func(a, b view) int {
		for i, key := range keys {
			if n := compare(a[key], b[key]); n != 0 && directions[i] == "desc" {
				return -n
			} else if n != 0 {
				return n
			}
		}
		return compare(a["id"], b["id"])
	}, nil
}

func notEmpty(list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

func compare(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(present(a), present(b))
	}
	if x, ok := a.(int); ok {
		return cmp.Compare(x, b.(int))
	}
	return cmp.Compare(text(a), text(b))
}

func present(v any) int {
	if v == nil {
		return 0
	}
	return 1
}

// page is the part of a list that is asked for.
type page struct {
	limit   int // 0: all
	marker  view
	reverse bool
}

func (c *call) page(k *kind) (page, error) {
	reverse, _ := c.query.last("page_reverse")
	p := page{reverse: strings.EqualFold(reverse, "true")}
	if asked, ok := c.query.last("limit"); ok {
		limit, err := strconv.Atoi(asked)
		if err != nil || limit < 0 {
			return p, badPart("limit", "Limit must be an integer 0 or greater and not '%s'", asked)
		}
		p.limit = limit
	}
	if id, _ := c.query.last("marker"); id != "" && p.limit > 0 {
		marker, ok := k.get(c, id)
		if !ok {
			return p, notFound(k.title, id)
		}
		p.marker = marker
	}
	return p, nil
}

// cut takes the limit items after the marker, or before it in a reverse page.
func (p page) cut(items []view, order func(a, b view) int) []view {
	if p.marker != nil {
		items = slices.DeleteFunc(items, func(v view) bool {
			n := order(v, p.marker)
			return n == 0 || n < 0 != p.reverse
		})
	}
	if len(items) <= p.limit {
		return items
	}
	if p.reverse {
		return items[len(items)-p.limit:]
	}
	return items[:p.limit]
}

func (c *call) links(k *kind, items []view, p page) []any {
	links := []any{}
	link := func(rel string, edge int, reverse bool) {
		parts := []string{}
		for _, p := range c.query {
			if p.name != "marker" && p.name != "page_reverse" {
				parts = append(parts, url.QueryEscape(p.name)+"="+url.QueryEscape(p.value))
			}
		}
		if len(items) > 0 {
			parts = append(parts, fmt.Sprint("marker=", items[edge]["id"]))
		}
		if reverse {
			parts = append(parts, "page_reverse=True")
		}
		href := origin(c.request) + "/v2.0/" + k.collection() + "?" + strings.Join(parts, "&")
		links = append(links, map[string]any{"rel": rel, "href": href})
	}
	if len(items) >= p.limit || p.reverse {
		link("next", len(items)-1, false)
	}
	if len(items) >= p.limit || !p.reverse {
		link("previous", 0, true)
	}
	return links
}
