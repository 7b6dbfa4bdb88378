package network

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/neutron"
)

// usersPerPage is how many Networks are read at once in looking for one that
// holds a Secret: mostly the first will do.
const usersPerPage = 100

func credentialsRef(n *samplecrdv1.Network) *samplecrdv1.CredentialsRef {
	if n.Spec.OpenStack == nil {
		return nil
	}
	return n.Spec.OpenStack.CredentialsRef
}

// atOnce waits without giving a turn away, where there is none.
func atOnce(wait func()) { wait() }

// secret returns a Secret as it was read last.
func (c *Controller) secret(ctx context.Context, namespace, name string, aside func(func())) (*secret, error) {
	if c.secrets.cluster == nil {
		return nil, unavailable("spec.openStack.credentialsRef names Secret %q, and a server without a cluster has no Secrets", name)
	}
	defer c.lock(namespace, aside)()
	return c.secrets.read(ctx, cache.NewObjectName(namespace, name))
}

// unheld tells that a pass has to put a finalizer on, or take one off.
func (c *Controller) unheld(ctx context.Context, s *secret) (bool, error) {
	defer c.lock(s.Namespace, atOnce)()
	b, err := c.secrets.binding(ctx, s.Namespace)
	return !s.held || b != nil && b.held == b.deleting, err
}

// lock waits for the lock of a namespace and returns what unlocks it.
func (c *Controller) lock(namespace string, aside func(func())) (unlock func()) {
	aside(func() { c.secrets.locks.LockKey(namespace) })
	return func() { _ = c.secrets.locks.UnlockKey(namespace) }
}

// connect returns the client of a cloud that a Secret leads to; no name: the
// operator's.
func connect(ctx context.Context, cloud *neutron.Cloud, secret string) (*neutron.Client, error) {
	client, err := cloud.Client(ctx)
	if err == nil {
		return client, nil
	}
	f := unavailable("%v", err)
	if secret != "" {
		f.message = fmt.Sprintf("Secret %q: %v", secret, err)
	}
	f.cause = err
	return nil, f
}

// connect returns the client of the Network's cloud.
func (p *pass) connect(ctx context.Context) (*neutron.Client, error) {
	ref := credentialsRef(p.network)
	if ref == nil {
		return connect(ctx, p.cloud, "")
	}
	s, err := p.secret(ctx, p.network.Namespace, ref.SecretName, p.aside)
	if err != nil {
		return nil, err
	}
	// An object that is being deleted takes no more finalizers, and should not
	// get more work either. What it serves, it serves to the end.
	if s.deleting && p.network.DeletionTimestamp == nil && !slices.Contains(p.network.Status.HeldSecrets, s.Name) {
		return nil, unavailable("Secret %q is being deleted, and serves only what was made with it", s.Name)
	}
	cloud, err := p.secrets.cloud(s, ref.CloudName)
	if err != nil {
		return nil, err
	}
	return connect(ctx, cloud, s.Name)
}

// distrustSecret has the Secret read again by the next pass.
func (p *pass) distrustSecret() {
	if credentialsRef(p.network) != nil {
		p.secrets.forget(p.network.Namespace)
	}
}

// holdSecret keeps the Secret from going as long as the network is there, and
// lets go those that the Network referred to before. The status names a Secret
// before it gets the finalizer, and until it has lost it: nothing else would
// remember it after a crash.
func (p *pass) holdSecret(ctx context.Context) error {
	ref := credentialsRef(p.network)
	if ref == nil {
		return p.letSecretsGo(ctx, "")
	}
	if held := p.network.Status.HeldSecrets; !slices.Contains(held, ref.SecretName) {
		status := p.network.Status.DeepCopy()
		status.HeldSecrets = append(status.HeldSecrets, ref.SecretName)
		if err := p.writeStatus(ctx, status); err != nil {
			return err
		}
	}
	if err := p.addFinalizers(ctx, cache.NewObjectName(p.network.Namespace, ref.SecretName)); err != nil {
		return err
	}
	return p.letSecretsGo(ctx, ref.SecretName)
}

// addFinalizers begins with the RoleBinding: what lets the Secret go must not go
// before it.
func (p *pass) addFinalizers(ctx context.Context, name cache.ObjectName) error {
	defer p.lock(name.Namespace, p.aside)()
	if err := p.holdBinding(ctx, name); err != nil {
		return err
	}
	s, err := p.secrets.read(ctx, name)
	if err != nil || s.held || s.deleting {
		return err
	}
	return p.secrets.setSecretHeld(ctx, s, true)
}

