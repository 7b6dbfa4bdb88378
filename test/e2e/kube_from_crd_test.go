//go:build kube

package e2e

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// courseCRD is the one of the course, as a cluster of today takes it.
const courseCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: networks.samplecrd.k8s.io
  annotations:
    api-approved.kubernetes.io: unapproved, an exercise
spec:
  group: samplecrd.k8s.io
  names: {plural: networks, singular: network, kind: Network, listKind: NetworkList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              cidr: {type: string}
              gateway: {type: string}
`

const courseNetworks = `{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {namespace: course, name: plain}, spec: {cidr: 192.168.0.0/16}}
---
{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {namespace: more, name: plain}, spec: {cidr: 10.0.0.0/24}}
---
{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {namespace: more, name: "123", labels: {"on": web}}, spec: {cidr: 10.0.1.0/24}}
---
apiVersion: samplecrd.k8s.io/v1
kind: Network
metadata:
  namespace: course
  name: labelled
  labels: {app: web, empty: "", enabled: "true", example.com/version: "1.10"}
spec:
  cidr: 192.168.0.0/16
  gateway: 192.168.0.7
`

// shellBlock matches what a reader is to run, with its indentation.
var shellBlock = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")

// testFromCRD does what docs/from-crd.md tells to, word by word, in a cluster
// with the CRD of the course and a server that was started too early.
func (c *cluster) testFromCRD(t *testing.T) {
	c.kubectl(t, "delete", "apiservice", "v1.samplecrd.k8s.io", "v2alpha1.samplecrd.k8s.io", "--ignore-not-found")
	c.apply(t, courseCRD)
	c.kubectl(t, "wait", "--for=condition=Established", "--timeout=1m", "crd/networks.samplecrd.k8s.io")
	c.waitServed(t, "v1")
	c.newNamespace(t, "course", nil)
	c.newNamespace(t, "more", nil)
	c.apply(t, courseNetworks)
	wanted := c.allNetworks(t)
	if len(wanted) != 4 {
		t.Fatalf("the CRD holds %d Networks, want 4", len(wanted))
	}

	overlay := c.overlay(t, "self-registered")
	// By somebody who has changed his mind.
	c.kubectl(t, "apply", "-k", overlay)
	c.script(t, absolute(t, "../../artifacts/uninstall.sh"), overlay)
	c.waitServed(t, "v1")
	if diff := cmp.Diff(wanted, c.allNetworks(t)); diff != "" {
		t.Fatalf("taking out the server changed Networks of the CRD (-before +after):\n%s", diff)
	}

	// Too early.
	c.kubectl(t, "apply", "-k", overlay)
	cloud := newCloud(t)
	r := c.startReplica(t, cloud, "--etcd-prefix=/from-crd")
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, eventuallyDeadline, true, func(context.Context) (bool, error) {
		log := r.log.String()
		return strings.Contains(log, "A CustomResourceDefinition of this API group is installed") && strings.Contains(log, "docs/from-crd.md"), nil
	})
	if err != nil {
		t.Fatal("the server does not tell of the CRD")
	}

	doc, err := os.ReadFile("../../docs/from-crd.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	steps := shellBlock.FindAllStringSubmatch(string(doc), -1)
	for _, step := range steps {
		text := strings.ReplaceAll("\n"+step[2], "\n"+step[1], "\n")
		c.scriptWith(t, []string{"OVERLAY=" + overlay}, dir, "bash", "-e", "-c", text)
	}
	if len(steps) != 4 {
		t.Errorf("the document has %d steps, want 4", len(steps))
	}

	there := cloud.resources(t)
	for _, want := range wanted {
		n, err := c.networks.SamplecrdV1().Networks(want.Namespace).Get(t.Context(), want.Name, metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want.Labels, n.Labels); diff != "" {
			t.Errorf("labels of %s (-before +after):\n%s", n.Name, diff)
		}
		if n.UID == want.UID || n.Spec.CIDR != want.Spec.CIDR || want.Spec.Gateway != "" && n.Spec.Gateway != want.Spec.Gateway {
			t.Errorf("%s is %s %s %s, and was %s %s %s", n.Name, n.UID, n.Spec.CIDR, n.Spec.Gateway, want.UID, want.Spec.CIDR, want.Spec.Gateway)
		}
		if there[n.Status.NetworkID] == nil {
			t.Errorf("%s is not in Neutron", n.Name)
		}
	}
}
