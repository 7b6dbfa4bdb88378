package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

var secretsResource = corev1.SchemeGroupVersion.WithResource("secrets")

// kube is a Kubernetes that holds Secrets, and keeps the rules of finalizers.
type kube struct {
	*fake.Clientset
	forbidden bool // to get and patch
	version   int
}

// withSecrets gives the controller Secrets, and forgets all it knew of them.
func (w *world) withSecrets() {
	if w.kube == nil {
		w.kube = &kube{Clientset: fake.NewClientset()}
		w.kube.PrependReactor("*", "secrets", w.secretAction)
	}
	w.controller.secrets = newSecrets(w.kube.CoreV1())
}

// note writes into the diary. The world is locked.
func (w *world) note(format string, args ...any) {
	w.diary = append(w.diary, fmt.Sprintf(format, args...))
}

func (w *world) secretAction(action clienttesting.Action) (bool, runtime.Object, error) {
	name := "" // of a list there is none
	if a, ok := action.(interface{ GetName() string }); ok {
		name = a.GetName()
	}
	if w.kube.forbidden || action.GetVerb() != "get" && action.GetVerb() != "patch" {
		return true, nil, apierrors.NewForbidden(secretsResource.GroupResource(), name, errors.New("User \"x\" cannot"))
	}
	patch, ok := action.(clienttesting.PatchAction)
	if !ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dead {
			return true, nil, refusedBefore(nil)
		}
		return false, nil, nil
	}
	var s *corev1.Secret
	var err error
	commit := func() { s, err = w.patchSecret(name, patch) }
	if f, hit := w.strike(w.fault.api != nil); hit {
		return true, nil, f.api(commit)
	}
	commit()
	return true, s, err
}

func (w *world) patchSecret(name string, patch clienttesting.PatchAction) (*corev1.Secret, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var body struct {
		Metadata struct {
			ResourceVersion string
			Finalizers      []string
		}
	}
	if err := json.Unmarshal(patch.GetPatch(), &body); err != nil || patch.GetPatchType() != types.MergePatchType {
		return nil, apierrors.NewBadRequest(fmt.Sprint("no merge patch of metadata: ", err))
	}
	object, err := w.kube.Tracker().Get(secretsResource, testName.Namespace, name)
	if err != nil {
		return nil, err
	}
	s := object.(*corev1.Secret).DeepCopy()
	if body.Metadata.ResourceVersion != s.ResourceVersion {
		return nil, apierrors.NewConflict(secretsResource.GroupResource(), name, errors.New("the object has been modified"))
	}
	added := slices.ContainsFunc(body.Metadata.Finalizers, func(f string) bool { return !slices.Contains(s.Finalizers, f) })
	if added && s.DeletionTimestamp != nil {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), name, nil)
	}
	s.Finalizers = body.Metadata.Finalizers
	if !added {
		w.note("Secret %s is let go", name)
	}
	if s.DeletionTimestamp != nil && len(s.Finalizers) == 0 {
		return s, w.kube.Tracker().Delete(secretsResource, s.Namespace, s.Name)
	}
	w.kube.version++
	s.ResourceVersion = strconv.Itoa(w.kube.version)
	return s.DeepCopy(), w.kube.Tracker().Update(secretsResource, s, s.Namespace)
}

// putSecret is what its owner does: it makes the Secret, or changes what is in it.
func (w *world) putSecret(name, cloudsYAML string) {
	w.t.Helper()
	w.editSecret(name, func(s *corev1.Secret) { s.Data = map[string][]byte{"clouds.yaml": []byte(cloudsYAML)} })
}

func (w *world) editSecret(name string, tweak func(*corev1.Secret)) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	write := w.kube.Tracker().Create
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testName.Namespace, Name: name}}
	if object, err := w.kube.Tracker().Get(secretsResource, testName.Namespace, name); err == nil {
		s = object.(*corev1.Secret).DeepCopy()
		write = func(gvr schema.GroupVersionResource, object runtime.Object, ns string, _ ...metav1.CreateOptions) error {
			return w.kube.Tracker().Update(gvr, object, ns)
		}
	}
	tweak(s)
	w.kube.version++
	s.ResourceVersion = strconv.Itoa(w.kube.version)
	if err := write(secretsResource, s, s.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deleteSecret(name string) {
	w.t.Helper()
	s := w.getSecret(name)
	if len(s.Finalizers) == 0 {
		if err := w.kube.Tracker().Delete(secretsResource, s.Namespace, name); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.editSecret(name, func(s *corev1.Secret) { s.DeletionTimestamp = new(metav1.NewTime(time.Unix(1700000000, 0))) })
}

// getSecret returns the Secret, nil if it is gone.
func (w *world) getSecret(name string) *corev1.Secret {
	w.t.Helper()
	object, err := w.kube.Tracker().Get(secretsResource, testName.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return object.(*corev1.Secret)
}

func (w *world) holds(name string) bool {
	s := w.getSecret(name)
	return s != nil && slices.Contains(s.Finalizers, samplecrdv1.CredentialsFinalizer)
}

// secretVerbs are what was done to Secrets since it was last asked.
func (w *world) secretVerbs() (verbs []string) {
	for _, a := range w.kube.Actions() {
		verbs = append(verbs, a.GetVerb())
	}
	w.kube.ClearActions()
	return verbs
}

// cloudsYAML names one cloud, LAB: that of a user of the project, whose password
// is his name.
func (w *world) cloudsYAML(user, project string) string {
	return fmt.Sprintf(`clouds: {LAB: {region_name: %s, auth: {auth_url: %s/identity/v3, username: %s, password: %s, user_domain_name: Default, project_id: %s}}}`,
		testRegion, w.endpoint, user, user, project)
}

// withCredentials makes a Network one of the cloud LAB in the Secret.
func withCredentials(secret string) func(*samplecrdv1.Network) {
	return withSpec(func(s *samplecrdv1.NetworkSpec) {
		if s.OpenStack == nil {
			s.OpenStack = &samplecrdv1.OpenStack{}
		}
		s.OpenStack.CredentialsRef = &samplecrdv1.CredentialsRef{SecretName: secret, CloudName: "LAB"}
	})
}

func named(name string) func(*samplecrdv1.Network) {
	return func(n *samplecrdv1.Network) { n.Name, n.UID = name, types.UID("uid-of-"+name) }
}

// passOver makes one pass over another Network than the usual one.
func (w *world) passOver(name string) error {
	w.t.Helper()
	n, err := w.storedAs(name)
	if err != nil {
		return err
	}
	if err := w.indexer.Update(n); err != nil {
		w.t.Fatal(err)
	}
	return w.controller.sync(w.context(), cache.NewObjectName(n.Namespace, n.Name))
}

// logged keeps what is logged, and returns what reads it.
func (w *world) logged(t ktesting.TL) (text func() string) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(9)))
	w.log = logger
	return func() string { return logger.GetSink().(ktesting.Underlier).GetBuffer().String() }
}
