package cidrpolicy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	networkadmission "github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/fake"
	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
)

func TestValidate(t *testing.T) {
	const forbidden = `networks.samplecrd.k8s.io "web" is forbidden: `
	const ranges = header + "allowed: [10.0.0.0/8, \"fd00::/8\"]\nreserved: [10.96.0.0/12]"
	const deny, warn = header + "overlap: Deny", header + "overlap: Warn"
	stored := []runtime.Object{
		other("web", "10.5.0.0/16"),
		other("b", "10.1.0.0/16", "fd00:1::/64"),
		other("a", "10.2.0.0/16", "10.3.9.9/16"),
		other("c", "not a range"),
		other("d", ""),
		&samplecrdv1.Network{
			ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "e"},
			Spec:       samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.4.0.0/16"}},
		},
	}
	deleted := network("10.96.0.0/24")
	deleted.DeletionTimestamp = &metav1.Time{}

	for name, tc := range map[string]struct {
		policy       string
		request      admission.Attributes
		wantErr      string
		wantWarnings recorder
	}{
		"without a configuration everything is allowed": {
			request: create(network("10.1.0.0/16", "2001:db8::/64")),
		},
		"a subnet inside an allowed range passes": {
			policy:  ranges,
			request: create(network("10.1.2.3/24", "fd00:1::/64")),
		},
		"a subnet that is an allowed range passes": {
			policy:  header + "allowed: [10.0.0.0/8]",
			request: create(network("10.0.0.0/8")),
		},
		"a subnet outside of the allowed ranges is refused": {
			policy:  ranges,
			request: create(network("192.168.1.0/16")),
			wantErr: forbidden + `spec.cidr: Invalid value: "192.168.1.0/16": must lie inside an allowed range: 10.0.0.0/8, fd00::/8`,
		},
		"a subnet larger than the allowed range is refused": {
			policy:  header + "allowed: [10.0.0.0/8]",
			request: create(network("10.0.0.0/7")),
			wantErr: forbidden + `spec.cidr: Invalid value: "10.0.0.0/7": must lie inside an allowed range: 10.0.0.0/8`,
		},
		"IPv6 is refused where only IPv4 is allowed": {
			policy:  header + "allowed: [10.0.0.0/8]",
			request: create(network("10.0.0.0/24", "fd00::/64")),
			wantErr: forbidden + `spec.additionalSubnets[0].cidr: Invalid value: "fd00::/64": must lie inside an allowed range: 10.0.0.0/8 (none is IPv6)`,
		},
		"IPv4 is refused where only IPv6 is allowed": {
			policy:  header + "allowed: [\"fd00::/8\"]",
			request: create(network("10.0.0.0/24", "fd00::/64")),
			wantErr: forbidden + `spec.cidr: Invalid value: "10.0.0.0/24": must lie inside an allowed range: fd00::/8 (none is IPv4)`,
		},
		"a reserved range refuses one family only": {
			policy:  header + "reserved: [0.0.0.0/0]",
			request: create(network("fd00::/64")),
		},
		"a subnet that holds a reserved range is refused": {
			policy:  ranges,
			request: create(network("10.64.0.0/10")),
			wantErr: forbidden + `spec.cidr: Invalid value: "10.64.0.0/10": must not overlap the reserved range 10.96.0.0/12`,
		},
		"all refused subnets are in one answer": {
			policy:  ranges,
			request: create(network("10.97.0.0/24", "10.1.0.0/24", "172.16.0.0/24")),
			wantErr: forbidden + `[spec.cidr: Invalid value: "10.97.0.0/24": must not overlap the reserved range 10.96.0.0/12, ` +
				`spec.additionalSubnets[1].cidr: Invalid value: "172.16.0.0/24": must lie inside an allowed range: 10.0.0.0/8, fd00::/8]`,
		},
		"a client of v2alpha1 reads the paths of v2alpha1": {
			policy:  ranges,
			request: create(network("10.97.0.0/24", "10.98.0.0/24"), v2alpha1),
			wantErr: forbidden + `[spec.subnets[0].cidr: Invalid value: "10.97.0.0/24": must not overlap the reserved range 10.96.0.0/12, ` +
				`spec.subnets[1].cidr: Invalid value: "10.98.0.0/24": must not overlap the reserved range 10.96.0.0/12]`,
		},
		"what does not parse is left to validation": {
			policy:  ranges,
			request: create(network("", "10.97.0.0", "10.97.0.0/33")),
		},
		"an update is refused for what is new": {
			policy:  ranges,
			request: update(network("10.97.0.0/24", "10.98.0.0/24"), network("10.97.0.0/24")),
			wantErr: forbidden + `spec.additionalSubnets[0].cidr: Invalid value: "10.98.0.0/24": must not overlap the reserved range 10.96.0.0/12`,
		},
		"an update may keep, move and respell what was there": {
			policy:  ranges,
			request: update(network("10.98.0.1/24", "10.97.0.0/24"), network("10.97.0.9/24", "10.98.0.0/24")),
		},
		"an update to another size of a range is new": {
			policy:  ranges,
			request: update(network("10.97.0.0/25"), network("10.97.0.0/24")),
			wantErr: forbidden + `spec.cidr: Invalid value: "10.97.0.0/25": must not overlap the reserved range 10.96.0.0/12`,
		},
		"a write of status is not looked at": {
			policy:  ranges,
			request: update(network("10.97.0.0/24"), network(), func(r *request) { r.subresource = "status" }),
		},
		"an object that is being deleted is not looked at": {
			policy:  ranges,
			request: update(deleted, network()),
		},
		"another resource of the group is not looked at": {
			policy:  ranges,
			request: attributes(&samplecrd.NetworkList{}, nil, func(r *request) { r.resource = "others" }),
		},
		"networks of another group are not looked at": {
			policy:  ranges,
			request: attributes(&metav1.Status{}, nil, func(r *request) { r.group = "example.com" }),
		},
		"an object that is no Network is an error": {
			policy:  ranges,
			request: attributes(&samplecrdv1.Network{}, nil),
			wantErr: "Internal error occurred: CIDRPolicy: object is a *v1.Network, not a Network",
		},
		"overlap with another Network is allowed by default": {
			policy:  header,
			request: create(network("10.1.0.0/16")),
		},
		"overlap with another Network can be denied": {
			policy:  deny,
			request: create(network("10.1.2.0/24")),
			wantErr: forbidden + `spec.cidr: Invalid value: "10.1.2.0/24": must not overlap 10.1.0.0/16 of Network "b"`,
		},
		"an additional subnet of another Network counts": {
			policy:  deny,
			request: create(network("10.9.0.0/16", "fd00:1::/48", "10.3.0.0/24"), v2alpha1),
			wantErr: forbidden + `[spec.subnets[1].cidr: Invalid value: "fd00:1::/48": must not overlap fd00:1::/64 of Network "b", ` +
				`spec.subnets[2].cidr: Invalid value: "10.3.0.0/24": must not overlap 10.3.0.0/16 of Network "a"]`,
		},
		"of many overlaps the first by name is told": {
			policy:  deny,
			request: create(network("10.0.0.0/8")),
			wantErr: forbidden + `spec.cidr: Invalid value: "10.0.0.0/8": must not overlap 10.2.0.0/16 of Network "a"`,
		},
		"a Network does not overlap itself": {
			policy:  deny,
			request: update(network("10.5.0.0/17"), network("10.5.0.0/16")),
		},
		"a Network of another namespace does not count": {
			policy:  deny,
			request: create(network("10.4.0.0/24")),
		},
		"an overlap that was there may stay": {
			policy:  deny,
			request: update(network("10.1.0.0/24", "10.9.0.0/24"), network("10.1.0.0/24")),
		},
		"overlap with another Network can give a warning": {
			policy:       warn,
			request:      create(network("10.1.2.0/24", "10.2.0.0/24")),
			wantWarnings: recorder{`spec.cidr: "10.1.2.0/24" overlaps 10.1.0.0/16 of Network "b"`, `spec.additionalSubnets[0].cidr: "10.2.0.0/24" overlaps 10.2.0.0/16 of Network "a"`},
		},
		"ranges refuse what overlap only warns of": {
			policy:       warn + "\nreserved: [10.1.0.0/16]",
			request:      create(network("10.1.2.0/24"), v2alpha1),
			wantErr:      forbidden + `spec.subnets[0].cidr: Invalid value: "10.1.2.0/24": must not overlap the reserved range 10.1.0.0/16`,
			wantWarnings: recorder{`spec.subnets[0].cidr: "10.1.2.0/24" overlaps 10.1.0.0/16 of Network "b"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			validator, _ := start(t, writeFile(t, tc.policy), stored...)
			var warnings recorder
			err := validator.Validate(warning.WithWarningRecorder(t.Context(), &warnings), tc.request, nil)
			if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandles(t *testing.T) {
	validator, _ := start(t, writeFile(t, header))
	for operation, want := range map[admission.Operation]bool{
		admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false,
	} {
		if got := validator.Handles(operation); got != want {
			t.Errorf("Handles(%s) = %t, want %t", operation, got, want)
		}
	}
}

func TestNetworksAreWatchedOnlyWhereTheyMatter(t *testing.T) {
	for policy, want := range map[string]int{header: 0, header + "overlap: Allow": 0, header + "overlap: Warn": 1, header + "overlap: Deny": 1} {
		_, factory := start(t, writeFile(t, policy))
		if got := len(factory.WaitForCacheSyncWithContext(t.Context()).Synced); got != want {
			t.Errorf("%q: %d informers, want %d", policy, got, want)
		}
	}
}

func TestAnEmptyCacheIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		request  admission.Attributes
		wantErr  string
		wantWait bool
	}{
		"a new subnet waits and is refused": {
			request:  create(network("10.1.0.0/16")),
			wantErr:  `networks.samplecrd.k8s.io "web" is forbidden: the other Networks of the namespace are not known yet, try again`,
			wantWait: true,
		},
		"an update without a new subnet does not wait": {
			request: update(network("10.1.0.0/16"), network("10.1.0.0/16")),
		},
		"a write of status does not wait": {
			request: update(network("10.1.0.0/16"), network(), func(r *request) { r.subresource = "status" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, header+"overlap: Deny")
			synctest.Test(t, func(t *testing.T) {
				factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
				validator, err := load(path, networkadmission.NewInitializer(factory, nil))
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				err = validator.Validate(t.Context(), tc.request, nil)
				if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if tc.wantErr != "" && !apierrors.IsForbidden(err) {
					t.Errorf("error %v is not Forbidden", err)
				}
				if waited := time.Since(begin) > 0; waited != tc.wantWait {
					t.Errorf("waited: %t, want %t", waited, tc.wantWait)
				}
			})
		})
	}
}
