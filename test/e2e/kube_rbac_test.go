//go:build kube

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
	typedv1 "github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned/typed/samplecrd/v1"
)

// revokedDeadline bounds how long a right that was taken away still counts.
const revokedDeadline = 15 * time.Second

// testRBAC shows who may do what through the aggregator, where kube-apiserver
// asks first, and on the server's own port.
func (c *cluster) testRBAC(t *testing.T) {
	r := c.startReplica(t, newCloud(t), "--etcd-prefix=/rbac")
	c.waitServed(t)
	namespace := c.newNamespace(t, "rbac", nil)
	accounts := map[string]*account{}
	for _, role := range []string{"view", "edit", "admin"} {
		accounts[role] = c.account(t, namespace, role)
	}
	networks := c.networks.SamplecrdV1().Networks(namespace)
	createNetwork(t, networks, "web")
	web := converge(t, networks)[0]
	t.Run("Matrix", func(t *testing.T) { c.testRBACMatrix(t, r, &web, accounts) })
	t.Run("Seldom", func(t *testing.T) { c.testSeldom(t, namespace) })
	// At the same time: both wait until what the server keeps is old.
	t.Run("Privileged", func(t *testing.T) { c.testPrivileged(t, namespace, accounts["edit"]) })
	t.Run("Revoked", func(t *testing.T) { c.testRevoked(t, r, namespace, accounts) })
}

func (c *cluster) testRBACMatrix(t *testing.T, r *replica, web *samplecrdv1.Network, accounts map[string]*account) {
	read := []string{"get", "list", "watch", "get status"}
	write := []string{"create", "update", "patch", "delete", "deletecollection"}
	for role, allowed := range map[string][]string{
		"view":   read,
		"edit":   slices.Concat(read, write),
		"admin":  slices.Concat(read, write),
		"nobody": nil,
	} {
		t.Run(role, func(t *testing.T) {
			as := "nobody"
			ways := map[string]*rest.Config{"through the aggregator": rest.CopyConfig(c.config)}
			if a := accounts[role]; a != nil {
				as = a.name()
				ways["on the port of the server"] = r.config(c.token(t, a))
			}
			ways["through the aggregator"].Impersonate.UserName = as
			for way, config := range ways {
				clients, err := versioned.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				for verb, do := range verbs {
					err := do(t.Context(), clients.SamplecrdV1(), web)
					switch may := slices.Contains(allowed, verb); {
					case may && err != nil:
						t.Errorf("%s %s is refused: %v", verb, way, err)
					case !may && !apierrors.IsForbidden(err):
						t.Errorf("%s %s: got %v, want it forbidden", verb, way, err)
					}
				}
			}
			for verb := range verbs {
				want := "no"
				if slices.Contains(allowed, verb) {
					want = "yes"
				}
				name, subresource, _ := strings.Cut(verb, " ")
				command := c.command(t.Context(), t.TempDir(), "kubectl", "auth", "can-i", name, "networks.samplecrd.k8s.io",
					"--subresource="+subresource, "--namespace="+web.Namespace, "--as="+as)
				// "no" ends with 1, and beside it may stand a reason.
				answer, _ := command.Output()
				if got, _, _ := strings.Cut(strings.TrimSpace(string(answer)), " "); got != want {
					t.Errorf("can-i %s says %q, want %q", verb, answer, want)
				}
			}
		})
	}
}

// verbs are real requests. Those that write change nothing.
var verbs = map[string]func(context.Context, typedv1.SamplecrdV1Interface, *samplecrdv1.Network) error{
	"get": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		_, err := api.Networks(web.Namespace).Get(ctx, web.Name, metav1.GetOptions{})
		return err
	},
	"list": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		_, err := api.Networks(web.Namespace).List(ctx, metav1.ListOptions{})
		return err
	},
	"watch": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		w, err := api.Networks(web.Namespace).Watch(ctx, metav1.ListOptions{})
		if err == nil {
			w.Stop()
		}
		return err
	},
	"create": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		_, err := api.Networks(web.Namespace).Create(ctx, asked(samplecrdv1.OpenStack{}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	},
	"update": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		_, err := api.Networks(web.Namespace).Update(ctx, web, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	},
	"patch": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		_, err := api.Networks(web.Namespace).Patch(ctx, web.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	},
	"delete": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		return api.Networks(web.Namespace).Delete(ctx, web.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	},
	"deletecollection": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		return api.Networks(web.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "no=such"})
	},
	"get status": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		return api.RESTClient().Get().Namespace(web.Namespace).Resource("networks").Name(web.Name).SubResource("status").Do(ctx).Error()
	},
	"update status": func(ctx context.Context, api typedv1.SamplecrdV1Interface, web *samplecrdv1.Network) error {
		_, err := api.Networks(web.Namespace).UpdateStatus(ctx, web, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	},
}

func asked(openStack samplecrdv1.OpenStack) *samplecrdv1.Network {
	return &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: "asked"},
		Spec:       samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.0.0.0/24"}, OpenStack: &openStack},
	}
}

// testSeldom has the server use rights that it seldom needs: to put its damaged
// Secret right, and to count an Event that comes again.
func (c *cluster) testSeldom(t *testing.T, namespace string) {
	c.kubectl(t, "patch", "secret", "network-apiserver-serving", "--namespace="+serverNamespace, "--patch", `{"stringData":{"tls.crt":"damaged"}}`)
	defer c.kubectl(t, "delete", "deployment", "deployed", "--namespace="+namespace)
	c.repeatEvent(t, namespace)
	until(t, "the damaged Secret is right again", func(ctx context.Context) error {
		secret, err := c.kube.CoreV1().Secrets(serverNamespace).Get(ctx, "network-apiserver-serving", metav1.GetOptions{})
		if err == nil && string(secret.Data[corev1.TLSCertKey]) == "damaged" {
			err = errors.New("it is damaged")
		}
		return err
	})
}

