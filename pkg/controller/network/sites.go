package network

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// inventoryTimeout bounds the lists of one site: a Neutron that somebody else
// chose may have no end.
const inventoryTimeout = 5 * time.Minute

// source is where Networks have their credentials from: a cloud in a Secret. The
// zero value is the operator's cloud.
type source struct{ namespace, secret, cloud string }

func sourceOf(n *samplecrdv1.Network) source {
	if ref := credentialsRef(n); ref != nil {
		return source{n.Namespace, ref.SecretName, ref.CloudName}
	}
	return source{}
}

// where tells sites apart. A project is one of its identity service.
type where struct {
	identity string
	neutron.Place
}

// site is a place that at least one source leads to, and what is there.
type site struct {
	clients []*neutron.Client
	owners  []*samplecrdv1.Network
	there   inventory
	err     error // of the lists
}

// way is how a source leads to its site, or why it does not.
type way struct {
	client *neutron.Client
	site   *site
	err    error
	unheld bool // the Secret or the RoleBinding does not bear our finalizer as it should
}

func (w *way) failed() error {
	if w.err == nil {
		return w.site.err
	}
	return w.err
}

// unusable tells that the credentials do not serve, not only just now.
func (w *way) unusable() bool {
	f, ok := errors.AsType[*failure](w.err)
	return ok && (f.cause == nil || neutron.ClassOf(f.cause) == neutron.Unauthorized)
}

// findWays opens the cloud of each source, the operator's in any case.
func (c *Controller) findWays(ctx context.Context, networks []*samplecrdv1.Network) map[source]*way {
	ways := map[source]*way{{}: {}}
	for _, n := range networks {
		ways[sourceOf(n)] = &way{}
	}
	tasks := make([]func(), 0, len(ways))
	for from, w := range ways {
		tasks = append(tasks, func() {
			cloud := c.cloud
			if from != (source{}) {
				var s *secret
				if s, w.err = c.secret(ctx, from.namespace, from.secret, atOnce); w.err != nil {
					return
				}
				if w.unheld, w.err = c.unheld(ctx, s); w.err != nil {
					return
				}
				if cloud, w.err = c.secrets.cloud(s, from.cloud); w.err != nil {
					return
				}
			}
			w.client, w.err = connect(ctx, cloud, from.secret)
		})
	}
	c.side(tasks)
	for from, w := range ways {
		if w.err != nil && from != (source{}) {
			klog.FromContext(ctx).Info("Credentials lead nowhere", "secret", klog.KRef(from.namespace, from.secret), "cloud", from.cloud, "reason", w.err.Error())
		}
	}
	return ways
}

// takeInventories lists each site once, whoever leads there: by the next client
// where one fails.
func (c *Controller) takeInventories(ctx context.Context, ways map[source]*way) map[where]*site {
	sites := map[where]*site{}
	for _, w := range ways {
		if w.err != nil {
			continue
		}
		at := where{w.client.Identity(), w.client.Place()}
		if sites[at] == nil {
			sites[at] = &site{}
		}
		w.site = sites[at]
		if !slices.Contains(w.site.clients, w.client) {
			w.site.clients = append(w.site.clients, w.client)
		}
	}
	tasks := make([]func(), 0, len(sites))
	for at, s := range sites {
		tasks = append(tasks, func() {
			ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
			defer cancel()
			for _, client := range s.clients {
				if s.there, s.err = takeInventory(ctx, client); s.err == nil {
					return
				}
			}
			klog.FromContext(ctx).Error(s.err, "A cloud can't be listed; nothing was changed", "project", at.ProjectID, "region", at.Region)
		})
	}
	c.side(tasks)
	return sites
}

// side does the tasks side by side, as many at once as there are workers.
func (c *Controller) side(tasks []func()) {
	turns := make(chan struct{}, cap(c.turns))
	var running sync.WaitGroup
	for _, task := range tasks {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			task()
		})
	}
	running.Wait()
}
