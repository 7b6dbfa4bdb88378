//go:build kube

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/generated/clientset/versioned"
)

// testPipeline follows requests through the aggregator to one of two replicas,
// of which one alone runs the controller.
func (c *cluster) testPipeline(t *testing.T) {
	c.kubectl(t, "apply", "-k", c.overlay(t, "pipeline"))
	o := newCloud(t)
	namespace := c.newNamespace(t, "pipeline", nil)
	// When the replicas have ended, which would keep it: no namespace goes while a
	// group is registered that nobody serves.
	t.Cleanup(func() {
		command := c.command(context.WithoutCancel(t.Context()), t.TempDir(), "kubectl", "delete", "apiservice/v1alpha1.pipeline.samplecrd.k8s.io",
			"clusterrole/network-apiserver:traces", "clusterrole/network-apiserver:pipeline", "clusterrolebinding/network-apiserver:pipeline")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	})
	flags := []string{"--pipeline-traces=256", "--etcd-prefix=/pipeline"}
	replicas := []*replica{c.startReplica(t, o, flags...), c.startReplica(t, o, flags...)}
	c.waitServed(t)
	c.waitTraces(t)

	t.Run("Tree", func(t *testing.T) { c.testTree(t, namespace) })
	t.Run("Page", c.testPage)
	t.Run("Readers", func(t *testing.T) { c.testReaders(t, namespace) })
	t.Run("Secrets", func(t *testing.T) { c.testTracesOfSecrets(t, o, replicas) })
}

func (c *cluster) waitTraces(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, startDeadline, true, func(ctx context.Context) (bool, error) {
		_, err := c.networks.PipelineV1alpha1().RequestTraces().List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatal("the aggregator does not serve traces")
	}
}

// testTree has kubectl draw the way of objects. Whichever replica is asked, the
// tree is whole: the passes of the controller are found in the other one.
func (c *cluster) testTree(t *testing.T, namespace string) {
	trees := map[string]string{} // by the replica that was asked
	for round := 0; len(trees) < 2; round++ {
		if round == 10 {
			t.Fatal("one replica alone was asked")
		}
		// At once, so that they need a connection each.
		var running sync.WaitGroup
		var mu sync.Mutex
		for i := range 4 {
			running.Go(func() {
				name := fmt.Sprintf("net-%d-%d", round, i)
				tree := c.traceNetwork(t, namespace, name)
				mu.Lock()
				defer mu.Unlock()
				if m := regexp.MustCompile(`replica  (\S+)`).FindStringSubmatch(tree); m != nil {
					trees[m[1]] = tree
				}
			})
		}
		running.Wait()
	}
	for replica, tree := range trees {
		for _, want := range []string{
			"headers of a front proxy, with its certificate", "user: admin", "PriorityAndFairness",
			"create networks in pipeline by admin: allowed", "ValidatingAdmission ValidatingAdmissionPolicy",
			"ValidatingAdmission ResourceQuota", "+  - samplecrd.k8s.io/neutron", "Etcd KV/Txn", "key: /pipeline/samplecrd.k8s.io/networks/",
			"Neutron POST /v2.0/networks", "Success, settled",
		} {
			if !strings.Contains(tree, want) {
				t.Errorf("the tree of %s does not tell %q:\n%s", replica, want, tree)
			}
		}
	}
	dry := c.pipeline(t, "trace", "--dry-run=server", "-n", namespace, "-f", absolute(t, "../../artifacts/example/example-network.yaml"))
	if strings.Contains(dry, "Neutron") || !strings.Contains(dry, "dryRun=All") {
		t.Errorf("the tree of a dry run:\n%s", dry)
	}
	table := c.kubectl(t, "get", "requesttraces")
	if header, _, _ := strings.Cut(table, "\n"); !slices.Equal(strings.Fields(header), []string{"NAME", "VERB", "RESOURCE", "OBJECT", "USER", "CODE", "STOPPED-AT", "DURATION", "AGE"}) {
		t.Errorf("the table begins with %q", header)
	}
}

func (c *cluster) traceNetwork(t *testing.T, namespace, name string) (tree string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	content := fmt.Sprintf("apiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata:\n  name: %s\nspec:\n  cidr: 10.0.0.0/24\n", name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Error(err)
		return ""
	}
	return c.pipeline(t, "trace", "-f", file, "-n", namespace)
}

