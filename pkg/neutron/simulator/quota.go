package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// unlimited are the limits of a project for which none were set. Those of networks, subnets and ports are not Neutron's own (100, 100,
// 500): a test must be able to make more.
var unlimited = map[string]int{
	"network": -1, "subnet": -1, "subnetpool": -1, "port": -1, "router": 10, "floatingip": 50, "rbac_policy": 10,
	"security_group": -1, "security_group_rule": -1,
}

// securityGroupRules is the number of rules in a default security group.
const securityGroupRules = 4

func (c *call) limits(project string) map[string]int {
	limits := maps.Clone(unlimited)
	set, _ := c.quotas.get(project)
	maps.Copy(limits, set)
	return limits
}

// securityGroup is the id of the default security group of a project, which is made with its first network or port.
func (c *call) securityGroup(project string) string {
	id, ok := c.groups.get(project)
	if !ok {
		id = uuid.NewString()
		c.groups.put(project, id)
	}
	return id
}

func (c *call) used(project, resource string) int {
	used := 0
	count := func(owner string) {
		if owner == project {
			used++
		}
	}
	switch resource {
	case "network":
		for n := range c.networks.all() {
			count(n.Project)
		}
	case "subnet":
		for s := range c.subnets.all() {
			count(s.Project)
		}
	case "port":
		for p := range c.ports.all() {
			count(p.Project)
		}
	case "router":
		for r := range c.routers.all() {
			count(r.Project)
		}
	case "security_group", "security_group_rule":
		if _, ok := c.groups.get(project); ok {
			used = 1
		}
		if resource == "security_group_rule" {
			used *= securityGroupRules
		}
	}
	return used
}

// reserve refuses a create that would exceed the quota of a project.
func (c *call) reserve(k *kind, items []values) error {
	more := map[string]int{}
	for _, item := range items {
		more[item["project_id"].(string)]++
	}
	for project, n := range more {
		if limit := c.limits(project)[k.name]; limit >= 0 && c.used(project, k.name)+n > limit {
			return conflict("OverQuota", "Quota exceeded for resources: ['%s'].", k.name)
		}
	}
	return nil
}

// quota serves /quotas: the path is what follows.
func (c *call) quota(path []string) (int, any, error) {
	if len(path) == 0 {
		return 0, nil, errNoRoute
	}
	project := path[0]
	get := c.request.Method == http.MethodGet
	switch {
	case len(path) == 2 && get && path[1] == "default":
		return c.showQuota(project, unlimited)
	case len(path) == 2 && get && path[1] == "details":
		return c.quotaDetails(project)
	case len(path) > 1:
		return 0, nil, errNoRoute
	case c.request.Method == http.MethodPut:
		return c.setQuota(project)
	case c.request.Method == http.MethodDelete:
		return c.deleteQuota(project)
	}
	return c.showQuota(project, c.limits(project)) // whatever the method
}

func (c *call) showQuota(project string, quota any) (int, any, error) {
	if !c.who.owns(project) {
		return 0, nil, forbidden("rule:get_quota")
	}
	return http.StatusOK, map[string]any{"quota": quota}, nil
}

func (c *call) quotaDetails(project string) (int, any, error) {
	if !c.who.owns(project) {
		return 0, nil, errAdminRequired
	}
	details := map[string]any{}
	for resource, limit := range c.limits(project) {
		details[resource] = map[string]int{"limit": limit, "used": c.used(project, resource), "reserved": 0}
	}
	return http.StatusOK, map[string]any{"quota": details}, nil
}

func (c *call) setQuota(project string) (int, any, error) {
	if !c.who.admin {
		return 0, nil, forbidden("rule:update_quota")
	}
	given, err := c.givenQuota()
	if err != nil {
		return 0, nil, err
	}
	set, _ := c.quotas.get(project)
	set = maps.Clone(set)
	if set == nil {
		set = map[string]int{}
	}
	for _, resource := range slices.Sorted(maps.Keys(given)) {
		if set[resource], err = limit(resource, given[resource]); err != nil {
			return 0, nil, err
		}
	}
	c.quotas.put(project, set)
	return http.StatusOK, map[string]any{"quota": c.limits(project)}, nil
}

func (c *call) givenQuota() (map[string]any, error) {
	if !json.Valid(c.body) {
		return nil, errMalformed
	}
	var body struct{ Quota map[string]any }
	decoder := json.NewDecoder(bytes.NewReader(c.body))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil || body.Quota == nil {
		return nil, errInternal
	}
	return body.Quota, nil
}

func limit(resource string, given any) (int, error) {
	if _, ok := unlimited[resource]; !ok {
		return 0, badRequest("Unrecognized attribute(s) '%s'", resource)
	}
	n, err := integer(given)
	if err != nil {
		return 0, err
	}
	if n.(int) < -1 {
		return 0, badRequest("Invalid input for %s. Reason: '%d' is too small - must be at least '-1'.", resource, n)
	}
	return n.(int), nil
}

func (c *call) deleteQuota(project string) (int, any, error) {
	if !c.who.admin {
		return 0, nil, forbidden("rule:delete_quota")
	}
	if _, ok := c.quotas.get(project); !ok {
		return 0, nil, &fault{http.StatusNotFound, "TenantQuotaNotFound", fmt.Sprintf("Quota for tenant %s could not be found.", project)}
	}
	c.quotas.delete(project)
	return http.StatusNoContent, nil, nil
}
