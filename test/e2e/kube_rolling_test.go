//go:build kube

package e2e

import "testing"

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
			old.stop(t)
			c.balancer.remove(old.port)
			if old.err != nil {
				t.Errorf("after SIGTERM process %d ended with: %v", old.process.Pid, old.err)
			}
		}
	}
	l.check(t, logs...)
	check(t, networks, l.journals)
	c.checkNetworks(t, o, networks)
}
