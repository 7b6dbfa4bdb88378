//go:build kube

package e2e

import (
	"context"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/util/wait"
)

// testRollingRestart replaces both replicas again and again, as a Deployment
// does, while requests of all kinds come: none fails, what was acknowledged is
// there, and nothing is made twice in Neutron.
func (c *cluster) testRollingRestart(t *testing.T) {
	const restarts = 5 // of each
	o := newCloud(t)
	networks := c.networks.SamplecrdV1().Networks(c.newNamespace(t, "rolling", nil))
	var logs []auditLog
	start := func() *replica {
		logs = append(logs, newAuditLog(t))
		return c.startReplica(t, o, append(logs[len(logs)-1].flags(), "--etcd-prefix=/rolling")...)
	}
	replicas := []*replica{start(), start()}
	c.waitServed(t)

	l := c.startLoad(t, "rolling", 50)
	for range restarts {
		for i, old := range replicas {
			replicas[i] = start()
			drained := old.drained(t.Context())
			old.stop(t)
			c.balancer.remove(old.port)
			if err := <-drained; err != nil {
				t.Errorf("until process %d ended it asked nobody to leave: %v", old.process.Pid, err)
			}
			if old.err != nil {
				t.Errorf("after SIGTERM process %d ended with: %v", old.process.Pid, old.err)
			}
		}
	}
	l.check(t, logs...)
	check(t, networks, l.journals)
	c.checkNetworks(t, o, networks)
}

// drained tells once a client is asked to leave with the answer to a request,
// as opposed to in the middle of one.
func (r *replica) drained(ctx context.Context) <-chan error {
	client := newProbe()
	drained := make(chan error, 1)
	go func() {
		drained <- wait.PollUntilContextCancel(ctx, eventuallyInterval, true, func(ctx context.Context) (bool, error) {
			response, err := probe(ctx, client, r.port, "/livez")
			if os.IsTimeout(err) {
				return false, nil // it is slow, but there
			}
			return err == nil && response.Close, err
		})
	}()
	return drained
}
