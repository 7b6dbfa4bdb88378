package standalone

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	adminUser = "admin"

	// caRenewal is the rest of its life in which a CA is replaced at start: longer than a server is likely to run.
	caRenewal = 30 * 24 * time.Hour
	// clockSkew is how far a certificate's start lies back, for a machine whose clock is set back after its first start.
	clockSkew = time.Hour
)

// PKI holds PEM blocks. The keys are secrets.
type PKI struct {
	CA                      []byte // certificate only
	ServingCert, ServingKey []byte
	ClientCert, ClientKey   []byte // a user in system:masters
}

// authority is the one file kept of a PKI: certificate and key together, so that no crash parts them.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// LoadOrCreatePKI reads the certificate authority kept in dir/ca.pem (mode 0600, certificate and key), or makes one
// that lasts 10 years where there is none or the one there ends within 30 days. From it come, anew at each call and
// lasting as long: a serving certificate for localhost, 127.0.0.1, ::1 and hosts (IP addresses or DNS names), and a
// client certificate for a user in the group system:masters. All keys are ECDSA P-256.
//
// A damaged file is an error that names it: it is never replaced unasked.
func LoadOrCreatePKI(dir string, hosts ...string) (*PKI, error) {
	names, err := altNames(append([]string{"localhost", "127.0.0.1", "::1"}, hosts...))
	if err != nil {
		return nil, err
	}
	ca, err := loadOrCreateAuthority(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	pki := &PKI{}
	if pki.CA, err = cert.EncodeCertificates(ca.cert); err != nil {
		return nil, fmt.Errorf("encode CA certificate: %w", err)
	}
	pki.ServingCert, pki.ServingKey, err = ca.issue(cert.Config{
		CommonName: "network-apiserver",
		AltNames:   names,
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("issue serving certificate: %w", err)
	}
	pki.ClientCert, pki.ClientKey, err = ca.issue(cert.Config{
		CommonName:   adminUser,
		Organization: []string{user.SystemPrivilegedGroup},
		Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("issue client certificate: %w", err)
	}
	return pki, nil
}

func altNames(hosts []string) (cert.AltNames, error) {
	var names cert.AltNames
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			if !slices.ContainsFunc(names.IPs, ip.Equal) {
				names.IPs = append(names.IPs, ip)
			}
			continue
		}
		name := strings.ToLower(host)
		if problems := validation.IsDNS1123Subdomain(name); problems != nil {
			return cert.AltNames{}, fmt.Errorf("host %q of serving certificate is neither an IP address nor a DNS name", host)
		}
		if !slices.Contains(names.DNSNames, name) {
			names.DNSNames = append(names.DNSNames, name)
		}
	}
	return names, nil
}

func loadOrCreateAuthority(path string) (*authority, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	ca, err := parseAuthority(content)
	if err != nil {
		return nil, fmt.Errorf("CA file %s is damaged; restore it, or remove it to get a new CA, which old kubeconfigs will not trust: %w", path, err)
	}
	if time.Until(ca.cert.NotAfter) < caRenewal {
		return createAuthority(path)
	}
	return ca, nil
}

func createAuthority(path string) (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make CA key: %w", err)
	}
	caCert, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "network-apiserver-ca", NotBefore: time.Now().Add(-clockSkew)}, key)
	if err != nil {
		return nil, fmt.Errorf("make CA certificate: %w", err)
	}
	certPEM, err := cert.EncodeCertificates(caCert)
	if err != nil {
		return nil, fmt.Errorf("encode CA certificate: %w", err)
	}
	if err := writeFile(path, slices.Concat(certPEM, keyPEM)); err != nil {
		return nil, fmt.Errorf("write CA: %w", err)
	}
	return &authority{cert: caCert, key: key}, nil
}

func parseAuthority(content []byte) (*authority, error) {
	certs, err := cert.ParseCertsPEM(content)
	if err != nil {
		return nil, err
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(content)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	switch {
	case !ok:
		return nil, errors.New("key is not an ECDSA key")
	case len(certs) != 1 || !certs[0].IsCA:
		return nil, errors.New("it must hold one certificate, that of a CA")
	case !key.PublicKey.Equal(certs[0].PublicKey):
		return nil, errors.New("certificate and key do not belong together")
	}
	return &authority{cert: certs[0], key: key}, nil
}

// issue returns the PEM of a new certificate that lasts as long as the CA, and of its key.
func (ca *authority) issue(config cert.Config) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	// With no serial number in the template, CreateCertificate draws a random one (RFC 5280, 4.1.2.2).
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		DNSNames:    config.AltNames.DNSNames,
		IPAddresses: config.AltNames.IPs,
		NotBefore:   ca.cert.NotBefore,
		NotAfter:    ca.cert.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: config.Usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	certPEM, err = cert.EncodeCertificates(leaf)
	return certPEM, keyPEM, err
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, keyPEM, err
}
