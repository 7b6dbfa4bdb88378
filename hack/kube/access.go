package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeAccess writes, for those who use the cluster, where it is and what they need to be let in.
func (c *cluster) writeAccess() error {
	for path, client := range map[string]pair{
		c.kubeconfig():                          c.pki.admin,
		c.serverKubeconfig():                    c.pki.server,
		c.path("controller-manager.kubeconfig"): c.pki.controllerManagerClient,
	} {
		if err := c.writeKubeconfig(path, client); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return writeFile(c.path("env"), []byte(strings.Join(c.environment(), "\n")+"\n"))
}

// kubeconfig is that of a cluster administrator.
func (c *cluster) kubeconfig() string {
	return c.path("kubeconfig")
}

// serverKubeconfig is that of network-apiserver.
func (c *cluster) serverKubeconfig() string {
	return c.path("server.kubeconfig")
}

// environment tells clients of the cluster, and servers that join it, what they need. The front proxy is not there:
// kube-apiserver tells of it.
func (c *cluster) environment() []string {
	return []string{
		"KUBECONFIG=" + c.kubeconfig(),
		"SERVER_KUBECONFIG=" + c.serverKubeconfig(),
		"ETCD_SERVERS=" + c.etcdURL(),
		"ETCD_CAFILE=" + c.pki.etcdCA.file,
		"ETCD_CERTFILE=" + c.pki.serverEtcdClient.cert,
		"ETCD_KEYFILE=" + c.pki.serverEtcdClient.key,
		// Free ports that stay the same with the folder.
		fmt.Sprintf("SERVER_PORT=%d", c.ports.Server),
		fmt.Sprintf("NEUTRON_PORT=%d", c.ports.Neutron),
	}
}

// writeKubeconfig writes a kubeconfig that holds the certificates themselves, so that it can be copied.
func (c *cluster) writeKubeconfig(path string, client pair) error {
	const name = "kube"
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: secureURL(c.ports.APIServer), CertificateAuthority: c.pki.ca.file}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificate: client.cert, ClientKey: client.key}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	if err := clientcmdapi.FlattenConfig(&config); err != nil {
		return err
	}
	content, err := clientcmd.Write(config)
	if err != nil {
		return err
	}
	return writeFile(path, content)
}

// writeFile replaces a file as a whole, with mode 0600: others may read it at any time.
func writeFile(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
