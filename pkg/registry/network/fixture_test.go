package network

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/install"
)

type tweak = func(*samplecrd.Network)

// validNetwork is what a client sends, with the defaults filled in.
func validNetwork(tweaks ...tweak) *samplecrd.Network {
	network := &samplecrd.Network{
		ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: metav1.NamespaceDefault},
		Spec: samplecrd.NetworkSpec{
			Subnets:          []samplecrd.Subnet{{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1", DHCP: samplecrd.Enabled}},
			AdminState:       samplecrd.AdminStateUp,
			ManagementPolicy: samplecrd.ManagementPolicyManaged,
			DeletionPolicy:   samplecrd.DeletionPolicyDelete,
		},
	}
	for _, tweak := range tweaks {
		tweak(network)
	}
	return network
}

// storedNetwork is a network that the controller has made real.
func storedNetwork(tweaks ...tweak) *samplecrd.Network {
	stored := []tweak{
		finalizers(samplecrd.NeutronFinalizer),
		networkID("1c7d7f0e-9d6c-4b59-a4a3-6a0d3b6f2b11"),
		func(network *samplecrd.Network) {
			network.UID, network.ResourceVersion, network.Generation = "uid", "7", 3
			network.CreationTimestamp = metav1.NewTime(time.Unix(1700000000, 0))
		},
	}
	return validNetwork(append(stored, tweaks...)...)
}

func finalizers(finalizers ...string) tweak {
	return func(network *samplecrd.Network) { network.Finalizers = finalizers }
}

func networkID(id string) tweak {
	return func(network *samplecrd.Network) { network.Status.NetworkID = id }
}

func generation(generation int64) tweak {
	return func(network *samplecrd.Network) { network.Generation = generation }
}

func label(key, value string) tweak {
	return func(network *samplecrd.Network) { metav1.SetMetaDataLabel(&network.ObjectMeta, key, value) }
}

func cidr(cidr string) tweak {
	return func(network *samplecrd.Network) { network.Spec.Subnets[0].CIDR = cidr }
}

func gateway(gateway string) tweak {
	return func(network *samplecrd.Network) { network.Spec.Subnets[0].Gateway = gateway }
}

func noStatus(network *samplecrd.Network) { network.Status = samplecrd.NetworkStatus{} }

func noSubnets(network *samplecrd.Network) { network.Spec.Subnets = nil }

func deleting(network *samplecrd.Network) {
	network.DeletionTimestamp = new(metav1.NewTime(time.Unix(1700000001, 0)))
}

func ready(status metav1.ConditionStatus, reason string) tweak {
	return func(network *samplecrd.Network) {
		network.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(time.Unix(1700000002, 0)),
		}}
	}
}

// observed adds a subnet to the status.
func observed(cidr, gateway string) tweak {
	return func(network *samplecrd.Network) {
		network.Status.Subnets = append(network.Status.Subnets, samplecrd.SubnetStatus{CIDR: cidr, Gateway: gateway, ID: cidr})
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

// asked is the context of a request for networks of a version.
func asked(t *testing.T, version string) context.Context {
	ctx := request.WithNamespace(t.Context(), metav1.NamespaceDefault)
	return request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: samplecrd.GroupName, APIVersion: version, Resource: "networks"})
}
