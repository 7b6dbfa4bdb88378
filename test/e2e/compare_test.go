package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// What the servers make bears markerPrefix, and the UID of its Network.
const (
	testCluster  = "e2e"
	markerPrefix = "samplecrd.k8s.io/" + testCluster + "/"
)

// object is a network or a subnet as Neutron tells of it.
type object struct {
	ID          string
	Name        string
	Description string
	MTU         int32
	NetworkID   string `json:"network_id"`
	CIDR        string
	Gateway     string `json:"gateway_ip"`

	text string // all of it
}

func (o object) ours() bool { return strings.Contains(o.Description, markerPrefix) }

func (o object) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %q with the description %q %s", o.ID, o.Name, o.Description, o.CIDR))
}

// inventory is all that Neutron holds.
type inventory struct{ networks, subnets []object }

// takeInventory asks as the administrator of the simulator.
func takeInventory(t *testing.T, neutronURL string) inventory {
	t.Helper()
	return inventory{networks: listObjects(t, neutronURL, "networks"), subnets: listObjects(t, neutronURL, "subnets")}
}

func listObjects(t *testing.T, neutronURL, collection string) []object {
	t.Helper()
	answer, err := callNeutron(t.Context(), "", http.MethodGet, neutronURL+"/v2.0/"+collection, nil)
	if err != nil {
		t.Fatal(err)
	}
	var texts map[string][]json.RawMessage
	if err := json.Unmarshal([]byte(answer), &texts); err != nil {
		t.Fatal(err)
	}
	objects := make([]object, len(texts[collection]))
	for i, text := range texts[collection] {
		if err := json.Unmarshal(text, &objects[i]); err != nil {
			t.Fatal(err)
		}
		objects[i].text = string(text)
	}
	return objects
}

// kind is how something in Neutron is not as it should be.
type kind string

const (
	missing   kind = "missing"   // a Network has no network
	duplicate kind = "duplicate" // a Network has more than one
	orphan    kind = "orphan"    // what is ours belongs to no Network
	deviant   kind = "deviant"   // what a Network has is not as it declares
	touched   kind = "touched"   // what is not ours is not as it was
)

type difference struct {
	kind kind
	text string
}

func (d difference) String() string { return string(d.kind) + ": " + d.text }

// compare demands one network for each Network with the subnets that it
// declares, each with its gateway, nothing else of ours, and all that is not
// ours as it was before. Each subnet of a Network must name a gateway.
func compare(networks []samplecrdv1.Network, before, after inventory) []difference {
	var found []difference
	report := func(kind kind, format string, args ...any) {
		found = append(found, difference{kind, fmt.Sprintf(format, args...)})
	}
	owners := map[string]bool{}
	for _, n := range networks {
		marker := markerPrefix + string(n.UID)
		owners[marker] = true
		made, subnets := bearing(marker, after.networks), bearing(marker, after.subnets)
		switch len(made) {
		case 0:
			report(missing, "%s with the marker %s has no network", n.Name, marker)
		case 1:
			if diff := cmp.Diff(declared(n, made[0]), append(made, subnets...), sameObjects...); diff != "" {
				report(deviant, "%s (-declared +in Neutron):\n%s", n.Name, diff)
			}
		default:
			report(duplicate, "%s has %d networks: %v", n.Name, len(made), made)
		}
	}
	for _, o := range slices.Concat(after.networks, after.subnets) {
		if o.ours() && !owners[o.Description] {
			report(orphan, "%v", o)
		}
	}
	if diff := cmp.Diff(foreign(before), foreign(after)); diff != "" {
		report(touched, "(-before +after):\n%s", diff)
	}
	return found
}

var sameObjects = cmp.Options{
	cmpopts.IgnoreFields(object{}, "text"),
	cmpopts.SortSlices(func(a, b object) bool { return a.CIDR < b.CIDR }),
}

func bearing(marker string, objects []object) []object {
	var found []object
	for _, o := range objects {
		if o.Description == marker {
			found = append(found, o)
		}
	}
	return found
}

