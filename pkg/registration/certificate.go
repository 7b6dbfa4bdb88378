package registration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	lifetime = 90 * 24 * time.Hour
	renewal  = lifetime / 3 // before its end
	// clockSkew is how far a certificate's start lies back, for a client whose
	// clock is behind ours.
	clockSkew = time.Hour
)

// pair is a serving certificate with its key, and the CA that signed it.
type pair struct {
	certPEM, keyPEM []byte
	leaf, ca        *x509.Certificate
}

// issue makes a pair under a CA of its own, whose key signs this once and is
// kept nowhere: nobody can ever sign with it what we did not.
func issue(names []string, now time.Time) (*pair, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of a CA: %w", err)
	}
	ca, err := sign(&x509.Certificate{
		// CAs old and new stand side by side in caBundle: a person tells them apart by their time.
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s-ca@%d", manager, now.Unix())},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}, nil, caKey, caKey)
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of a serving certificate: %w", err)
	}
	leaf, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: manager},
		DNSNames:    names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   ca.NotBefore,
		NotAfter:    ca.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, key, caKey)
	if err != nil {
		return nil, fmt.Errorf("making a serving certificate: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key of a serving certificate: %w", err)
	}
	return &pair{certPEM: encode(leaf), keyPEM: keyPEM, leaf: leaf, ca: ca}, nil
}

// sign returns the certificate of key's owner; without a parent it is its own.
func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	if parent == nil {
		parent = template
	}
	// With no serial number in the template a random one is drawn (RFC 5280, 4.1.2.2).
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// parsePair returns what issue made, or why it is something else. For whom and
// when it is good is another question.
func parsePair(certPEM, keyPEM []byte, bundle []*x509.Certificate) (*pair, error) {
	parsed, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, ca := range bundle {
		roots.AddCert(ca)
	}
	chains, err := parsed.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: parsed.Leaf.NotBefore})
	if err != nil {
		return nil, err
	}
	if len(chains[0]) != 2 {
		return nil, errors.New("it is not signed by a CA in ca.crt")
	}
	return &pair{certPEM: certPEM, keyPEM: keyPEM, leaf: parsed.Leaf, ca: chains[0][1]}, nil
}

// good tells that kube-apiserver takes it for the server of that name.
func (p *pair) good(name string, now time.Time) bool {
	return p.leaf.VerifyHostname(name) == nil && !now.Before(p.leaf.NotBefore) && !now.After(p.leaf.NotAfter)
}

// due tells that it has to be replaced, long before it ends.
func (p *pair) due(now time.Time) bool { return now.After(p.leaf.NotAfter.Add(-renewal)) }

func encode(certs ...*x509.Certificate) []byte {
	encoded, err := cert.EncodeCertificates(certs...)
	if err != nil {
		panic(err) // writing to memory
	}
	return encoded
}
