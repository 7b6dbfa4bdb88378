package network

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/keymutex"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// CredentialsRole is the ClusterRole to get and patch Secrets, which the owner
// of a namespace binds there to the service account of the controller.
const CredentialsRole = "network-apiserver:credentials"

// CredentialsBinding is the RoleBinding of that role which is kept while a Secret
// of its namespace is: without it the controller could not let the Secret go.
const CredentialsBinding = "network-apiserver-credentials"

// The keys of a Secret that count.
const (
	cloudsKey = "clouds.yaml"
	caCertKey = "cacert"
)

// secrets are those that Networks name, as last read, and the clouds they lead
// to. No Secret is listed or watched: the right to would reach far beyond them.
type secrets struct {
	cluster kubernetes.Interface
	// locks keep the finalizers in a namespace in step with who holds what:
	// between the question and the patch nobody else asks. Wait for one without
	// a turn.
	locks keymutex.KeyMutex

	mu       sync.Mutex
	known    map[cache.ObjectName]*secret
	bindings map[string]*kept // by namespace; nil: there is none
	clouds   map[content]*neutron.Cloud
	before   map[content]*neutron.Cloud // those of the time before the last resync
}

// kept is as much as counts of an object that our finalizer keeps, or may.
type kept struct {
	cache.ObjectName
	resourceVersion string
	finalizers      []string
	held, deleting  bool
}

// secret is as much of a Secret as counts.
type secret struct {
	kept
	cloudsYAML, caCert []byte
}

// content tells clouds apart: Secrets with the same share client and token.
type content [sha256.Size]byte

func newSecrets(cluster kubernetes.Interface) *secrets {
	return &secrets{
		cluster:  cluster,
		locks:    keymutex.NewHashed(0),
		known:    map[cache.ObjectName]*secret{},
		bindings: map[string]*kept{},
		clouds:   map[content]*neutron.Cloud{},
	}
}

// renew has everything read again when it is next needed. A cloud that nobody
// needs until the next time is forgotten.
func (s *secrets) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
	clear(s.bindings)
	s.before, s.clouds = s.clouds, map[content]*neutron.Cloud{}
}

// forget has what is in the namespace read again.
func (s *secrets) forget(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(name cache.ObjectName, _ *secret) bool { return name.Namespace == namespace })
	delete(s.bindings, namespace)
}

// read returns the Secret as it was read last. The caller has the lock.
func (s *secrets) read(ctx context.Context, name cache.ObjectName) (*secret, error) {
	s.mu.Lock()
	known := s.known[name]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	got, err := s.cluster.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, unreachable("Secret", name, err)
	}
	return s.note(got), nil
}

func (s *secrets) note(got *corev1.Secret) *secret {
	noted := &secret{kept: keptOf(got), cloudsYAML: got.Data[cloudsKey], caCert: got.Data[caCertKey]}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[noted.ObjectName] = noted
	return noted
}

// binding returns the RoleBinding as it was read last, nil if there is none of
// that name: another may give the same right. The caller has the lock.
func (s *secrets) binding(ctx context.Context, namespace string) (*kept, error) {
	s.mu.Lock()
	known, ok := s.bindings[namespace]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	got, err := s.cluster.RbacV1().RoleBindings(namespace).Get(ctx, CredentialsBinding, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.noteBinding(namespace, nil), nil
	}
	if err != nil {
		return nil, unreachable("RoleBinding", cache.NewObjectName(namespace, CredentialsBinding), err)
	}
	return s.noteBinding(namespace, new(keptOf(got))), nil
}

func (s *secrets) noteBinding(namespace string, noted *kept) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bindings[namespace] = noted
	return noted
}

func keptOf(o metav1.Object) kept {
	return kept{
		ObjectName:      cache.MetaObjectToName(o),
		resourceVersion: o.GetResourceVersion(),
		finalizers:      o.GetFinalizers(),
		held:            slices.Contains(o.GetFinalizers(), samplecrdv1.CredentialsFinalizer),
		deleting:        o.GetDeletionTimestamp() != nil,
	}
}

