package standalone

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

func TestPKIVerifies(t *testing.T) {
	pki := loadPKI(t, t.TempDir(), "Example.org", "192.0.2.7", "2001:db8::7", "localhost")
	serving, client := parseCert(t, pki.ServingCert), parseCert(t, pki.ClientCert)
	roots, err := cert.NewPoolFromBytes(pki.CA)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "example.org", "192.0.2.7", "2001:db8::7"} {
		if _, err := serving.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("serving certificate for %s: %v", host, err)
		}
	}
	usages := map[*x509.Certificate]x509.ExtKeyUsage{serving: x509.ExtKeyUsageServerAuth, client: x509.ExtKeyUsageClientAuth}
	for leaf, own := range usages {
		for _, usage := range usages {
			_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
			if (err == nil) != (usage == own) {
				t.Errorf("certificate of %s for usage %v: %v", leaf.Subject, usage, err)
			}
		}
	}
	if diff := cmp.Diff([]string{"system:masters"}, client.Subject.Organization); diff != "" {
		t.Errorf("client certificate's groups (-want +got):\n%s", diff)
	}
	if len(serving.DNSNames) != 2 {
		t.Errorf("serving certificate names %q, want each name once", serving.DNSNames)
	}
	for certPEM, keyPEM := range map[*[]byte]*[]byte{&pki.ServingCert: &pki.ServingKey, &pki.ClientCert: &pki.ClientKey} {
		if _, err := tls.X509KeyPair(*certPEM, *keyPEM); err != nil {
			t.Error(err)
		}
	}
}

func TestPKIKeepsItsCA(t *testing.T) {
	dir := t.TempDir()
	first, second := loadPKI(t, dir), loadPKI(t, dir)
	wantMode(t, filepath.Join(dir, "ca.pem"), 0o600)
	if !bytes.Equal(first.CA, second.CA) {
		t.Error("the second start has another CA")
	}
	if bytes.Equal(first.ServingCert, second.ServingCert) || bytes.Equal(first.ClientKey, second.ClientKey) {
		t.Error("the second start has the certificates of the first")
	}
	ca := parseCert(t, first.CA)
	if years := time.Until(ca.NotAfter).Hours() / 24 / 365; years < 9.9 || years > 10 {
		t.Errorf("CA lasts %.1f years, want 10", years)
	}
	for _, leaf := range [][]byte{second.ServingCert, second.ClientCert} {
		if got := parseCert(t, leaf); !got.NotAfter.Equal(ca.NotAfter) {
			t.Errorf("certificate of %s ends %v, want %v as the CA", got.Subject, got.NotAfter, ca.NotAfter)
		}
	}
}

func TestPKIReplacesACAOnlyNearItsEnd(t *testing.T) {
	testCases := map[string]struct {
		left        time.Duration
		wantReplace bool
	}{
		"31 days left": {left: 31 * 24 * time.Hour},
		"29 days left": {left: 29 * 24 * time.Hour, wantReplace: true},
		"ended":        {left: -time.Hour, wantReplace: true},
	}
	for name, tc := range testCases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			content := caFile(t, func(template *x509.Certificate) { template.NotAfter = time.Now().Add(tc.left) })
			writeCA(t, dir, content)
			pki := loadPKI(t, dir)
			if replaced := !bytes.HasPrefix(content, pki.CA); replaced != tc.wantReplace {
				t.Errorf("replaced: %v, want %v", replaced, tc.wantReplace)
			}
			kept, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
			if err != nil || !bytes.HasPrefix(kept, pki.CA) {
				t.Errorf("the file does not hold the CA in use (%v)", err)
			}
		})
	}
}

func TestPKIRefusesADamagedCA(t *testing.T) {
	whole := caFile(t)
	keyAt := bytes.Index(whole, []byte("-----BEGIN EC"))
	otherKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	testCases := map[string][]byte{
		"empty":                       nil,
		"cut short in its key":        whole[:keyAt+60],
		"cut short after certificate": whole[:keyAt],
		"key only":                    whole[keyAt:],
		"another key":                 slices.Concat(whole[:keyAt], otherKey),
		"two certificates":            slices.Concat(whole[:keyAt], whole),
		"not a CA":                    caFile(t, func(template *x509.Certificate) { template.IsCA = false }),
		"garbage":                     bytes.Repeat([]byte{0xa5}, 500),
		"garbage inside certificate":  bytes.Replace(whole, []byte("M"), []byte("!"), 1),
	}
	for name, content := range testCases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeCA(t, dir, content)
			_, err := LoadOrCreatePKI(dir)
			wantError(t, err, filepath.Join(dir, "ca.pem"), "is damaged")
		})
	}
}

func TestPKIRefusesAHost(t *testing.T) {
	for name, host := range map[string]string{
		"that is empty":       "",
		"with a port":         "example.org:443",
		"with a space":        "example org",
		"that is no ASCII":    "exämple.org",
		"in square brackets":  "[::1]",
		"that is a URL":       "https://example.org",
		"that ends in a line": "example.org\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := LoadOrCreatePKI(dir, host)
			wantError(t, err, "neither an IP address nor a DNS name")
		})
	}
}

// caFile returns the content of a ca.pem, with tweaks applied to its certificate.
func caFile(t *testing.T, tweaks ...func(*x509.Certificate)) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-24 * time.Hour),
		NotAfter:              time.Now().Add(365 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	for _, tweak := range tweaks {
		tweak(template)
	}
	key, keyPEM, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, err := cert.EncodeCertificates(&x509.Certificate{Raw: der})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(certPEM, keyPEM)
}

func writeCA(t *testing.T, dir string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func loadPKI(t *testing.T, dir string, hosts ...string) *PKI {
	t.Helper()
	pki, err := LoadOrCreatePKI(dir, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return pki
}

func parseCert(t *testing.T, certPEM []byte) *x509.Certificate {
	t.Helper()
	certs, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}
