//go:build kube

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/defaultcredentials"
)

// testPolicies has policies of the cluster decide about Networks of one
// namespace.
func (c *cluster) testPolicies(t *testing.T) {
	namespace := c.newNamespace(t, "policies", nil)
	networks := c.networks.SamplecrdV1().Networks(namespace)
	match := &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
	}
	constraints := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{samplecrdv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"networks"}},
	}}}}
	meta := metav1.ObjectMeta{Name: "e2e.samplecrd.k8s.io"}
	policies := c.kube.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: constraints,
		Validations:      []admissionv1.Validation{{Expression: "object.spec.cidr != '10.66.0.0/16'", Message: "10.66.0.0/16 is taken"}},
	}}, metav1.CreateOptions{})
	c.made(t, "validatingadmissionpolicy", meta.Name, err)
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, MatchResources: match, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}, metav1.CreateOptions{})
	c.made(t, "validatingadmissionpolicybinding", meta.Name, err)
	_, err = policies.MutatingAdmissionPolicies().Create(t.Context(), &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints:   constraints,
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{
			Expression: "Object{spec: Object.spec{mtu: 1400}}",
		}}},
	}}, metav1.CreateOptions{})
	c.made(t, "mutatingadmissionpolicy", meta.Name, err)
	_, err = policies.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, MatchResources: match,
	}}, metav1.CreateOptions{})
	c.made(t, "mutatingadmissionpolicybinding", meta.Name, err)

	try := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	until(t, "the range is forbidden", func(ctx context.Context) error {
		_, err := networks.Create(ctx, newTestNetwork("taken", "10.66.0.0/16"), try)
		switch {
		case err == nil:
			return errors.New("it is allowed")
		case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "10.66.0.0/16 is taken"):
			return nil
		}
		return err
	})
	until(t, "the MTU is set", func(ctx context.Context) error {
		n, err := networks.Create(ctx, newTestNetwork("free", "10.67.0.0/16"), try)
		if err == nil && (n.Spec.MTU == nil || *n.Spec.MTU != 1400) {
			err = fmt.Errorf("the spec is %+v", n.Spec)
		}
		return err
	})
	if _, err := networks.Create(t.Context(), newTestNetwork("free", "10.67.0.0/16"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n := converge(t, networks)[0]
	if n.Status.MTU == nil || *n.Status.MTU != 1400 {
		t.Errorf("in Neutron the MTU is %v, want that of the policy", n.Status.MTU)
	}
	n.Spec.CIDR = "10.66.0.0/16"
	if _, err := networks.Update(t.Context(), &n, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an update to the range is answered with %v", err)
	}
	if err := networks.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	converge(t, networks)
}

// made has an object of the cluster deleted at the end of the test.
func (c *cluster) made(t *testing.T, kind, name string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command := c.command(context.WithoutCancel(t.Context()), t.TempDir(), "kubectl", "delete", kind, name)
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	})
}

// testQuota needs a cluster that knows Networks: it counts them by what it has
// found, as the garbage collector does.
func (c *cluster) testQuota(t *testing.T) {
	const counted = corev1.ResourceName("count/networks." + samplecrdv1.GroupName)
	namespace := c.newNamespace(t, "quota", nil)
	networks := c.networks.SamplecrdV1().Networks(namespace)
	quotas := c.kube.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "two"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: apiresource.MustParse("2")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := func(want string) {
		t.Helper()
		until(t, "the quota counts "+want, func(ctx context.Context) error {
			quota, err := quotas.Get(ctx, "two", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got, ok := quota.Status.Used[counted]; !ok || got.String() != want {
				return fmt.Errorf("its status is %+v", quota.Status)
			}
			return nil
		})
	}
	used("0")
	for _, name := range []string{"one", "two"} {
		createNetwork(t, networks, name)
	}
	used("2")
	_, err = networks.Create(t.Context(), newTestNetwork("three", "10.0.0.0/24"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: two") {
		t.Errorf("a third Network is answered with %v", err)
	}
	if err := networks.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	used("1")
	createNetwork(t, networks, "three")
	if got := len(converge(t, networks)); got != 2 {
		t.Errorf("there are %d Networks, want 2", got)
	}
}

// testDefaultCredentials has a namespace say where its Networks are made.
func (c *cluster) testDefaultCredentials(t *testing.T, o *cloud) {
	namespace := c.newNamespace(t, "defaulted", map[string]string{defaultcredentials.Annotation: "lab/LAB"})
	c.giveCredentials(t, namespace, o, "other")
	networks := c.networks.SamplecrdV1().Networks(namespace)
	createNetwork(t, networks, "one")
	n := converge(t, networks)[0]
	if n.Spec.OpenStack == nil || n.Spec.OpenStack.CredentialsRef == nil || n.Status.ProjectID != o.project(t, "other") {
		t.Errorf("it is made in project %s with %+v", n.Status.ProjectID, n.Spec.OpenStack)
	}
	c.kubectl(t, "delete", "network", "one", "-n", namespace, "--timeout=1m")
}
