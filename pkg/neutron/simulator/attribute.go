package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

type flag uint8

const (
	onPost    flag = 1 << iota // may be given at create
	onPut                      // may be given at update
	required                   // must be given at create
	filters                    // a list can be filtered by it
	sorts                      // a list can be sorted by it
	adminSets                  // only the administrator may give it another value than the initial one
	adminSees                  // left out of answers to everyone else
	hidden                     // left out of every answer
)

// attribute is one attribute of a resource. Like Neutron, it first converts what was given and then validates the result.
type attribute struct {
	name     string
	flags    flag
	convert  func(any) (any, error)
	validate func(any) string // the reason why a value is invalid
	initial  any
}

func (a attribute) is(f flag) bool { return a.flags&f == f }

// values are the attributes that a request gives, converted and valid.
type values map[string]any

// value is a given attribute, or what it was if it is not given.
func value[T any](v values, name string, old T) T {
	if given, ok := v[name].(T); ok {
		return given
	}
	return old
}

// decode reads a JSON object. No body is an empty object.
func decode(body []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || object == nil {
		return nil, errInvalidBody
	}
	return object, nil
}

// prepare reads the body of a create, which may be of many, or of an update.
func (c *call) prepare(k *kind, create bool) (items []values, bulk bool, err error) {
	body, err := decode(c.body)
	if err != nil {
		return nil, false, errInvalidBody
	}
	given, bulk := body[k.collection()]
	if !bulk {
		given = []any{body}
		if body[k.name] == nil {
			return nil, false, badRequest("Unable to find '%s' in request body", k.name)
		}
	} else if !create {
		return nil, false, badRequest("Bulk operation not supported")
	}
	list, err := k.list(given)
	if err != nil {
		return nil, bulk, err
	}
	for _, item := range list {
		object, ok := item.(map[string]any)
		if inner, wrapped := object[k.name]; wrapped {
			object, ok = inner.(map[string]any)
		}
		if !ok {
			return nil, bulk, k.invalid(item)
		}
		prepared, err := c.prepareItem(k, object, create)
		if err != nil {
			return nil, bulk, err
		}
		items = append(items, prepared)
	}
	return items, bulk, nil
}

// list is what a create of many gives to create.
func (k *kind) list(given any) ([]any, error) {
	switch fmt.Sprint(given) {
	case "<nil>", "", "[]", "map[]", "0", "false":
		return nil, badRequest("Resources required")
	}
	list, ok := given.([]any)
	if !ok {
		return nil, k.invalid(given)
	}
	return list, nil
}

// invalid tells what Python can look into, and then does not find an object in, from what it cannot.
func (k *kind) invalid(given any) error {
	switch given.(type) {
	case string, []any, map[string]any:
		return badRequest("Object '%s' contains invalid data", k.name)
	}
	return errInvalidBody
}

func (c *call) prepareItem(k *kind, given values, create bool) (values, error) {
	if err := c.project(given, create); err != nil {
		return nil, err
	}
	if err := k.known(given); err != nil {
		return nil, err
	}
	for _, a := range k.attributes {
		_, ok := given[a.name]
		switch {
		case create && ok && !a.is(onPost):
			return nil, badRequest("Attribute '%s' not allowed in POST", a.name)
		case create && !ok && a.is(required):
			return nil, badRequest("Failed to parse request. Required attribute '%s' not specified", a.name)
		case !create && ok && !a.is(onPut):
			return nil, badRequest("Cannot update read-only attribute %s", a.name)
		}
	}
	return given, k.convert(given)
}

func (k *kind) known(given values) error {
	unknown := []string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if k.attribute(name) == nil {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return badRequest("Unrecognized attribute(s) '%s'", strings.Join(unknown, ", "))
	}
	return nil
}

func (k *kind) convert(given values) (err error) {
	for _, a := range k.attributes {
		v, ok := given[a.name]
		if !ok {
			continue
		}
		if a.convert != nil {
			if v, err = a.convert(v); err != nil {
				return err
			}
			given[a.name] = v
		}
		if a.validate == nil {
			continue
		}
		if reason := a.validate(v); reason != "" {
			return badRequest("Invalid input for %s. Reason: %s.", a.name, reason)
		}
	}
	return nil
}

// project gives the owner its two names, project_id and tenant_id.
func (c *call) project(given values, create bool) error {
	project, ok := given["project_id"]
	tenant, old := given["tenant_id"]
	switch {
	case ok && old && repr(project) != repr(tenant):
		return badRequest("'project_id' and 'tenant_id' do not match")
	case !ok && old:
		project, ok = tenant, true
	case !ok && create:
		project, ok = c.who.project, true
	}
	if !ok {
		return nil
	}
	if !c.who.admin && project != c.who.project {
		return badRequest("Specifying 'project_id' or 'tenant_id' other than the authenticated project in request requires admin or advsvc privileges")
	}
	given["project_id"], given["tenant_id"] = project, project
	return nil
}

// rule is the policy that a request falls under, in Neutron's words, and whether only the administrator meets it.
func (k *kind) rule(action string, given values, create bool) (rule string, adminOnly bool) {
	action += "_" + k.name
	rule = "rule:" + action
	for _, a := range k.attributes {
		v, ok := given[a.name]
		if ok && a.is(adminSets) && (!create || v != a.initial) {
			rule = "(" + rule + " and rule:" + action + ":" + a.name + ")"
			adminOnly = true
		}
	}
	return rule, adminOnly
}
