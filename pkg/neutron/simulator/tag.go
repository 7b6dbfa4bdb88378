package simulator

import (
	"fmt"
	"net/http"
	"slices"
)

// tagFilters choose by the tags of an item and the tags of a query. Neutron splits the latter at commas, so that a tag that holds one
// cannot be searched for.
var tagFilters = map[string]func(tags, wanted []string) bool{
	"tags":         hasAll,
	"tags-any":     hasAny,
	"not-tags":     func(tags, wanted []string) bool { return !hasAll(tags, wanted) },
	"not-tags-any": func(tags, wanted []string) bool { return !hasAny(tags, wanted) },
}

func hasAny(tags, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(tag string) bool { return slices.Contains(tags, tag) })
}

func hasAll(tags, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(tag string) bool { return !slices.Contains(tags, tag) })
}

// tags serves the tags of a resource: the path is what follows /tags.
func (c *call) tags(k *kind, id string, path []string) (int, any, error) {
	switch {
	case len(path) > 1:
		return 0, nil, errNoRoute
	case c.request.Method == http.MethodPost:
		return 0, nil, errNotSupported
	case len(path) == 1:
		return c.oneTag(k, id, path[0])
	}
	given, err := c.givenTags()
	if err != nil {
		return 0, nil, err
	}
	tags, err := c.tagsOf(k, id)
	if err != nil {
		return 0, nil, err
	}
	switch c.request.Method {
	case http.MethodGet:
		return http.StatusOK, map[string]any{"tags": tags}, nil
	case http.MethodPut:
		c.setTags(k, id, tags, given)
		return http.StatusOK, map[string]any{"tags": given}, nil
	case http.MethodDelete:
		c.setTags(k, id, tags, nil)
		return http.StatusNoContent, nil, nil
	}
	return 0, nil, errMethod
}

func (c *call) oneTag(k *kind, id, tag string) (int, any, error) {
	if reason := stringUpTo(maxText)(tag); reason != "" {
		return 0, nil, invalidInput("%s", reason)
	}
	tags, err := c.tagsOf(k, id)
	if err != nil {
		return 0, nil, err
	}
	i, found := slices.BinarySearch(tags, tag)
	switch method := c.request.Method; {
	case method == http.MethodPut:
		if !found {
			c.setTags(k, id, tags, slices.Insert(slices.Clone(tags), i, tag))
		}
		return http.StatusCreated, nil, nil
	case method != http.MethodGet && method != http.MethodDelete:
		return 0, nil, errMethod
	case !found:
		return 0, nil, notFound("Tag", tag)
	case method == http.MethodDelete:
		c.setTags(k, id, tags, slices.Delete(slices.Clone(tags), i, i+1))
	}
	return http.StatusNoContent, nil, nil
}

// givenTags are those in the body of a PUT.
func (c *call) givenTags() ([]string, error) {
	if c.request.Method != http.MethodPut {
		return nil, nil
	}
	body, err := decode(c.body)
	if err != nil {
		return nil, errMalformed
	}
	given, ok := body["tags"]
	if !ok {
		return nil, invalidInput("Invalid tags body")
	}
	if reason := uniqueStrings(given); reason != "" {
		return nil, invalidInput("%s", reason)
	}
	return stringsOf(given), nil
}

// tagsOf is for everyone who sees the resource: this release has no policy for tags.
func (c *call) tagsOf(k *kind, id string) ([]string, error) {
	v, ok := k.get(c, id)
	if !ok {
		return nil, &fault{http.StatusNotFound, "TagResourceNotFound", fmt.Sprintf("Resource %s %s could not be found.", k.collection(), id)}
	}
	return v["tags"].([]string), nil
}

// setTags counts a change only if there is one.
func (c *call) setTags(k *kind, id string, old, tags []string) {
	tags = slices.Sorted(slices.Values(tags))
	if !slices.Equal(old, tags) {
		k.tag(c, id, tags)
	}
}
