//go:build kube

package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// serverUser is the service account of the manifests, outsideUser that of
// network-controller.
const (
	serverUser  = "system:serviceaccount:network-apiserver:network-apiserver"
	outsideUser = "system:serviceaccount:network-apiserver:" + outsideAccount
)

// auditPolicy has kube-apiserver write down what the server and
// network-controller ask for, what the server is told about the rights of
// others, and what others ask of it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  users: ["` + serverUser + `"]
  resources: [{group: authorization.k8s.io, resources: [subjectaccessreviews]}]
- level: Metadata
  users: ["` + serverUser + `", "` + outsideUser + `"]
- level: Metadata
  resources: [{group: samplecrd.k8s.io}]
- level: None
`

func kubeAuditLog(data string) string { return filepath.Join(data, "audit.log") }

func auditFlags(t testing.TB, data string) []string {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-apiserver", "--audit-policy-file=" + policy, "-apiserver", "--audit-log-path=" + kubeAuditLog(data)}
}

// use is what somebody asked for and got, as a rule says it.
type use struct {
	group, resource, name, verb string
}

// testLeastRBAC compares the rules of the manifests with what the whole run
// made use of: it is for the end of that, and fails by itself.
func (c *cluster) testLeastRBAC(t *testing.T) {
	byServer, byOutside, byUsers := sets.New[use](), sets.New[use](), sets.New[use]()
	programs := map[string]sets.Set[use]{serverUser: byServer, outsideUser: byOutside}
	file, err := os.Open(kubeAuditLog(c.data))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events := 0
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // at its end, where one may be half written
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		events++
		if event.ObjectRef == nil {
			continue
		}
		user := event.User.Username
		if event.ImpersonatedUser != nil {
			user = event.ImpersonatedUser.Username
		}
		u := useOf(&event)
		decision, reason := event.Annotations["authorization.k8s.io/decision"], event.Annotations["authorization.k8s.io/reason"]
		program, own := programs[user]
		switch {
		case own && decision != "allow":
			// The owner of a namespace gives the right to Secrets, or does not.
			if u.resource != "secrets" {
				t.Errorf("%s is refused: %s %s/%s %q", user, u.verb, u.group, u.resource, u.name)
			}
		case own:
			program.Insert(u)
			switch {
			// Who watches from what is there on falls back on a list where that fails.
			case u.verb == "watch" && strings.Contains(event.RequestURI, "sendInitialEvents=true"):
				program.Insert(use{u.group, u.resource, u.name, "list"})
			// Server-side apply of what is not there needs both verbs.
			case u.verb == "patch" && event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusCreated:
				program.Insert(use{u.group, u.resource, u.name, "create"})
			}
			if asked, ok := privilegeOf(&event); ok {
				byUsers.Insert(asked)
			}
		case decision == "allow" && strings.HasPrefix(reason, "RBAC: allowed by RoleBinding"):
			byUsers.Insert(u)
		}
	}
	t.Logf("%d events, %d different uses by the server, %d by network-controller, %d by others", events, len(byServer), len(byOutside), len(byUsers))
	for _, object := range objects(t, c.kubectl(t, "kustomize", absolute(t, "../../artifacts/overlays/self-registered"))) {
		if object.GetAPIVersion() != rbacv1.SchemeGroupVersion.String() {
			continue
		}
		uses := byServer
		switch object.GetName() {
		case "network-apiserver:view", "network-apiserver:edit", "network-apiserver:privileged":
			uses = byUsers
		case "network-controller":
			// Before it deletes surplus, which is left alone for ten minutes.
			uses = byOutside.Insert(use{samplecrdv1.GroupName, "networks", "", "get"})
		}
		var role rbacv1.ClusterRole // a Role's rules are at the same place
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, unused := range unusedOf(rule, uses.UnsortedList()) {
				t.Errorf("%s %s: nothing made use of %s %s/%s %q", object.GetKind(), role.Name, unused.verb, unused.group, unused.resource, unused.name)
			}
		}
	}
}

func useOf(event *auditv1.Event) use {
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	return use{event.ObjectRef.APIGroup, resource, event.ObjectRef.Name, event.Verb}
}

// privilegeOf returns what another may do, where the server was told that.
func privilegeOf(event *auditv1.Event) (use, bool) {
	if event.ResponseObject == nil || event.ObjectRef.Resource != "subjectaccessreviews" {
		return use{}, false
	}
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(event.ResponseObject.Raw, &review); err != nil || !review.Status.Allowed || review.Spec.ResourceAttributes == nil {
		return use{}, false
	}
	asked := review.Spec.ResourceAttributes
	return use{asked.Group, asked.Resource, asked.Name, asked.Verb}, asked.Verb == "privileged"
}

// unusedOf returns each combination of a rule that is in none of the uses.
func unusedOf(rule rbacv1.PolicyRule, uses []use) (unused []use) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""} // any
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				for _, verb := range rule.Verbs {
					if !slices.ContainsFunc(uses, func(u use) bool {
						return u.group == group && u.resource == resource && u.verb == verb && (name == "" || u.name == name)
					}) {
						unused = append(unused, use{group, resource, name, verb})
					}
				}
			}
		}
	}
	return unused
}
