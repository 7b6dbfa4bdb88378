//go:build kube

package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

// testManifests has kube-apiserver judge all that artifacts/ holds.
func (c *cluster) testManifests(t *testing.T) {
	c.installCertManager(t)
	defer c.kubectl(t, "delete", "crd", "issuers.cert-manager.io", "certificates.cert-manager.io")
	overlays, err := filepath.Glob(absolute(t, "../../artifacts/overlays/*"))
	if err != nil || len(overlays) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	for _, overlay := range overlays {
		t.Run(filepath.Base(overlay), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "manifests.yaml")
			text := c.kubectl(t, "kustomize", overlay)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c.kubectl(t, "apply", "--dry-run=server", "-f", file)
			if strings.Contains(text, "insecureSkipTLSVerify") {
				t.Error("TLS is not verified everywhere")
			}
			templates := podTemplates(t, text)
			if len(templates) == 0 {
				t.Error("there are no Pods")
			}
			for name, template := range templates {
				if err := c.tryPod(t, template); err != nil {
					t.Errorf("the Pod of %s is refused: %v", name, err)
				}
				for what, breakIt := range map[string]func(*corev1.PodSpec){
					"as root":                  func(spec *corev1.PodSpec) { spec.SecurityContext.RunAsNonRoot = new(false) },
					"with more rights":         func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true) },
					"with all capabilities":    func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext.Capabilities = nil },
					"with all system calls":    func(spec *corev1.PodSpec) { spec.SecurityContext.SeccompProfile = nil },
					"in the network of a node": func(spec *corev1.PodSpec) { spec.HostNetwork = true },
				} {
					broken := template.DeepCopy()
					breakIt(&broken.Spec)
					if err := c.tryPod(t, *broken); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
						t.Errorf("the Pod of %s %s: got %v, want it forbidden by PodSecurity", name, what, err)
					}
				}
				c.tryFlags(t, template)
			}
		})
	}
}

// installCertManager has the cluster know its kinds as far as to take anything.
func (c *cluster) installCertManager(t *testing.T) {
	t.Helper()
	var text strings.Builder
	for _, kind := range []string{"Issuer", "Certificate"} {
		fmt.Fprintf(&text, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.cert-manager.io}
spec:
  group: cert-manager.io
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s, listKind: %[2]sList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, strings.ToLower(kind), kind)
	}
	c.apply(t, text.String())
	c.kubectl(t, "wait", "--for=condition=Established", "--timeout=1m", "crd/issuers.cert-manager.io", "crd/certificates.cert-manager.io")
}

func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "apply", "-f", file)
}

// objects reads manifests.
func objects(t testing.TB, text string) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for part := range strings.SplitSeq(text, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func podTemplates(t testing.TB, text string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	templates := map[string]corev1.PodTemplateSpec{}
	for _, object := range objects(t, text) {
		if object.GetAPIVersion() != appsv1.SchemeGroupVersion.String() {
			continue
		}
		var workload appsv1.StatefulSet // a Deployment's is at the same place
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &workload); err != nil {
			t.Fatal(err)
		}
		for _, claim := range workload.Spec.VolumeClaimTemplates {
			workload.Spec.Template.Spec.Volumes = append(workload.Spec.Template.Spec.Volumes, corev1.Volume{Name: claim.Name})
		}
		templates[object.GetName()] = workload.Spec.Template
	}
	return templates
}

