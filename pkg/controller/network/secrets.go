package network

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/keymutex"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// CredentialsRole is the ClusterRole to get and patch Secrets, which the owner
// of a namespace binds there to the service account of the controller.
const CredentialsRole = "network-apiserver:credentials"

// The keys of a Secret that count.
const (
	cloudsKey = "clouds.yaml"
	caCertKey = "cacert"
)

// secrets are those that Networks name, as last read, and the clouds they lead
// to. No Secret is listed or watched: the right to would reach far beyond them.
type secrets struct {
	getter corev1client.SecretsGetter
	// locks keep the finalizer of a Secret in step with who holds it: between
	// the question and the patch nobody else asks. Wait for one without a turn.
	locks keymutex.KeyMutex

	mu     sync.Mutex
	known  map[cache.ObjectName]*secret
	clouds map[content]*neutron.Cloud
	before map[content]*neutron.Cloud // those of the time before the last resync
}

// secret is as much of a Secret as counts.
type secret struct {
	cache.ObjectName
	cloudsYAML, caCert []byte
	resourceVersion    string
	finalizers         []string
	held, deleting     bool
}

// content tells clouds apart: Secrets with the same share client and token.
type content [sha256.Size]byte

func newSecrets(getter corev1client.SecretsGetter) *secrets {
	return &secrets{
		getter: getter,
		locks:  keymutex.NewHashed(0),
		known:  map[cache.ObjectName]*secret{},
		clouds: map[content]*neutron.Cloud{},
	}
}

// renew has every Secret read again when it is next needed. A cloud that nobody
// needs until the next time is forgotten.
func (s *secrets) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
	s.before, s.clouds = s.clouds, map[content]*neutron.Cloud{}
}

func (s *secrets) forget(name cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
}

// read returns the Secret as it was read last. The caller has its lock.
func (s *secrets) read(ctx context.Context, name cache.ObjectName) (*secret, error) {
	s.mu.Lock()
	known := s.known[name]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	got, err := s.getter.Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, unreachable(name, err)
	}
	return s.note(got), nil
}

func (s *secrets) note(got *corev1.Secret) *secret {
	noted := &secret{
		ObjectName:      cache.MetaObjectToName(got),
		cloudsYAML:      got.Data[cloudsKey],
		caCert:          got.Data[caCertKey],
		resourceVersion: got.ResourceVersion,
		finalizers:      got.Finalizers,
		held:            slices.Contains(got.Finalizers, samplecrdv1.CredentialsFinalizer),
		deleting:        got.DeletionTimestamp != nil,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[noted.ObjectName] = noted
	return noted
}

// patch replaces the finalizers, if the Secret is still the one that was read.
// The error is that of the API server.
func (s *secrets) patch(ctx context.Context, read *secret, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": read.resourceVersion, "finalizers": finalizers}})
	if err != nil {
		return err
	}
	got, err := s.getter.Secrets(read.Namespace).Patch(ctx, read.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		s.forget(read.ObjectName)
		return err
	}
	s.note(got)
	return nil
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
	cloud, err := neutron.NewForeignCloud(from.cloudsYAML, from.caCert, neutron.CloudOptions{Name: name, WrapTransport: CountRequests})
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

// unreachable says what to do about a Secret that can't be read or patched. A
// conflict is none: it is read again at once.
func unreachable(name cache.ObjectName, err error) error {
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("writing the finalizers of Secret %s: %w", name, err)
	case apierrors.IsNotFound(err):
		return unavailable("Secret %q is not there", name.Name)
	case apierrors.IsForbidden(err):
		return unavailable("the controller may not get and patch Secret %q: in namespace %q a RoleBinding of ClusterRole %q to its service account is missing",
			name.Name, name.Namespace, CredentialsRole)
	}
	f := unavailable("Secret %q can't be reached: the API server does not answer as it should", name.Name)
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		f.message = fmt.Sprintf("Secret %q can't be reached: the API server answers %s", name.Name, reason)
	}
	f.cause = err
	return f
}
