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
	if c.secrets.getter == nil {
		return nil, unavailable("spec.openStack.credentialsRef names Secret %q, and a server without a cluster has no Secrets", name)
	}
	key := cache.NewObjectName(namespace, name)
	defer c.lock(key, aside)()
	return c.secrets.read(ctx, key)
}

// lock waits for the lock of a Secret and returns what unlocks it.
func (c *Controller) lock(name cache.ObjectName, aside func(func())) (unlock func()) {
	aside(func() { c.secrets.locks.LockKey(name.String()) })
	return func() { _ = c.secrets.locks.UnlockKey(name.String()) }
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
	if ref := credentialsRef(p.network); ref != nil {
		p.secrets.forget(cache.NewObjectName(p.network.Namespace, ref.SecretName))
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
	if err := p.addFinalizer(ctx, cache.NewObjectName(p.network.Namespace, ref.SecretName)); err != nil {
		return err
	}
	return p.letSecretsGo(ctx, ref.SecretName)
}

func (p *pass) addFinalizer(ctx context.Context, name cache.ObjectName) error {
	defer p.lock(name, p.aside)()
	s, err := p.secrets.read(ctx, name)
	if err != nil || s.held || s.deleting {
		return err
	}
	if err := p.secrets.patch(ctx, s, append(slices.Clone(s.finalizers), samplecrdv1.CredentialsFinalizer)); err != nil {
		return unreachable(name, err)
	}
	return nil
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

// letSecretGo takes the finalizer off if no other Network holds the Secret, and
// then the name off the status. Of two that go at one time the second to have
// the lock sees that the first is gone.
func (p *pass) letSecretGo(ctx context.Context, name cache.ObjectName) error {
	if p.secrets.getter == nil {
		return unavailable("Secret %q is held, and a server without a cluster has no Secrets", name.Name)
	}
	defer p.lock(name, p.aside)()
	if err := p.removeFinalizerOf(ctx, name); err != nil {
		return err
	}
	status := p.network.Status.DeepCopy()
	status.HeldSecrets = slices.DeleteFunc(status.HeldSecrets, func(held string) bool { return held == name.Name })
	if len(status.HeldSecrets) == 0 {
		status.HeldSecrets = nil
	}
	return p.writeStatus(ctx, status)
}

func (p *pass) removeFinalizerOf(ctx context.Context, name cache.ObjectName) error {
	got, err := p.secrets.getter.Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return unreachable(name, err)
	}
	s := p.secrets.note(got)
	if !s.held {
		return nil
	}
	if others, err := p.othersHold(ctx, name.Name); others || err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Letting the Secret go", "secret", name)
	err = p.secrets.patch(ctx, s, slices.DeleteFunc(slices.Clone(s.finalizers), func(f string) bool { return f == samplecrdv1.CredentialsFinalizer }))
	p.secrets.forget(name) // it may be gone with the finalizer
	if err != nil && !apierrors.IsNotFound(err) {
		return unreachable(name, err)
	}
	return nil
}

// othersHold asks the API server and not the cache, which may not know yet that
// the others are gone: then nobody would be the last.
func (p *pass) othersHold(ctx context.Context, secretName string) (bool, error) {
	options := metav1.ListOptions{Limit: usersPerPage}
	for {
		page, err := p.clients.SamplecrdV1().Networks(p.network.Namespace).List(ctx, options)
		if err != nil {
			return false, fmt.Errorf("listing the Networks of namespace %s: %w", p.network.Namespace, err)
		}
		for i := range page.Items {
			n := &page.Items[i]
			if n.UID != p.network.UID && slices.Contains(n.Status.HeldSecrets, secretName) {
				return true, nil
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return false, nil
		}
	}
}
