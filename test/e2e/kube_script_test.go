//go:build kube

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"
)

// testScripts runs the scripts of a standalone server through kube-apiserver,
// unchanged: each with a server, a store and a Neutron of its own.
func (c *cluster) testScripts(t *testing.T) {
	var mu sync.Mutex // of the one place behind the Service
	var last *replica
	started := 0
	c.newNamespace(t, "other", nil) // which a script writes to
	next := func(flags ...string) *replica {
		started++
		o := newCloud(t)
		o.inProject(t, "standalone")
		r := c.startReplica(t, o, append([]string{"--cluster-id=e2e", fmt.Sprintf("--etcd-prefix=/script-%d", started)}, flags...)...)
		// Only now, so that there is always one for those who watch.
		if last != nil {
			c.balancer.remove(last.port)
			last.stop(t)
		}
		c.waitServed(t)
		last, r.neutronURL = r, o.neutron
		return r
	}
	next()
	c.waitCollected(t)
	runScripts(t, "testdata/script", func(t testing.TB, flags ...string) run {
		mu.Lock()
		t.Cleanup(mu.Unlock)
		r := next(flags...)
		s := *c.server
		s.log = r.log
		return run{t: t, server: &s, neutron: r.neutronURL}
	})
}

// inProject has the cloud demo lead to that project.
func (o *cloud) inProject(t testing.TB, name string) {
	t.Helper()
	content, err := os.ReadFile(o.configFile)
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.Replace(content, []byte(`"project_name":"demo"`), []byte(`"project_name":"`+name+`"`), 1)
	if err := os.WriteFile(o.configFile, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
