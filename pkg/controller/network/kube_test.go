package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

var (
	secretsResource    = corev1.SchemeGroupVersion.WithResource("secrets")
	bindingsResource   = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// kube is a Kubernetes that holds Secrets and a RoleBinding that gives the right
// to them, and keeps the rules of finalizers.
type kube struct {
	*fake.Clientset
	forbidden bool // to get and patch Secrets, whatever the RoleBinding says
	elsewhere bool // that right comes by a RoleBinding of another name
	version   int
}

// withCluster gives the controller a cluster, and forgets all it knew of it.
func (w *world) withCluster() {
	if w.kube == nil {
		w.kube = &kube{Clientset: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testName.Namespace}})}
		w.kube.PrependReactor("*", "secrets", w.kubeAction)
		w.kube.PrependReactor("*", "rolebindings", w.kubeAction)
		w.bind()
	}
	w.controller.secrets = newSecrets(w.kube)
}

// note writes into the diary. The world is locked.
func (w *world) note(format string, args ...any) {
	w.diary = append(w.diary, fmt.Sprintf(format, args...))
}

// may tells what the roles of the manifests allow: the RoleBinding of that name
// can be read by every controller. The world is locked.
func (k *kube) may(verb string, resource schema.GroupVersionResource, name string) bool {
	if resource == bindingsResource && name != CredentialsBinding || verb != "get" && verb != "patch" {
		return false
	}
	_, err := k.Tracker().Get(bindingsResource, testName.Namespace, CredentialsBinding)
	return resource == bindingsResource && verb == "get" || !k.forbidden && (k.elsewhere || err == nil)
}

func (w *world) kubeAction(action clienttesting.Action) (bool, runtime.Object, error) {
	name := "" // of a list there is none
	if a, ok := action.(interface{ GetName() string }); ok {
		name = a.GetName()
	}
	w.mu.Lock()
	dead, may := w.dead, w.kube.may(action.GetVerb(), action.GetResource(), name)
	w.mu.Unlock()
	if !may {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), name, errors.New("User \"x\" cannot"))
	}
	patch, ok := action.(clienttesting.PatchAction)
	if !ok {
		if dead {
			return true, nil, refusedBefore(nil)
		}
		return false, nil, nil
	}
	var patched runtime.Object
	var err error
	commit := func() { patched, err = w.patchFinalizers(patch) }
	if f, hit := w.strike(w.fault.api != nil); hit {
		return true, nil, f.api(commit)
	}
	commit()
	return true, patched, err
}

func (w *world) patchFinalizers(patch clienttesting.PatchAction) (runtime.Object, error) {
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
	resource, name := patch.GetResource(), patch.GetName()
	object, err := w.kube.Tracker().Get(resource, testName.Namespace, name)
	if err != nil {
		return nil, err
	}
	object = object.DeepCopyObject()
	o := object.(metav1.Object)
	if body.Metadata.ResourceVersion != o.GetResourceVersion() {
		return nil, apierrors.NewConflict(resource.GroupResource(), name, errors.New("the object has been modified"))
	}
	added := slices.ContainsFunc(body.Metadata.Finalizers, func(f string) bool { return !slices.Contains(o.GetFinalizers(), f) })
	if added && o.GetDeletionTimestamp() != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: resource.Resource}, name, nil)
	}
	o.SetFinalizers(body.Metadata.Finalizers)
	if !added {
		w.note("%s %s let go", resource.Resource, name)
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		return object, w.kube.Tracker().Delete(resource, testName.Namespace, name)
	}
	w.kube.version++
	o.SetResourceVersion(strconv.Itoa(w.kube.version))
	return object.DeepCopyObject(), w.kube.Tracker().Update(resource, object, testName.Namespace)
}

// bind is what the owner of the namespace does.
func (w *world) bind() {
	w.editObject(bindingsResource, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: testName.Namespace, Name: CredentialsBinding}},
		func(metav1.Object) {})
}