// pipeline runs the plugin as kubectl does.
func (c *cluster) pipeline(t *testing.T, args ...string) string {
	t.Helper()
	command := c.command(t.Context(), t.TempDir(), append([]string{"kubectl", "pipeline"}, args...)...)
	command.Env = append(command.Env, "PATH="+built)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("kubectl pipeline %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// testPage opens each trace that a page lists, whichever replica answers.
func (c *cluster) testPage(t *testing.T) {
	command := c.command(t.Context(), t.TempDir(), "kubectl-pipeline", "page")
	command.Env = append(command.Env, "PATH="+built)
	said, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	url, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	get := func(path string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	events := get("events")
	defer events.Body.Close()
	var listed []struct{ Name string }
	reader := bufio.NewReader(events.Body)
	for listed == nil {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: ["); ok {
			if err := json.Unmarshal([]byte("["+data), &listed); err != nil {
				t.Fatal(err)
			}
		}
	}
	missing := 0
	for _, trace := range listed {
		response := get("traces/" + trace.Name)
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			missing++
		}
	}
	if missing > 0 || len(listed) == 0 {
		t.Errorf("%d of %d traces that are listed are not shown", missing, len(listed))
	}
}

// testReaders shows that who may read all else may not read traces.
func (c *cluster) testReaders(t *testing.T, namespace string) {
	account := c.account(t, namespace, "admin")
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = c.token(t, account)
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context) error {
		_, err := clients.PipelineV1alpha1().RequestTraces().List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: got %v, want Forbidden", err)
	}
	c.kubectl(t, "create", "clusterrolebinding", "reader-of-traces", "--clusterrole=network-apiserver:traces", "--serviceaccount="+namespace+":admin")
	t.Cleanup(func() {
		if err := c.kube.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), "reader-of-traces", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	err = wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, eventuallyDeadline, true, func(ctx context.Context) (bool, error) {
		return list(ctx) == nil, nil
	})
	if err != nil {
		t.Errorf("with the role network-apiserver:traces: %v", list(t.Context()))
	}
	if err := clients.PipelineV1alpha1().RESTClient().Delete().Resource("requesttraces").Do(t.Context()).Error(); !apierrors.IsForbidden(err) && !apierrors.IsMethodNotSupported(err) {
		t.Errorf("deleting traces: got %v, want a refusal", err)
	}
}

// testTracesOfSecrets looks for what only a Secret and a clouds.yaml hold in all
// that two replicas tell about a Network that is made with them.
func (c *cluster) testTracesOfSecrets(t *testing.T, o *cloud, replicas []*replica) {
	namespace := c.newNamespace(t, "pipeline-secrets", nil)
	const password = "canary-c0ffee"
	c.giveCredentials(t, namespace, o.withUser(t, "other", password), "other")
	networks := c.networks.SamplecrdV1().Networks(namespace)
	if _, err := networks.Create(t.Context(), withLab(newTestNetwork("net", "10.0.0.0/24")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	converge(t, networks)
	account := c.account(t, namespace, "admin")
	token := c.token(t, account)
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.SamplecrdV1().Networks(namespace).Get(t.Context(), "net", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	text, passes := "", 0
	for _, r := range replicas {
		traces := r.traces(t, c)
		for _, trace := range traces.Items {
			passes += len(trace.Passes)
		}
		all, err := json.Marshal(traces)
		if err != nil {
			t.Fatal(err)
		}
		text += string(all)
	}
	if passes == 0 || !strings.Contains(text, "/identity/v3/auth/tokens") || !strings.Contains(text, account.name()) {
		t.Fatalf("the traces tell too little to show anything: %d passes", passes)
	}
	for _, secret := range []string{token, password} {
		if strings.Contains(text, secret) {
			t.Errorf("a trace tells %q", secret)
		}
	}
}

// withUser is the cloud for another user, whose password is the name, as with
// each user of the simulator.
func (o *cloud) withUser(t *testing.T, name, user string) *cloud {
	t.Helper()
	content, err := os.ReadFile(o.configFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"username", "password"} {
		content = bytes.ReplaceAll(content, fmt.Appendf(nil, "%q:%q", key, name), fmt.Appendf(nil, "%q:%q", key, user))
	}
	other := &cloud{neutron: o.neutron, configFile: filepath.Join(t.TempDir(), "clouds.yaml")}
	if err := os.WriteFile(other.configFile, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return other
}

// traces are those of one replica, asked on its own port.
func (r *replica) traces(t *testing.T, c *cluster) *pipelinev1alpha1.RequestTraceList {
	t.Helper()
	account := c.account(t, serverNamespace, "traces-"+fmt.Sprint(r.port))
	c.kubectl(t, "create", "clusterrolebinding", account.Name, "--clusterrole=network-apiserver:traces", "--serviceaccount="+account.Namespace+":"+account.Name)
	config := &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", r.port), BearerToken: c.token(t, account)}
	config.Insecure = true // the certificate is for the name of the Service, and tested elsewhere
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var list *pipelinev1alpha1.RequestTraceList
	err = wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, eventuallyDeadline, true, func(ctx context.Context) (bool, error) {
		list, err = clients.PipelineV1alpha1().RequestTraces().List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil // not known yet to who decides
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatalf("reading the traces of process %d: %v", r.process.Pid, err)
	}
	return list
}