// holdBinding keeps the RoleBinding, if there is one. From an owner who took it
// away it is not kept: but the deletion of a namespace takes away everything, and
// means none of it.
func (p *pass) holdBinding(ctx context.Context, secret cache.ObjectName) error {
	b, err := p.secrets.binding(ctx, secret.Namespace)
	if err != nil || b == nil || b.held != b.deleting {
		return err
	}
	if !b.deleting {
		return p.secrets.setBindingHeld(ctx, b, true)
	}
	if goes, err := p.namespaceGoes(ctx); goes || err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Letting the RoleBinding go, which was deleted", "roleBinding", b.ObjectName)
	if err := p.secrets.setBindingHeld(ctx, b, false); err != nil {
		return err
	}
	return unbound("Secret", secret)
}

func (p *pass) namespaceGoes(ctx context.Context) (bool, error) {
	namespace, err := p.secrets.cluster.CoreV1().Namespaces().Get(ctx, p.network.Namespace, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", p.network.Namespace, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

func (p *pass) letSecretsGo(ctx context.Context, except string) error {
	for _, name := range p.network.Status.HeldSecrets {
		if name == except {
			continue
		}
		if err := p.letSecretGo(ctx, cache.NewObjectName(p.network.Namespace, name)); err != nil {
			return err
		}
	}
	return nil
}

// letSecretGo takes the finalizers off that no other Network needs, and then the
// name off the status. Of two that go at one time the second to have the lock
// sees that the first is gone.
func (p *pass) letSecretGo(ctx context.Context, name cache.ObjectName) error {
	if p.secrets.cluster == nil {
		return unavailable("Secret %q is held, and a server without a cluster has no Secrets", name.Name)
	}
	defer p.lock(name.Namespace, p.aside)()
	if err := p.removeFinalizers(ctx, name); err != nil {
		return err
	}
	status := p.network.Status.DeepCopy()
	status.HeldSecrets = slices.DeleteFunc(status.HeldSecrets, func(held string) bool { return held == name.Name })
	if len(status.HeldSecrets) == 0 {
		status.HeldSecrets = nil
	}
	return p.writeStatus(ctx, status)
}

func (p *pass) removeFinalizers(ctx context.Context, name cache.ObjectName) error {
	secretHeld, anyHeld, err := p.heldByOthers(ctx, name.Name)
	if err != nil || secretHeld {
		return err
	}
	if err := p.releaseSecret(ctx, name); err != nil {
		return err
	}
	if anyHeld || len(p.network.Status.HeldSecrets) > 1 {
		return nil
	}
	b, err := p.bindingNow(ctx)
	if err != nil || b == nil || !b.held {
		return err
	}
	return p.secrets.setBindingHeld(ctx, b, false)
}

func (p *pass) releaseSecret(ctx context.Context, name cache.ObjectName) error {
	got, err := p.secrets.cluster.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		if forGood, err := p.unboundForGood(ctx); forGood || err != nil {
			return err
		}
	}
	if err != nil {
		return unreachable("Secret", name, err)
	}
	s := p.secrets.note(got)
	if !s.held {
		return nil
	}
	klog.FromContext(ctx).Info("Letting the Secret go", "secret", name)
	return p.secrets.setSecretHeld(ctx, s, false)
}

// unboundForGood tells that nobody can give the right to Secrets again: the
// RoleBinding is gone, and so will be the namespace. That is so where a crash came
// between letting both go and the status; it would be in vain to wait.
func (p *pass) unboundForGood(ctx context.Context) (bool, error) {
	if b, err := p.bindingNow(ctx); b != nil || err != nil {
		return false, err
	}
	return p.namespaceGoes(ctx)
}

func (p *pass) bindingNow(ctx context.Context) (*kept, error) {
	p.secrets.forget(p.network.Namespace)
	return p.secrets.binding(ctx, p.network.Namespace)
}

// heldByOthers tells whether another Network holds the Secret, or any in the
// namespace. It asks the API server and not the cache, which may not know yet
// that the others are gone: then nobody would be the last.
func (p *pass) heldByOthers(ctx context.Context, secretName string) (thisOne, anyOne bool, err error) {
	options := metav1.ListOptions{Limit: usersPerPage}
	for {
		page, err := p.clients.SamplecrdV1().Networks(p.network.Namespace).List(ctx, options)
		if err != nil {
			return false, false, fmt.Errorf("listing the Networks of namespace %s: %w", p.network.Namespace, err)
		}
		for i := range page.Items {
			n := &page.Items[i]
			if n.UID == p.network.UID {
				continue
			}
			if slices.Contains(n.Status.HeldSecrets, secretName) {
				return true, true, nil
			}
			anyOne = anyOne || len(n.Status.HeldSecrets) > 0
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return false, anyOne, nil
		}
	}
}
