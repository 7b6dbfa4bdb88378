package simulator

import (
	"iter"
	"net/http"
	"slices"
	"strings"
)

// router has ports on subnets and no gateway to the outside.
type router struct {
	object
	AdminStateUp bool
}

// routerInterface is the device_owner of the port that a router has on a subnet.
const routerInterface = "network:router_interface"

var routers = kind{
	name:  "router",
	title: "Router",
	attributes: slices.Concat([]attribute{
		idAttribute,
		nameAttribute,
		{name: "admin_state_up", flags: onPost | onPut | filters | sorts, convert: boolean},
		{name: "status", flags: filters | sorts},
		tenant,
		{name: "tags"},
	}, standard),
	all: func(c *call) iter.Seq[view] {
		return func(yield func(view) bool) {
			for r := range c.routers.all() {
				if c.who.owns(r.Project) && !yield(r.view()) {
					return
				}
			}
		}
	},
	get: func(c *call, id string) (view, bool) {
		r, ok := c.routers.get(id)
		if !ok || !c.who.owns(r.Project) {
			return nil, false
		}
		return r.view(), true
	},
	owned: func(*call, view) bool { return true },
	create: func(c *call, v values) (view, error) {
		r := router{object: newObject(v, 1), AdminStateUp: value(v, "admin_state_up", true)}
		c.routers.put(r.ID, r)
		return r.view(), nil
	},
	update: func(c *call, id string, v values) error {
		r, _ := c.routers.get(id)
		r.AdminStateUp = value(v, "admin_state_up", r.AdminStateUp)
		r.update(v)
		c.routers.put(id, r)
		return nil
	},
	delete: (*call).deleteRouter,
	tag: func(c *call, id string, tags []string) {
		r, _ := c.routers.get(id)
		r.Tags = tags
		r.touch()
		c.routers.put(id, r)
	},
}

func (r router) view() view {
	v := r.object.view()
	v["admin_state_up"] = r.AdminStateUp
	v["status"] = "ACTIVE"
	return v
}

func (c *call) deleteRouter(id string) error {
	attached := []string{}
	for p := range c.ports.all() {
		if p.DeviceID == id && p.onRouter() {
			attached = append(attached, p.ID)
		}
	}
	if len(attached) > 0 {
		return conflict("RouterInUse", "Router %s has ports still attached: %s", id, strings.Join(attached, ", "))
	}
	c.routers.delete(id)
	return nil
}

// changeInterface serves add_router_interface and remove_router_interface, which take a subnet here and not a port.
func (c *call) changeInterface(id, action string) (int, any, error) {
	if c.request.Method != http.MethodPut {
		return 0, nil, errMethod
	}
	if _, ok := routers.get(c, id); !ok {
		return 0, nil, notFound(routers.title, id)
	}
	body, err := decode(c.body)
	if err != nil {
		return 0, nil, errMalformed
	}
	given, ok := body["subnet_id"]
	if !ok {
		return 0, nil, badPart("router", "Either subnet_id or port_id must be specified")
	}
	if reason := isUUID(given); reason != "" {
		return 0, nil, badPart("router", "%s", reason)
	}
	s, ok := c.subnets.get(given.(string))
	if _, seen := c.seeSubnet(s); !ok || !seen {
		return 0, nil, notFound(subnets.title, given.(string))
	}
	change := c.addInterface
	if action == "remove_router_interface" {
		change = c.removeInterface
	}
	p, err := change(id, s)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{
		"id": id, "tenant_id": p.Project, "port_id": p.ID, "network_id": p.NetworkID, "subnet_id": s.ID, "subnet_ids": []string{s.ID},
	}, nil
}

// addInterface gives the router a port with the gateway address of the subnet.
func (c *call) addInterface(id string, s subnet) (port, error) {
	if _, ok := c.interfaceOn(id, s); ok {
		return port{}, badPart("router", "Router already has a port on subnet %s", s.ID)
	}
	if !s.Gateway.IsValid() {
		return port{}, badPart("router", "Subnet for router interface must have a gateway IP")
	}
	r, _ := c.routers.get(id)
	v, err := c.createPort(values{
		"project_id":            r.Project,
		"network_id":            s.NetworkID,
		"device_owner":          routerInterface,
		"device_id":             id,
		"port_security_enabled": false,
		"fixed_ips":             []any{map[string]any{"subnet_id": s.ID, "ip_address": s.Gateway.String()}},
	})
	if err != nil {
		return port{}, err
	}
	p, _ := c.ports.get(v["id"].(string))
	return p, nil
}

func (c *call) removeInterface(id string, s subnet) (port, error) {
	p, ok := c.interfaceOn(id, s)
	if !ok {
		return p, &fault{http.StatusNotFound, "RouterInterfaceNotFoundForSubnet", "Router " + id + " has no interface on subnet " + s.ID}
	}
	c.ports.delete(p.ID)
	return p, nil
}

func (c *call) interfaceOn(id string, s subnet) (port, bool) {
	for p := range c.portsOn(s.NetworkID) {
		if p.DeviceID == id && p.onRouter() && slices.ContainsFunc(p.FixedIPs, func(ip fixedIP) bool { return ip.SubnetID == s.ID }) {
			return p, true
		}
	}
	return port{}, false
}

// gatewayPort is the port of a router that has the gateway address of the subnet. A port that only says it is a router's is none.
func (c *call) gatewayPort(s subnet) string {
	for p := range c.portsOn(s.NetworkID) {
		if c.attached(p) && slices.Contains(p.FixedIPs, fixedIP{s.ID, s.Gateway}) {
			return p.ID
		}
	}
	return ""
}

func (c *call) attached(p port) bool {
	_, ok := c.routers.get(p.DeviceID)
	return ok && p.onRouter()
}