// setSecretHeld has our finalizer on the Secret or off it.
func (s *secrets) setSecretHeld(ctx context.Context, read *secret, held bool) error {
	got, err := setHeld(ctx, s.cluster.CoreV1().Secrets(read.Namespace), read.kept, held)
	if err == nil && held {
		s.note(got)
		return nil
	}
	return s.patched("Secret", read.kept, held, err)
}

// setBindingHeld has it on the RoleBinding or off it.
func (s *secrets) setBindingHeld(ctx context.Context, read *kept, held bool) error {
	got, err := setHeld(ctx, s.cluster.RbacV1().RoleBindings(read.Namespace), *read, held)
	if err == nil && held {
		s.noteBinding(read.Namespace, new(keptOf(got)))
		return nil
	}
	return s.patched("RoleBinding", *read, held, err)
}

// patched forgets what may be gone with the finalizer, or is not as it was read.
func (s *secrets) patched(kind string, read kept, held bool, err error) error {
	s.forget(read.Namespace)
	if err == nil || !held && apierrors.IsNotFound(err) {
		return nil
	}
	return unreachable(kind, read.ObjectName, err)
}

type patcher[T any] interface {
	Patch(ctx context.Context, name string, patchType types.PatchType, body []byte, o metav1.PatchOptions, subresources ...string) (T, error)
}

// setHeld patches an object if it is still the one that was read. The error is
// that of the API server.
func setHeld[T any](ctx context.Context, client patcher[T], read kept, held bool) (got T, err error) {
	finalizers := slices.DeleteFunc(slices.Clone(read.finalizers), func(f string) bool { return f == samplecrdv1.CredentialsFinalizer })
	if held {
		finalizers = append(finalizers, samplecrdv1.CredentialsFinalizer)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": read.resourceVersion, "finalizers": finalizers}})
	if err != nil {
		return got, err
	}
	return client.Patch(ctx, read.Name, types.MergePatchType, body, metav1.PatchOptions{})
}

// cloud returns the cloud of that name in the Secret.
func (s *secrets) cloud(from *secret, name string) (*neutron.Cloud, error) {
	if len(from.cloudsYAML) == 0 {
		return nil, unavailable("Secret %q has no key %s", from.Name, cloudsKey)
	}
	h := sha256.New()
	for _, part := range [][]byte{from.cloudsYAML, from.caCert, []byte(name)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	key := content(h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, clouds := range []map[content]*neutron.Cloud{s.clouds, s.before} {
		if cloud := clouds[key]; cloud != nil {
			s.clouds[key] = cloud
			return cloud, nil
		}
	}
	cloud, err := neutron.NewForeignCloud(from.cloudsYAML, from.caCert, neutron.CloudOptions{Name: name, WrapTransport: Transport})
	if err != nil {
		return nil, unavailable("Secret %q: %v", from.Name, err)
	}
	s.clouds[key] = cloud
	return cloud, nil
}

// unavailable is for what stays so until a person does something.
func unavailable(format string, args ...any) *failure {
	return &failure{reason: samplecrdv1.ReasonCredentialsUnavailable, message: fmt.Sprintf(format, args...)}
}

// unreachable says what to do about an object that can't be read or patched. A
// conflict is none: it is read again at once.
func unreachable(kind string, name cache.ObjectName, err error) error {
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("writing the finalizers of %s %s: %w", kind, name, err)
	case apierrors.IsNotFound(err):
		return unavailable("%s %q is not there", kind, name.Name)
	case apierrors.IsForbidden(err):
		return unbound(kind, name)
	}
	f := unavailable("%s %q can't be reached: the API server does not answer as it should", kind, name.Name)
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		f.message = fmt.Sprintf("%s %q can't be reached: the API server answers %s", kind, name.Name, reason)
	}
	f.cause = err
	return f
}

// unbound names the binding that is missing.
func unbound(kind string, name cache.ObjectName) error {
	return unavailable("the controller may not get and patch %s %q: in namespace %q the RoleBinding %q of ClusterRole %q to its service account is missing",
		kind, name.Name, name.Namespace, CredentialsBinding, CredentialsRole)
}
