//go:build openstack

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsbinding"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestPackets follows the course's files to what they are for: machines on the
// network get addresses of it, reach each other, hear of another gateway, and
// hold the network as long as they are there.
func TestPackets(t *testing.T) {
	c := newCloud(t)
	p := packets{ovnDir: setting(t, "OVN_DIR"), admin: newAdministrator(t), project: c.project(t, osCloud), server: c.start(t, dataDir(t), osCloud)}

	p.apply(t, "example-network.yaml")
	p.wait(t, "condition=Ready")
	networkID := p.get(t, "{.status.networkID}")
	a, b := p.plug(t, networkID), p.plug(t, networkID)
	a.lease(t, "192.168.0.1")
	b.lease(t, "192.168.0.1")
	a.ping(t, b)
	b.ping(t, a)

	p.apply(t, "example-network-changed.yaml")
	p.wait(t, "jsonpath={.status.subnets[0].gateway}=192.168.1.1")
	a.lease(t, "192.168.1.1")
	b.lease(t, "192.168.1.1")
	a.ping(t, b)
	b.ping(t, a)

	const progressing = `{.status.conditions[?(@.type=="Progressing")]`
	p.kubectl(t, "delete", "network", "example-network", "--wait=false")
	p.wait(t, "jsonpath="+progressing+".reason}=InUse")
	message := p.get(t, progressing+".message}")
	_, named, _ := strings.Cut(message, "; ports on the network: ")
	want := []string{a.portID + " (compute:nova)", b.portID + " (compute:nova)"}
	slices.Sort(want)
	if diff := cmp.Diff(want, strings.Split(named, ", ")); diff != "" {
		t.Errorf("ports named by %q (-want +got):\n%s", message, diff)
	}

	a.unplug(t)
	b.unplug(t)
	p.wait(t, "delete")
	if _, err := networks.Get(t.Context(), p.admin, networkID).Extract(); !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("reading the network from Neutron, once its Network is gone: error %v, want 404", err)
	}
}

// packets is what TestPackets works with.
type packets struct {
	*server
	ovnDir string
	admin  *gophercloud.ServiceClient // of Neutron: only an administrator says which host a port is on
	// project owns the ports, as it does those of its machines: the owner of a
	// network alone does not see what others have on it.
	project string
}

func (p packets) apply(t *testing.T, file string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../artifacts/example", file))
	if err != nil {
		t.Fatal(err)
	}
	p.kubectl(t, "apply", "-f", path)
}

func (p packets) wait(t *testing.T, condition string) {
	t.Helper()
	p.kubectl(t, "wait", "--for="+condition, "--timeout="+eventuallyDeadline.String(), "network/example-network")
}

func (p packets) get(t *testing.T, path string) string {
	t.Helper()
	return p.kubectl(t, "get", "network", "example-network", "-o", "jsonpath="+path)
}

func newAdministrator(t *testing.T) *gophercloud.ServiceClient {
	t.Helper()
	auth, endpoint, _, err := clouds.Parse(clouds.WithCloudName("admin"))
	if err != nil {
		t.Fatal(err)
	}
	auth.AllowReauth = true // a token of the tests lives for seconds
	provider, err := openstack.AuthenticatedClient(t.Context(), auth)
	if err != nil {
		t.Fatal(err)
	}
	client, err := openstack.NewNetworkV2(provider, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// machine is a network namespace on a port, in place of a virtual machine.
type machine struct {
	packets
	namespace string
	portID    string
	address   netip.Addr // that Neutron gave the port
	udhcpc    string     // the script that hears of leases
}

// udhcpcScript takes the address of a lease, and prints the lease.
const udhcpcScript = `#!/bin/sh
[ "$1" = bound ] || exit 0
ip address replace "$ip/$mask" dev "$interface" && echo "$ip/$mask $router"
`

// plug makes a machine, which goes with the test.
func (p packets) plug(t *testing.T, networkID string) *machine {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var port struct {
		ports.Port
		portsbinding.PortsBindingExt
	}
	options := portsbinding.CreateOptsExt{CreateOptsBuilder: ports.CreateOpts{NetworkID: networkID, ProjectID: p.project, DeviceOwner: "compute:nova"}, HostID: host}
	if err := ports.Create(t.Context(), p.admin, options).ExtractInto(&port); err != nil {
		t.Fatal(err)
	}
	m := &machine{packets: p, namespace: "e2e-" + port.ID, portID: port.ID, udhcpc: filepath.Join(t.TempDir(), "udhcpc.sh")}
	t.Cleanup(func() { m.unplug(t) })
	if port.VIFType != "ovs" {
		t.Fatalf("the port is bound to this host as %q, want ovs: OVN does not know host %q", port.VIFType, host)
	}
	m.address = netip.MustParseAddr(port.FixedIPs[0].IPAddress)
	if subnet := netip.MustParsePrefix("192.168.0.0/16"); !subnet.Contains(m.address) {
		t.Errorf("Neutron gave the port %s, which is not in %s", m.address, subnet)
	}
	if err := os.WriteFile(m.udhcpc, []byte(udhcpcScript), 0o700); err != nil {
		t.Fatal(err)
	}
	m.ovn(t, "plug", p.ovnDir, m.namespace, m.portID, port.MACAddress)
	return m
}

// unplug removes what is there of the machine, and its port.
func (m *machine) unplug(t *testing.T) {
	t.Helper()
	m.ovn(t, "unplug", m.ovnDir, m.namespace, m.portID)
	err := ports.Delete(context.WithoutCancel(t.Context()), m.admin, m.portID).ExtractErr()
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("deleting port %s: %v", m.portID, err)
	}
}

func (m *machine) ovn(t *testing.T, args ...string) {
	t.Helper()
	// Not of the context of the test: a machine is unplugged at its end.
	output, err := exec.CommandContext(context.WithoutCancel(t.Context()), "../../hack/neutron/ovn.sh", args...).CombinedOutput()
	if err != nil {
		t.Errorf("ovn.sh %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// lease asks for an address until the answer is that of the port, with that
// gateway.
func (m *machine) lease(t *testing.T, gateway string) {
	t.Helper()
	want := m.address.String() + "/16 " + gateway + "\n"
	m.eventually(t, want, "udhcpc", "-i", "eth0", "-s", m.udhcpc, "-f", "-q", "-n", "-t", "3", "-T", "1")
}

func (m *machine) ping(t *testing.T, to *machine) {
	t.Helper()
	m.eventually(t, "1 packets received", "ping", "-c", "1", "-W", "1", to.address.String())
}

// eventually runs an applet of busybox on the machine until it prints that.
func (m *machine) eventually(t *testing.T, want string, applet ...string) {
	t.Helper()
	args := append([]string{"netns", "exec", m.namespace, "busybox"}, applet...)
	var output []byte
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, eventuallyDeadline, true, func(ctx context.Context) (bool, error) {
		got, _ := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
		if ctx.Err() != nil {
			return false, ctx.Err() // it was cut short: the output before tells more
		}
		output = got
		return bytes.Contains(output, []byte(want)), nil
	})
	if err != nil {
		t.Fatalf("ip %s: %v, want %q, got:\n%s", strings.Join(args, " "), err, want, output)
	}
}
