package main

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	frontProxyUser = "front-proxy-client"

	// serverNamespace and serverName are those of the service account that network-apiserver has in a cluster. Here it
	// is a plain process, with a certificate for that user.
	serverNamespace = "network-apiserver"
	serverName      = "network-apiserver"
)

// pki is all that a cluster proves identities with. There are three CAs, because who holds a certificate of one must be
// nobody to the others: a client of kube-apiserver can neither speak for other users, as the front proxy does, nor reach
// etcd.
type pki struct {
	ca, frontProxyCA, etcdCA *authority

	apiserver, controllerManager, etcd pair // of servers

	admin, server, controllerManagerClient pair // of clients of kube-apiserver
	frontProxyClient                       pair
	apiserverEtcdClient, serverEtcdClient  pair

	adminProbe, etcdProbe *http.Client

	serviceAccountKey string // file
}

// newPKI makes in a folder what is not there yet.
func newPKI(dir string) (*pki, error) {
	p := &pki{}
	var err error
	for name, ca := range map[string]**authority{"ca": &p.ca, "front-proxy-ca": &p.frontProxyCA, "etcd-ca": &p.etcdCA} {
		if *ca, err = newAuthority(dir, name); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(
		p.ca.serving(&p.apiserver, "apiserver"),
		p.ca.serving(&p.controllerManager, "controller-manager"),
		p.etcdCA.serving(&p.etcd, "etcd"),

		p.ca.client(&p.admin, "admin", "admin", user.SystemPrivilegedGroup),
		p.ca.client(&p.server, "server", serviceaccount.MakeUsername(serverNamespace, serverName),
			serviceaccount.MakeGroupNames(serverNamespace)...),
		p.ca.client(&p.controllerManagerClient, "controller-manager-client", user.KubeControllerManager),
		p.frontProxyCA.client(&p.frontProxyClient, "front-proxy-client", frontProxyUser),
		p.etcdCA.client(&p.apiserverEtcdClient, "apiserver-etcd-client", "kube-apiserver"),
		p.etcdCA.client(&p.serverEtcdClient, "server-etcd-client", "network-apiserver"),
	); err != nil {
		return nil, err
	}
	if p.serviceAccountKey, _, err = newKey(dir, "service-account"); err != nil {
		return nil, err
	}
	if p.adminProbe, err = p.ca.httpClient(p.admin); err != nil {
		return nil, err
	}
	p.etcdProbe, err = p.etcdCA.httpClient(p.apiserverEtcdClient)
	return p, err
}

// authority is a CA.
type authority struct {
	dir  string
	file string // of the certificate
	cert *x509.Certificate
	key  crypto.Signer
}

// pair names the files of a certificate and of its key.
type pair struct {
	cert, key string
}

// newAuthority reads the CA of that name from a folder, or makes one that lasts 10 years.
func newAuthority(dir, name string) (*authority, error) {
	a := &authority{dir: dir, file: filepath.Join(dir, name+".crt")}
	var err error
	if _, a.key, err = newKey(dir, name); err != nil {
		return nil, err
	}
	certs, err := cert.CertsFromFile(a.file)
	switch {
	case err == nil:
		a.cert = certs[0]
		return a, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read CA: %w", err)
	}
	if a.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: name}, a.key); err != nil {
		return nil, fmt.Errorf("make CA %s: %w", name, err)
	}
	return a, writeCert(a.file, a.cert)
}

// serving issues a certificate for servers on loopback.
func (a *authority) serving(into *pair, name string) error {
	return a.issue(into, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.ParseIP(host)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client issues a certificate for a user, as kube-apiserver reads it.
func (a *authority) client(into *pair, name, user string, groups ...string) error {
	return a.issue(into, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// issue writes a certificate that lasts as long as its CA. The key is the one of the last time, if there is one.
func (a *authority) issue(into *pair, name string, template *x509.Certificate) error {
	keyFile, key, err := newKey(a.dir, name)
	if err != nil {
		return err
	}
	template.NotBefore, template.NotAfter = a.cert.NotBefore, a.cert.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("issue certificate %s: %w", name, err)
	}
	issued, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("read issued certificate %s: %w", name, err)
	}
	*into = pair{cert: filepath.Join(a.dir, name+".crt"), key: keyFile}
	return writeCert(into.cert, issued)
}

// newKey reads the key of that name from a folder, or makes one.
func newKey(dir, name string) (file string, key crypto.Signer, err error) {
	file = filepath.Join(dir, name+".key")
	content, _, err := keyutil.LoadOrGenerateKeyFile(file)
	if err != nil {
		return "", nil, fmt.Errorf("read or make key %s: %w", file, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(content)
	if err != nil {
		return "", nil, fmt.Errorf("read key %s: %w", file, err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return "", nil, fmt.Errorf("key %s can't sign", file)
	}
	return file, key, nil
}

func writeCert(path string, certificate *x509.Certificate) error {
	content, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return writeFile(path, content)
}

// httpClient trusts the servers of the CA and shows them the certificate.
func (a *authority) httpClient(p pair) (*http.Client, error) {
	certificate, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", p.cert, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, nil
}
