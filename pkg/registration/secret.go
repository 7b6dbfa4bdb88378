package registration

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

const (
	// managedBy and manager are the label by which we know our own Secret.
	managedBy = "app.kubernetes.io/managed-by"
	manager   = "network-apiserver"

	// caKey is the key of a Secret under which cert-manager has it too.
	caKey = "ca.crt"
)

// keepSecret returns the pair that all replicas are to serve, and the CAs that
// clients are to trust. It makes what is missing, damaged or due. Where another
// replica was faster, its pair counts.
func (r *Registrar) keepSecret(ctx context.Context) (current *pair, bundle []*x509.Certificate, err error) {
	lost := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}
	err = retry.OnError(retry.DefaultRetry, lost, func() error {
		current, bundle, err = r.tryKeepSecret(ctx)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("keeping the serving certificate in Secret %s/%s: %w", r.options.ServiceNamespace, r.options.SecretName, err)
	}
	return current, bundle, nil
}

func (r *Registrar) tryKeepSecret(ctx context.Context) (*pair, []*x509.Certificate, error) {
	secrets := r.kube.CoreV1().Secrets(r.options.ServiceNamespace)
	found, err := secrets.Get(ctx, r.options.SecretName, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	switch {
	case missing:
		found = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: r.options.SecretName, Labels: map[string]string{managedBy: manager}},
			Type:       corev1.SecretTypeTLS,
		}
	case err != nil:
		return nil, nil, err
	case found.Labels[managedBy] != manager:
		return nil, nil, fmt.Errorf("it is somebody else's, as it has no label %s=%s: remove it, or name another", managedBy, manager)
	}

	now, name := r.clock.Now(), r.names[0]
	bundle, err := cert.ParseCertsPEM(found.Data[caKey])
	if err != nil {
		bundle = nil // nor can the pair be verified then: both are made anew
	}
	kept, err := parsePair(found.Data[corev1.TLSCertKey], found.Data[corev1.TLSPrivateKeyKey], bundle)
	current := kept
	switch {
	case err == nil && kept.good(name, now) && !kept.due(now):
	case err == nil && !kept.good(name, now) && r.served != nil && r.served.good(name, now) && !r.served.due(now):
		// A replica with another name or another clock has made it. What is served
		// is good, so it may stay: each would replace that of the other for ever.
		current = r.served
	default:
		if err != nil && !missing {
			klog.InfoS("Replacing the serving certificate", "secret", klog.KObj(found), "why", err)
		}
		if kept, err = issue(r.names, now); err != nil {
			return nil, nil, err
		}
		current = kept
	}
	bundle = r.trusted(bundle, kept.ca, now)

	wanted := found.DeepCopy()
	if wanted.Data == nil {
		wanted.Data = map[string][]byte{}
	}
	wanted.Data[caKey] = encode(bundle...)
	wanted.Data[corev1.TLSCertKey] = kept.certPEM
	wanted.Data[corev1.TLSPrivateKeyKey] = kept.keyPEM
	switch {
	case missing:
		_, err = secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: manager})
	case !equality.Semantic.DeepEqual(found, wanted):
		_, err = secrets.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: manager})
	}
	if err != nil {
		return nil, nil, err
	}
	return current, bundle, nil
}

// trusted returns the CAs of bundle that are still needed, with those of what
// is and of what will be served. A CA that this replica does not need may be
// that of one which has not yet changed: it stays a while.
func (r *Registrar) trusted(bundle []*x509.Certificate, next *x509.Certificate, now time.Time) []*x509.Certificate {
	needed := []*x509.Certificate{next}
	if r.served != nil && r.served.good(r.names[0], now) {
		needed = append(needed, r.served.ca)
	}
	idle := map[string]time.Time{}
	kept := slices.DeleteFunc(slices.Clone(bundle), func(ca *x509.Certificate) bool {
		if slices.ContainsFunc(needed, ca.Equal) {
			return false
		}
		since, known := r.idle[string(ca.Raw)]
		if !known {
			since = now
		}
		if now.Sub(since) >= retire {
			return true // a replica that does need it puts it back, for another while
		}
		idle[string(ca.Raw)] = since
		return false
	})
	r.idle = idle
	for _, ca := range needed {
		if !slices.ContainsFunc(kept, ca.Equal) {
			kept = append(kept, ca)
		}
	}
	return kept
}