// putSecret is what its owner does: it makes the Secret, or changes what is in it.
func (w *world) putSecret(name, cloudsYAML string) {
	w.t.Helper()
	w.editSecret(name, func(s *corev1.Secret) { s.Data = map[string][]byte{"clouds.yaml": []byte(cloudsYAML)} })
}

func (w *world) editSecret(name string, tweak func(*corev1.Secret)) {
	w.t.Helper()
	w.editObject(secretsResource, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testName.Namespace, Name: name}},
		func(o metav1.Object) { tweak(o.(*corev1.Secret)) })
}

// editObject changes an object, which is that one if there is none yet.
func (w *world) editObject(resource schema.GroupVersionResource, absent runtime.Object, tweak func(metav1.Object)) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	o := absent.(metav1.Object)
	stored, err := w.kube.Tracker().Get(resource, o.GetNamespace(), o.GetName())
	if err == nil {
		o = stored.DeepCopyObject().(metav1.Object)
	}
	tweak(o)
	w.kube.version++
	o.SetResourceVersion(strconv.Itoa(w.kube.version))
	if err == nil {
		err = w.kube.Tracker().Update(resource, o.(runtime.Object), o.GetNamespace())
	} else {
		err = w.kube.Tracker().Create(resource, o.(runtime.Object), o.GetNamespace())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deleteSecret(name string) {
	w.t.Helper()
	w.deleteObject(secretsResource, w.getSecret(name))
}

// unbind takes the RoleBinding away, as its owner does.
func (w *world) unbind() {
	w.t.Helper()
	w.deleteObject(bindingsResource, w.getBinding())
}

func (w *world) deleteObject(resource schema.GroupVersionResource, o metav1.Object) {
	w.t.Helper()
	if len(o.GetFinalizers()) == 0 {
		if err := w.kube.Tracker().Delete(resource, o.GetNamespace(), o.GetName()); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.editObject(resource, o.(runtime.Object), func(o metav1.Object) { o.SetDeletionTimestamp(new(metav1.NewTime(time.Unix(1700000000, 0)))) })
}

// deleteNamespace deletes what is in it, as the cluster does; the Networks last.
func (w *world) deleteNamespace() {
	w.t.Helper()
	w.editObject(namespacesResource, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testName.Namespace}},
		func(o metav1.Object) { o.SetDeletionTimestamp(new(metav1.NewTime(time.Unix(1700000000, 0)))) })
	if w.getBinding() != nil {
		w.unbind()
	}
	if w.getSecret("lab") != nil {
		w.deleteSecret("lab")
	}
}

// getSecret returns the Secret, nil if it is gone.
func (w *world) getSecret(name string) *corev1.Secret {
	w.t.Helper()
	s, _ := w.getObject(secretsResource, name).(*corev1.Secret)
	return s
}

// getBinding returns the RoleBinding, nil if it is gone.
func (w *world) getBinding() *rbacv1.RoleBinding {
	w.t.Helper()
	b, _ := w.getObject(bindingsResource, CredentialsBinding).(*rbacv1.RoleBinding)
	return b
}

func (w *world) getObject(resource schema.GroupVersionResource, name string) runtime.Object {
	w.t.Helper()
	object, err := w.kube.Tracker().Get(resource, testName.Namespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return object
}

func (w *world) holds(name string) bool {
	s := w.getSecret(name)
	return s != nil && slices.Contains(s.Finalizers, samplecrdv1.CredentialsFinalizer)
}

func (w *world) holdsBinding() bool {
	b := w.getBinding()
	return b != nil && slices.Contains(b.Finalizers, samplecrdv1.CredentialsFinalizer)
}

// asked is what was asked of the cluster since the last time.
func (w *world) asked() (requests []string) {
	for _, a := range w.kube.Actions() {
		requests = append(requests, a.GetVerb()+" "+a.GetResource().Resource)
	}
	w.kube.ClearActions()
	return requests
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