// repeatEvent has the same happen to a Deployment, deployed, again and again:
// its Network is deleted, and made anew.
func (c *cluster) repeatEvent(t *testing.T, namespace string) {
	t.Helper()
	c.apply(t, `apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: `+namespace+`
  name: deployed
  annotations: {samplecrd.k8s.io/network: 10.1.0.0/24}
spec:
  replicas: 0
  selector: {matchLabels: {app: deployed}}
  template:
    metadata: {labels: {app: deployed}}
    spec: {containers: [{name: any, image: any}]}
`)
	networks := c.networks.SamplecrdV1().Networks(namespace)
	made := func(before types.UID) (uid types.UID) {
		t.Helper()
		until(t, "the Deployment has a new Network", func(ctx context.Context) error {
			network, err := networks.Get(ctx, "deployed", metav1.GetOptions{})
			if err == nil && network.UID == before {
				err = errors.New("it is the old one")
			}
			uid = network.UID
			return err
		})
		return uid
	}
	// Events of one kind count as one while the Deployment stays as it is, which it
	// does a moment after it was made.
	uid := made("")
	for range 3 {
		c.kubectl(t, "delete", "network", "deployed", "--namespace="+namespace, "--wait=false")
		uid = made(uid)
	}
	until(t, "an event that came again is counted", func(ctx context.Context) error {
		events, err := c.kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && !slices.ContainsFunc(events.Items, func(event eventsv1.Event) bool { return event.Series != nil }) {
			err = fmt.Errorf("among %d none is", len(events.Items))
		}
		return err
	})
}

// testPrivileged shows that an editor needs one right more to drive the
// operator's cloud, and that this is enough.
func (c *cluster) testPrivileged(t *testing.T, namespace string, editor *account) {
	t.Parallel()
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = editor.name()
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, openStack samplecrdv1.OpenStack) error {
		_, err := clients.SamplecrdV1().Networks(namespace).Create(ctx, asked(openStack), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	fields := map[string]samplecrdv1.OpenStack{
		"networkID": {NetworkID: "5f2c9a1e-6f0c-4c53-8d52-1f1f6a9d3c10"},
		"provider":  {Provider: &samplecrdv1.Provider{NetworkType: "vlan", SegmentationID: new(int32(7))}},
		"external":  {External: samplecrdv1.Enabled},
		"shared":    {Shared: samplecrdv1.Enabled},
	}
	for field, openStack := range fields {
		err := create(t.Context(), openStack)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.openStack."+field) || !strings.Contains(err.Error(), `the verb "privileged"`) {
			t.Errorf("%s by an editor: got %v, want it forbidden, with the field and the verb", field, err)
		}
	}
	c.kubectl(t, "create", "rolebinding", "privileged", "-n", namespace,
		"--clusterrole=network-apiserver:privileged", "--serviceaccount="+namespace+":edit")
	start := time.Now()
	for field, openStack := range fields {
		if _, err := waitFor(t.Context(), func(ctx context.Context) bool { return create(ctx, openStack) == nil }); err != nil {
			t.Errorf("%s by an editor with the verb privileged: %v", field, create(t.Context(), openStack))
		}
	}
	t.Logf("the verb privileged counted after %v", time.Since(start))
}

// testRevoked takes a binding away, and a whole service account, and looks on
// the port of the server, which keeps answers of kube-apiserver a while.
func (c *cluster) testRevoked(t *testing.T, r *replica, namespace string, accounts map[string]*account) {
	t.Parallel()
	list := func(ctx context.Context, config *rest.Config) error {
		clients, err := versioned.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = clients.SamplecrdV1().Networks(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	viewer, admin := r.config(c.token(t, accounts["view"])), r.config(c.token(t, accounts["admin"]))
	behind := rest.CopyConfig(c.config)
	behind.Impersonate.UserName = accounts["view"].name()
	for _, config := range []*rest.Config{viewer, admin, behind} {
		if err := list(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.kube.RbacV1().RoleBindings(namespace).Delete(t.Context(), "view", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.kube.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "admin", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for what, refused := range map[string]func(context.Context) bool{
		"a binding that is gone counts through the aggregator": func(ctx context.Context) bool { return apierrors.IsForbidden(list(ctx, behind)) },
		"a binding that is gone counts on the port":            func(ctx context.Context) bool { return apierrors.IsForbidden(list(ctx, viewer)) },
		"an account that is gone is known on the port":         func(ctx context.Context) bool { return apierrors.IsUnauthorized(list(ctx, admin)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			took, err := waitFor(t.Context(), refused)
			if err != nil {
				t.Errorf("still so after %v", revokedDeadline)
			}
			t.Logf("for %v", took)
		})
	}
}

func waitFor(ctx context.Context, done func(context.Context) bool) (took time.Duration, err error) {
	start := time.Now()
	err = wait.PollUntilContextTimeout(ctx, eventuallyInterval, revokedDeadline, true, func(ctx context.Context) (bool, error) {
		return done(ctx), nil
	})
	return time.Since(start), err
}

// config is that of a client of the server's own port, which verifies as little
// as a probe does.
func (r *replica) config(token string) *rest.Config {
	return &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", r.port),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		QPS:             -1,
	}
}