// declared is what there should be of a Network, as its status tells of it. What
// the spec leaves to Neutron is as it was made.
func declared(n samplecrdv1.Network, made object) []object {
	network := object{ID: n.Status.NetworkID, Name: n.Name, Description: made.Description, MTU: made.MTU}
	if n.Spec.MTU != nil {
		network.MTU = *n.Spec.MTU
	}
	objects := []object{network}
	ids := map[string]string{}
	for _, s := range n.Status.Subnets {
		ids[s.CIDR] = s.ID
	}
	for _, s := range append([]samplecrdv1.Subnet{n.Spec.Subnet}, n.Spec.AdditionalSubnets...) {
		objects = append(objects, object{
			ID: ids[s.CIDR], Name: n.Name, Description: made.Description, NetworkID: made.ID, CIDR: s.CIDR, Gateway: s.Gateway,
		})
	}
	return objects
}

// foreign holds all of what is not ours, by id.
func foreign(i inventory) map[string]string {
	texts := map[string]string{}
	for _, o := range slices.Concat(i.networks, i.subnets) {
		if !o.ours() {
			texts[o.ID] = o.text
		}
	}
	return texts
}

// TestCompare shows that the comparison sees each kind of difference.
func TestCompare(t *testing.T) {
	t.Parallel()
	network := samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: "net", UID: "1"},
		Spec:       state{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", MTU: 1400}.spec(),
		Status:     samplecrdv1.NetworkStatus{NetworkID: "n", Subnets: []samplecrdv1.SubnetStatus{{ID: "s", CIDR: "10.0.0.0/24"}}},
	}
	const marker, goneMarker = markerPrefix + "1", markerPrefix + "2"
	inNeutron := func(tweaks ...func(*inventory)) inventory {
		i := inventory{
			networks: []object{{ID: "f", Name: "net", text: "foreign"}, {ID: "n", Name: "net", Description: marker, MTU: 1400}},
			subnets:  []object{{ID: "s", Name: "net", Description: marker, NetworkID: "n", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}},
		}
		for _, tweak := range tweaks {
			tweak(&i)
		}
		return i
	}
	for name, tc := range map[string]struct {
		tweak func(*inventory)
		want  []kind
	}{
		"all is well":        {func(*inventory) {}, nil},
		"no network":         {func(i *inventory) { i.networks, i.subnets = i.networks[:1], nil }, []kind{missing}},
		"two networks":       {func(i *inventory) { i.networks = append(i.networks, i.networks[1]) }, []kind{duplicate}},
		"an orphan":          {func(i *inventory) { i.networks = append(i.networks, object{Description: goneMarker}) }, []kind{orphan}},
		"an orphaned subnet": {func(i *inventory) { i.subnets = append(i.subnets, object{Description: goneMarker}) }, []kind{orphan}},
		"a longer marker":    {func(i *inventory) { i.networks = append(i.networks, object{Description: marker + "x"}) }, []kind{orphan}},
		"another network":    {func(i *inventory) { i.networks[1].ID = "m"; i.subnets[0].NetworkID = "m" }, []kind{deviant}},
		"another subnet":     {func(i *inventory) { i.subnets[0].ID = "t" }, []kind{deviant}},
		"another name":       {func(i *inventory) { i.networks[1].Name = "other" }, []kind{deviant}},
		"another MTU":        {func(i *inventory) { i.networks[1].MTU = 1500 }, []kind{deviant}},
		"no subnet":          {func(i *inventory) { i.subnets = nil }, []kind{deviant}},
		"one subnet more":    {func(i *inventory) { i.subnets = append(i.subnets, i.subnets[0]) }, []kind{deviant}},
		"another range":      {func(i *inventory) { i.subnets[0].CIDR = "10.0.1.0/24" }, []kind{deviant}},
		"another gateway":    {func(i *inventory) { i.subnets[0].Gateway = "" }, []kind{deviant}},
		"a strange subnet":   {func(i *inventory) { i.subnets[0].NetworkID = "f" }, []kind{deviant}},
		"a foreign change":   {func(i *inventory) { i.networks[0].text = "changed" }, []kind{touched}},
		"a foreign loss":     {func(i *inventory) { i.networks = i.networks[1:] }, []kind{touched}},
		"a stranger":         {func(i *inventory) { i.subnets = append(i.subnets, object{ID: "x"}) }, []kind{touched}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []kind
			for _, d := range compare([]samplecrdv1.Network{network}, inNeutron(), inNeutron(tc.tweak)) {
				got = append(got, d.kind)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kinds of differences (-want +got):\n%s", diff)
			}
		})
	}
}
