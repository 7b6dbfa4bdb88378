package standalone

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig replaces the file path, with mode 0600, by a kubeconfig for server (a URL such as
// https://127.0.0.1:8443) that holds the administrator's certificate and key themselves, not file names. Its context
// has the namespace default.
func WriteKubeconfig(path, server string, pki *PKI) error {
	const name = "network-apiserver"
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: pki.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{adminUser: {ClientCertificateData: pki.ClientCert, ClientKeyData: pki.ClientKey}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: adminUser, Namespace: "default"}},
		CurrentContext: name,
	}
	if err := clientcmd.Validate(config); err != nil {
		return fmt.Errorf("make kubeconfig %s: %w", path, err)
	}
	content, err := clientcmd.Write(config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %s: %w", path, err)
	}
	if err := writeFile(path, content); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}
