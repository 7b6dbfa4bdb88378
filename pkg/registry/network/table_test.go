package network

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
)

func TestRow(t *testing.T) {
	for name, tc := range map[string]struct {
		network *samplecrd.Network
		want    []any
	}{
		"a Network that nobody looked at yet": {
			validNetwork(),
			[]any{"net", "192.168.0.0/16", "192.168.0.1", "Unknown", "<unknown>", "", "", int64(0)},
		},
		"a Network that is ready": {
			validNetwork(networkID("1c7d"), ready(metav1.ConditionTrue, "Success"),
				observed("192.168.0.0/16", "192.168.0.1"), observed("fd00::/64", "fd00::"), aged(73*time.Hour)),
			[]any{"net", "192.168.0.0/16", "192.168.0.1", "True", "3d1h", "Success", "1c7d", int64(2)},
		},
		"a Network that is not ready": {
			validNetwork(ready(metav1.ConditionFalse, "QuotaExceeded")),
			[]any{"net", "192.168.0.0/16", "192.168.0.1", "False", "<unknown>", "QuotaExceeded", "", int64(0)},
		},
		"a condition of another type says nothing of Ready": {
			validNetwork(ready(metav1.ConditionTrue, "Creating"), func(n *samplecrd.Network) { n.Status.Conditions[0].Type = "Progressing" }),
			[]any{"net", "192.168.0.0/16", "192.168.0.1", "Unknown", "<unknown>", "", "", int64(0)},
		},
		"a gateway left to Neutron is the one of the same subnet, whatever its place": {
			validNetwork(gateway(""), observed("10.0.0.0/24", "10.0.0.1"), observed("192.168.0.0/16", "192.168.0.9")),
			[]any{"net", "192.168.0.0/16", "192.168.0.9", "Unknown", "<unknown>", "", "", int64(2)},
		},
		"a subnet is found by its masked CIDR and shown as it was written": {
			validNetwork(gateway(""), cidr("192.168.1.0/16"), observed("192.168.0.0/16", "192.168.0.9")),
			[]any{"net", "192.168.1.0/16", "192.168.0.9", "Unknown", "<unknown>", "", "", int64(1)},
		},
		"a gateway left to Neutron is empty until there is one": {
			validNetwork(gateway(""), observed("10.0.0.0/24", "10.0.0.1")),
			[]any{"net", "192.168.0.0/16", "", "Unknown", "<unknown>", "", "", int64(1)},
		},
		"no gateway is shown as it was declared": {
			validNetwork(gateway("None"), observed("192.168.0.0/16", "")),
			[]any{"net", "192.168.0.0/16", "None", "Unknown", "<unknown>", "", "", int64(1)},
		},
		"a Network that declares no subnet shows the first observed": {
			validNetwork(noSubnets, observed("10.0.0.0/24", "10.0.0.1"), observed("fd00::/64", "fd00::")),
			[]any{"net", "10.0.0.0/24", "10.0.0.1", "Unknown", "<unknown>", "", "", int64(2)},
		},
		"a Network with no subnet at all": {
			validNetwork(noSubnets),
			[]any{"net", "", "", "Unknown", "<unknown>", "", "", int64(0)},
		},
		"a stored CIDR that is none": {
			validNetwork(gateway(""), cidr("garbage"), observed("192.168.0.0/16", "192.168.0.1")),
			[]any{"net", "garbage", "", "Unknown", "<unknown>", "", "", int64(1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := convert(t, tc.network, nil)
			if diff := cmp.Diff([][]any{tc.want}, cells(table)); diff != "" {
				t.Errorf("unexpected cells (-want +got):\n%s", diff)
			}
			if got := table.Rows[0].Object.Object; got != tc.network {
				t.Errorf("the row is of %v, not of the Network", got)
			}
		})
	}
}

func TestColumns(t *testing.T) {
	names := map[int32][]string{}
	for _, column := range convert(t, validNetwork(), &metav1.TableOptions{}).ColumnDefinitions {
		names[column.Priority] = append(names[column.Priority], column.Name)
	}
	// kubectl shows priority 0 always and the others with -o wide.
	want := map[int32][]string{
		0: {"Name", "CIDR", "Gateway", "Ready", "Age"},
		1: {"Reason", "Network-ID", "Subnets"},
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("unexpected columns (-want +got):\n%s", diff)
	}
	if got := convert(t, validNetwork(), &metav1.TableOptions{NoHeaders: true}); len(got.ColumnDefinitions) > 0 || len(got.Rows) != 1 {
		t.Errorf("a table without headers has %d columns and %d rows", len(got.ColumnDefinitions), len(got.Rows))
	}
}

func TestTableKeepsThePlaceInTheList(t *testing.T) {
	list := &samplecrd.NetworkList{
		ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "token", RemainingItemCount: ptr.To[int64](5)},
		Items:    []samplecrd.Network{*validNetwork(), *validNetwork(func(n *samplecrd.Network) { n.Name = "other" })},
	}
	table := convert(t, list, nil)
	if diff := cmp.Diff(list.ListMeta, table.ListMeta); diff != "" {
		t.Errorf("unexpected list metadata (-want +got):\n%s", diff)
	}
	var names []any
	for i, row := range table.Rows {
		names = append(names, row.Cells[0])
		if row.Object.Object != &list.Items[i] {
			t.Errorf("row %d is of another Network", i)
		}
	}
	if diff := cmp.Diff([]any{"net", "other"}, names); diff != "" {
		t.Errorf("unexpected rows (-want +got):\n%s", diff)
	}
	if got := convert(t, &samplecrd.NetworkList{}, nil); len(got.Rows) != 0 || len(got.ColumnDefinitions) == 0 {
		t.Errorf("the table of an empty list has %d rows and %d columns", len(got.Rows), len(got.ColumnDefinitions))
	}
	if got := convert(t, storedNetwork(), nil).ResourceVersion; got != "7" {
		t.Errorf("the table of a Network at version 7 is at %q", got)
	}
}

func TestATableIsOfNetworksOnly(t *testing.T) {
	if table, err := (tableConvertor{}).ConvertToTable(t.Context(), &metav1.Status{}, nil); err == nil {
		t.Errorf("got %v, want an error", table)
	}
}

func aged(age time.Duration) tweak {
	return func(network *samplecrd.Network) { network.CreationTimestamp = metav1.NewTime(time.Now().Add(-age)) }
}

func convert(t *testing.T, object, options runtime.Object) *metav1.Table {
	t.Helper()
	table, err := tableConvertor{}.ConvertToTable(t.Context(), object, options)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func cells(table *metav1.Table) [][]any {
	var cells [][]any
	for _, row := range table.Rows {
		cells = append(cells, row.Cells)
	}
	return cells
}
