package network

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/validation"
)

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the Network."},
	{Name: "CIDR", Type: "string", Description: "Address range of the first subnet."},
	{Name: "Gateway", Type: "string", Description: "Gateway of the first subnet."},
	{Name: "Ready", Type: "string", Description: "Whether the network is there as declared."},
	{Name: "Age", Type: "string", Description: "Time since the object was created."},
	{Name: "Reason", Type: "string", Priority: 1, Description: "Why it is, or is not, ready."},
	{Name: "Network-ID", Type: "string", Priority: 1, Description: "Id of the network in Neutron."},
	{Name: "Subnets", Type: "integer", Priority: 1, Description: "Number of subnets in Neutron."},
}

// tableConvertor makes the columns that kubectl get shows.
type tableConvertor struct{}

func (tableConvertor) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = columns
	}
	switch t := object.(type) {
	case *samplecrd.Network:
		table.ResourceVersion = t.ResourceVersion
		table.Rows = []metav1.TableRow{row(t)}
	case *samplecrd.NetworkList:
		table.ResourceVersion = t.ResourceVersion
		table.Continue = t.Continue
		table.RemainingItemCount = t.RemainingItemCount
		table.Rows = make([]metav1.TableRow, len(t.Items))
		for i := range t.Items {
			table.Rows[i] = row(&t.Items[i])
		}
	default:
		return nil, fmt.Errorf("making a table of a %T: not a Network", object)
	}
	return table, nil
}

func row(network *samplecrd.Network) metav1.TableRow {
	cidr, gateway := firstSubnet(network)
	ready, reason := string(metav1.ConditionUnknown), ""
	if c := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady); c != nil {
		ready, reason = string(c.Status), c.Reason
	}
	age := "<unknown>"
	if !network.CreationTimestamp.IsZero() {
		age = duration.HumanDuration(time.Since(network.CreationTimestamp.Time))
	}
	return metav1.TableRow{
		Object: runtime.RawExtension{Object: network},
		Cells:  []any{network.Name, cidr, gateway, ready, age, reason, network.Status.NetworkID, int64(len(network.Status.Subnets))},
	}
}

// firstSubnet returns CIDR and gateway as declared and, where the user left
// them to Neutron, as observed.
func firstSubnet(network *samplecrd.Network) (cidr, gateway string) {
	observed := network.Status.Subnets
	if len(network.Spec.Subnets) == 0 {
		if len(observed) == 0 {
			return "", ""
		}
		return observed[0].CIDR, observed[0].Gateway
	}
	declared := network.Spec.Subnets[0]
	if declared.Gateway != "" {
		return declared.CIDR, declared.Gateway
	}
	masked := validation.MaskedCIDR(declared.CIDR)
	for _, s := range observed {
		if s.CIDR == masked {
			return declared.CIDR, s.Gateway
		}
	}
	return declared.CIDR, ""
}
