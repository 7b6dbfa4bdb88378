package simulator

import (
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// call is one request on its way.
type call struct {
	*store
	who     identity
	request *http.Request
	query   query
	body    []byte
}

// view is a resource as an answer shows it.
type view map[string]any

// kind is a resource: its attributes in Neutron's order, which decides what error is reported first, and what it can do.
type kind struct {
	name, title string
	attributes  []attribute
	all         func(*call) iter.Seq[view]       // what the caller may see
	get         func(*call, string) (view, bool) // if the caller may see it
	owned       func(*call, view) bool           // whether the caller may change it
	admit       func(*call, *kind, values) error // looks at a create before quota and policy do; nil admits all
	create      func(*call, values) (view, error)
	update      func(*call, string, values) error
	delete      func(*call, string) error
	tag         func(*call, string, []string)
}

func (k *kind) collection() string { return k.name + "s" }

func (k *kind) attribute(name string) *attribute {
	i := slices.IndexFunc(k.attributes, func(a attribute) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &k.attributes[i]
}

func kindOf(collection string) *kind {
	for _, k := range []*kind{&networks, &subnets, &ports, &routers} {
		if k.collection() == collection {
			return k
		}
	}
	return nil
}

func (c *call) route(path []string) (status int, body any, err error) {
	if len(path) == 0 {
		return c.resources()
	}
	if path[0] == "quotas" {
		return c.quota(path[1:])
	}
	k := kindOf(path[0])
	switch {
	case k == nil:
		return 0, nil, errNoRoute
	case len(path) == 1:
		return c.serve(k, "")
	case len(path) == 2:
		return c.serve(k, path[1])
	case k == &routers && len(path) == 3 && (path[2] == "add_router_interface" || path[2] == "remove_router_interface"):
		return c.changeInterface(path[1], path[2])
	case path[2] == "tags":
		return c.tags(k, path[1], path[3:])
	}
	return 0, nil, errNoRoute
}

func (c *call) resources() (int, any, error) {
	if c.request.Method != http.MethodGet {
		return 0, nil, errMethod
	}
	list := []any{}
	for _, k := range []*kind{&networks, &subnets, &ports} {
		link := map[string]any{"rel": "self", "href": origin(c.request) + "/v2.0/" + k.collection()}
		list = append(list, map[string]any{"name": k.name, "collection": k.collection(), "links": []any{link}})
	}
	return http.StatusOK, map[string]any{"resources": list}, nil
}

// serve answers for one resource, or for the collection if there is no id.
func (c *call) serve(k *kind, id string) (int, any, error) {
	switch method := c.request.Method; {
	case method == http.MethodGet && id == "":
		list, err := c.list(k)
		return http.StatusOK, list, err
	case method == http.MethodGet:
		v, ok := k.get(c, id)
		if !ok {
			return 0, nil, notFound(k.title, id)
		}
		return http.StatusOK, map[string]any{k.name: c.show(k, v)}, nil
	case method == http.MethodPost && id == "":
		return c.create(k)
	case method == http.MethodPut:
		v, err := c.update(k, id)
		return http.StatusOK, map[string]any{k.name: v}, err
	case method == http.MethodDelete:
		return http.StatusNoContent, nil, c.delete(k, id)
	}
	return 0, nil, errMethod
}

func (c *call) create(k *kind) (int, any, error) {
	items, bulk, err := c.prepare(k, true)
	if err != nil {
		return 0, nil, err
	}
	for _, item := range items {
		if k.admit == nil {
			break
		}
		if err := k.admit(c, k, item); err != nil {
			return 0, nil, err
		}
	}
	if err := c.reserve(k, items); err != nil {
		return 0, nil, err
	}
	made := []view{}
	for _, item := range items {
		if rule, adminOnly := k.rule("create", item, true); adminOnly && !c.who.admin {
			return 0, nil, forbidden(rule)
		}
		v, err := k.create(c, item)
		if err != nil {
			return 0, nil, err
		}
		made = append(made, c.show(k, v))
	}
	if bulk {
		return http.StatusCreated, map[string]any{k.collection(): made}, nil
	}
	return http.StatusCreated, map[string]any{k.name: made[0]}, nil
}

func (c *call) update(k *kind, id string) (view, error) {
	items, _, err := c.prepare(k, false)
	if err != nil {
		return nil, err
	}
	if err := c.writable(k, id, "update", items[0]); err != nil {
		return nil, err
	}
	if err := k.update(c, id, items[0]); err != nil {
		return nil, err
	}
	v, _ := k.get(c, id)
	return c.show(k, v), nil
}

func (c *call) delete(k *kind, id string) error {
	if err := c.writable(k, id, "delete", nil); err != nil {
		return err
	}
	return k.delete(c, id)
}

// writable refuses a resource that the caller may not change, or that is not at the revision If-Match names.
func (c *call) writable(k *kind, id, action string, given values) error {
	if id == "" {
		return notFound(k.title, "None")
	}
	v, ok := k.get(c, id)
	if !ok {
		return notFound(k.title, id)
	}
	if rule, adminOnly := k.rule(action, given, false); !k.owned(c, v) || adminOnly && !c.who.admin {
		return forbidden(rule)
	}
	wanted, ok, err := ifMatch(c.request.Header.Get("If-Match"))
	if err != nil {
		return err
	}
	if current := v["revision_number"]; ok && wanted != current {
		return &fault{http.StatusPreconditionFailed, "RevisionNumberConstraintFailed",
			"Constrained to " + strconv.Itoa(wanted) + ", but current revision is " + text(current)}
	}
	return nil
}

var quoted = regexp.MustCompile(`"([^"]*)"`)

// ifMatch is the revision number an If-Match header names. An entity tag of another form is none.
func ifMatch(header string) (revision int, ok bool, err error) {
	tags := [][]string{{"", strings.TrimSpace(header)}}
	if matches := quoted.FindAllStringSubmatch(header, -1); matches != nil {
		tags = matches
	}
	for _, tag := range tags {
		number, is := strings.CutPrefix(tag[1], "revision_number=")
		if !is {
			continue
		}
		if ok {
			return 0, false, badPart("if-match", "Multiple revision_number etags are not supported.")
		}
		if revision, err = strconv.Atoi(number); err != nil {
			return 0, false, badPart("if-match", "Revision number etag must be in the format of revision_number=<int>")
		}
		ok = true
	}
	return revision, ok, nil
}

// show leaves out what the caller may not see or did not ask for.
func (c *call) show(k *kind, v view) view {
	fields := c.query.all("fields")
	for _, a := range k.attributes {
		if a.is(hidden) || a.is(adminSees) && !c.who.admin || len(fields) > 0 && !slices.Contains(fields, a.name) {
			delete(v, a.name)
		}
	}
	return v
}