func (c *cluster) tryPod(t *testing.T, template corev1.PodTemplateSpec) error {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName = "try-"
	_, err := c.kube.CoreV1().Pods(serverNamespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// tryFlags shows that the program knows all the flags. None is there twice, as
// is what an overlay puts in the wrong place.
func (c *cluster) tryFlags(t *testing.T, template corev1.PodTemplateSpec) {
	t.Helper()
	container := template.Spec.Containers[0]
	given := sets.New[string]()
	for _, arg := range container.Args {
		flag, _, _ := strings.Cut(arg, "=")
		if given.Has(flag) {
			t.Errorf("%s is given %s twice: %q", container.Name, flag, container.Args)
		}
		given.Insert(flag)
	}
	name := "network-apiserver"
	switch {
	case len(container.Command) > 0:
		name = filepath.Base(container.Command[0])
	case container.Image == "network-apiserver-etcd":
		return // testEtcdTLS runs it
	}
	command := exec.CommandContext(t.Context(), name, append(container.Args, "--help")...)
	command.Env = []string{}
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s --help: %v\n%s", strings.Join(command.Args, " "), err, output)
	}
}

// testEtcdTLS runs the etcd of the manifests with the certificates that
// artifacts/etcd-tls.sh makes, as far as that goes without a Pod.
func (c *cluster) testEtcdTLS(t *testing.T) {
	c.script(t, absolute(t, "../../artifacts/etcd-tls.sh"))
	secrets := []string{"get", "secrets", "etcd-tls", "etcd-client-tls", "-n", serverNamespace, "-o", "jsonpath={.items[*].data}"}
	made := c.kubectl(t, secrets...)
	c.script(t, absolute(t, "../../artifacts/etcd-tls.sh")) // as who installs again
	if c.kubectl(t, secrets...) != made {
		t.Error("a second run of etcd-tls.sh has changed the certificates of what runs")
	}
	serverTLS, clientTLS := c.secretFolder(t, "etcd-tls"), c.secretFolder(t, "etcd-client-tls")
	client, peer, metrics := freePort(t), freePort(t), freePort(t)
	here := strings.NewReplacer("/etc/etcd-tls", serverTLS, "/var/lib/etcd", dataDir(t), "0.0.0.0", "127.0.0.1",
		"2379", strconv.Itoa(client), "2380", strconv.Itoa(peer), "2381", strconv.Itoa(metrics))
	var flags []string
	templates := podTemplates(t, c.kubectl(t, "kustomize", absolute(t, "../../artifacts/overlays/self-registered")))
	for _, flag := range templates["etcd"].Spec.Containers[0].Args {
		flags = append(flags, here.Replace(flag))
	}
	etcd := startEtcd(t, metrics, flags...)

	roots, err := cert.NewPool(filepath.Join(clientTLS, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	load := func(certificate, key string) *tls.Certificate {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		return &pair
	}
	for name, tc := range map[string]struct {
		certificate *tls.Certificate
		in          bool
	}{
		"the server with its Secret": {load(filepath.Join(clientTLS, "tls.crt"), filepath.Join(clientTLS, "tls.key")), true},
		"who has no certificate":     {nil, false},
		"a client of another etcd":   {load(c.vars["ETCD_CERTFILE"], c.vars["ETCD_KEYFILE"]), false},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: roots, ServerName: "etcd." + serverNamespace + ".svc"}
			if tc.certificate != nil {
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return tc.certificate, nil }
			}
			err := putKey(t, &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, client)
			switch {
			case tc.in && err != nil:
				t.Errorf("refused: %v", err)
			case !tc.in && (err == nil || !strings.Contains(err.Error(), "remote error: tls")):
				t.Errorf("got %v, want it refused by the server", err)
			}
		})
	}
	behind := *c
	behind.vars = maps.Clone(c.vars)
	behind.vars["ETCD_SERVERS"] = fmt.Sprintf("https://127.0.0.1:%d", client)
	behind.vars["ETCD_CAFILE"] = filepath.Join(clientTLS, "ca.crt")
	behind.vars["ETCD_CERTFILE"], behind.vars["ETCD_KEYFILE"] = filepath.Join(clientTLS, "tls.crt"), filepath.Join(clientTLS, "tls.key")
	r := behind.startReplica(t, newCloud(t))
	etcd.stop(t)
	checkProbes(t, r, templates["network-apiserver"].Spec.Containers[0])
	// In its watch cache the library waits for etcd, and does not end before.
	startEtcd(t, metrics, flags...)
	r.stop(t)
}

// checkProbes has the server lose its etcd: then it is not ready, but nobody is
// to kill it.
func checkProbes(t *testing.T, r *replica, container corev1.Container) {
	t.Helper()
	client := newProbe()
	defer client.CloseIdleConnections()
	until(t, "the server is not ready without etcd", func(ctx context.Context) error {
		response, err := probe(ctx, client, r.port, container.ReadinessProbe.HTTPGet.Path)
		if err == nil && response.StatusCode == http.StatusOK {
			err = errors.New("it is")
		}
		return err
	})
	for what, p := range map[string]*corev1.Probe{"startup": container.StartupProbe, "liveness": container.LivenessProbe} {
		response, err := probe(t.Context(), client, r.port, p.HTTPGet.Path)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			t.Errorf("without etcd the probe of its %s is answered %s", what, response.Status)
		}
	}
}

func startEtcd(t *testing.T, metrics int, flags ...string) *server {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), absolute(t, "../../bin/etcd"), flags...)
	command.Env = []string{}
	etcd := &server{log: &output{}, ended: make(chan struct{})}
	command.Stdout, command.Stderr = etcd.log, etcd.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	etcd.process = command.Process
	go func() {
		defer close(etcd.ended)
		etcd.err = command.Wait()
	}()
	t.Cleanup(func() {
		etcd.stop(t)
		if t.Failed() {
			t.Logf("etcd, process %d:\n%s", etcd.process.Pid, etcd.log)
		}
	})
	err := wait.PollUntilContextTimeout(t.Context(), eventuallyInterval, startDeadline, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", metrics), http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		t.Fatalf("etcd is not ready: %v", err)
	}
	return etcd
}

func putKey(t *testing.T, client *http.Client, port int) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d/v3/kv/put", port), strings.NewReader(`{"key":"a2V5","value":"dmFsdWU="}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}

// secretFolder writes what is in a Secret, as a Pod sees it.
func (c *cluster) secretFolder(t *testing.T, name string) string {
	t.Helper()
	secret, err := c.kube.CoreV1().Secrets(serverNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// script runs a program that calls kubectl and other tools.
func (c *cluster) script(t *testing.T, args ...string) {
	t.Helper()
	c.scriptWith(t, nil, t.TempDir(), args...)
}

func (c *cluster) scriptWith(t *testing.T, environment []string, dir string, args ...string) {
	t.Helper()
	if output, err := c.tryScript(t, environment, dir, args...); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func (c *cluster) tryScript(t *testing.T, environment []string, dir string, args ...string) (output string, err error) {
	t.Helper()
	command := c.command(t.Context(), dir, args...)
	command.Env = slices.Concat(command.Env, []string{"PATH=" + os.Getenv("PATH")}, environment)
	combined, err := command.CombinedOutput()
	return string(combined), err
}
