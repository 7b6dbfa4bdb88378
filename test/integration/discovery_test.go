package integration

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

const aggregatedDiscovery = jsonType + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func TestDiscoveryOfTheGroup(t *testing.T) {
	t.Parallel()
	var groups metav1.APIGroupList
	shared.get(t, "/apis", nil).into(t, &groups)
	gv := func(version string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: "samplecrd.k8s.io/" + version, Version: version}
	}
	traces := metav1.GroupVersionForDiscovery{GroupVersion: "pipeline.samplecrd.k8s.io/v1alpha1", Version: "v1alpha1"}
	want := []metav1.APIGroup{
		{
			Name:             "samplecrd.k8s.io",
			Versions:         []metav1.GroupVersionForDiscovery{gv("v1"), gv("v2alpha1")},
			PreferredVersion: gv("v1"),
		},
		{
			Name:             "pipeline.samplecrd.k8s.io",
			Versions:         []metav1.GroupVersionForDiscovery{traces},
			PreferredVersion: traces,
		},
	}
	ignoreAddress := cmpopts.IgnoreFields(metav1.APIGroup{}, "ServerAddressByClientCIDRs")
	if diff := cmp.Diff(want, groups.Groups, ignoreAddress); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, version := range apiVersions {
		var resources metav1.APIResourceList
		shared.get(t, "/apis/samplecrd.k8s.io/"+version, nil).into(t, &resources)
		for i := range resources.APIResources {
			resources.APIResources[i].StorageVersionHash = ""
		}
		want := []metav1.APIResource{
			{
				Name: "networks", SingularName: "network", Namespaced: true, Kind: "Network",
				Verbs:      metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
				ShortNames: []string{"snet"}, Categories: []string{"samplecrd"},
			},
			{Name: "networks/status", Namespaced: true, Kind: "Network", Verbs: metav1.Verbs{"get", "patch", "update"}},
		}
		if diff := cmp.Diff(want, resources.APIResources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestDiscoveryInOneDocument(t *testing.T) {
	t.Parallel()
	answer := shared.get(t, "/apis", map[string]string{"Accept": aggregatedDiscovery})
	var list struct {
		Items []struct {
			Versions []struct {
				Version, Freshness string
				Resources          []struct {
					Resource, SingularResource string
					ShortNames, Categories     []string
					Subresources               []any
				}
			}
		}
	}
	answer.into(t, &list)
	type resource struct {
		Version, Name, Singular string
		ShortNames, Categories  []string
		Subresources            int
	}
	var got []resource
	for _, group := range list.Items {
		for _, version := range group.Versions {
			if version.Freshness != "Current" {
				t.Errorf("%s is %s, want Current", version.Version, version.Freshness)
			}
			for _, r := range version.Resources {
				got = append(got, resource{version.Version, r.Resource, r.SingularResource, r.ShortNames, r.Categories, len(r.Subresources)})
			}
		}
	}
	want := []resource{
		{"v1alpha1", "requesttraces", "requesttrace", nil, nil, 0},
		{"v1", "networks", "network", []string{"snet"}, []string{"samplecrd"}, 1},
		{"v2alpha1", "networks", "network", []string{"snet"}, []string{"samplecrd"}, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again := shared.send(t, request{method: http.MethodGet, path: "/apis", header: map[string]string{
		"Accept": aggregatedDiscovery, "If-None-Match": answer.header.Get("Etag"),
	}})
	if again.status != http.StatusNotModified {
		t.Errorf("got HTTP %d with the ETag %s, want 304", again.status, answer.header.Get("Etag"))
	}
}

func TestVersionsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags        []string
		wantVersions []string
	}{
		"without v2alpha1": {
			flags:        []string{"--runtime-config=samplecrd.k8s.io/v2alpha1=false"},
			wantVersions: []string{"v1"},
		},
		"without what is not stable": {
			flags:        []string{"--runtime-config=api/alpha=false"},
			wantVersions: []string{"v1"},
		},
		"without v1, and so without the controller": {
			flags:        []string{"--runtime-config=samplecrd.k8s.io/v1=false", "--controller=false"},
			wantVersions: []string{"v2alpha1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, tc.flags...)
			var groups metav1.APIGroupList
			s.get(t, "/apis", nil).into(t, &groups)
			var got []string
			for _, version := range groups.Groups[0].Versions {
				got = append(got, version.Version)
			}
			if diff := cmp.Diff(tc.wantVersions, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, version := range apiVersions {
				want := http.StatusNotFound
				if version == tc.wantVersions[0] {
					want = http.StatusOK
				}
				list := request{method: http.MethodGet, path: s.networks(t).path(version)}
				a := s.send(t, list)
				for a.status == http.StatusTooManyRequests { // its watch cache is about to be filled
					a = s.send(t, list)
				}
				if a.status != want {
					t.Errorf("listing in %s: got HTTP %d, want %d", version, a.status, want)
				}
			}
			if got[0] == "v1" {
				s.networks(t).create(newNetwork("one", func(n *samplecrdv1.Network) { n.Spec.MTU = new(int32(1400)) }))
				s.networks(t).awaitReady("one")
			}
		})
	}
}
