//go:build kube

package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// account makes a service account to which the role is bound in its namespace.
func (c *cluster) account(t testing.TB, namespace, role string) *account {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: role}
	made, err := c.kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: role}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return (*account)(made)
}

type account corev1.ServiceAccount

func (a *account) name() string {
	return "system:serviceaccount:" + a.Namespace + ":" + a.Name
}

// token has the cluster issue one.
func (c *cluster) token(t testing.TB, a *account, audiences ...string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	answer, err := c.kube.CoreV1().ServiceAccounts(a.Namespace).CreateToken(t.Context(), a.Name, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

func bearer(token string) string { return "Authorization: Bearer " + token }

// forge makes a token as the cluster does, with any key or none.
func forge(t testing.TB, key crypto.Signer, a *account, lifetime time.Duration) string {
	t.Helper()
	const issuer = "https://kubernetes.default.svc.cluster.local"
	encode := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	algorithm := "ES256"
	if key == nil {
		algorithm = "none"
	}
	expires := time.Now().Add(lifetime)
	signed := encode(map[string]any{"alg": algorithm, "typ": "JWT"}) + "." + encode(map[string]any{
		"iss": issuer, "aud": []string{issuer}, "sub": a.name(),
		"iat": expires.Add(-2 * time.Hour).Unix(), "nbf": expires.Add(-2 * time.Hour).Unix(), "exp": expires.Unix(),
		"kubernetes.io": map[string]any{"namespace": a.Namespace, "serviceaccount": map[string]any{"name": a.Name, "uid": a.UID}},
	})
	if key == nil {
		return signed + "."
	}
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// authority issues certificates; for a key without one just the key counts.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authority reads one of the cluster.
func (c *cluster) authority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(c.data, "pki", name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key.(crypto.Signer)}
	if certs, err := cert.CertsFromFile(filepath.Join(c.data, "pki", name+".crt")); err == nil {
		a.cert = certs[0]
	}
	return a
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key := newKey(t)
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "front-proxy-ca"}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: ca, key: key}
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) client(t testing.TB, user string, groups ...string) *tls.Certificate {
	t.Helper()
	return a.issue(t, time.Now().Add(time.Hour), user, groups...)
}

func (a *authority) expiredClient(t testing.TB, user string) *tls.Certificate {
	t.Helper()
	return a.issue(t, time.Now().Add(-time.Minute), user)
}

func (a *authority) issue(t testing.TB, notAfter time.Time, user string, groups ...string) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := clientTemplate(notAfter, user, groups...)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func selfSigned(t testing.TB, user string) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := clientTemplate(time.Now().Add(time.Hour), user)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func clientTemplate(notAfter time.Time, user string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    notAfter.Add(-2 * time.Hour),
		NotAfter:     notAfter,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}
