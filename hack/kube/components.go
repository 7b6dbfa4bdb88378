package main

import (
	"fmt"
	"net/http"
	"slices"
)

// component is a program of the control plane.
type component struct {
	name   string
	flags  []string
	client *http.Client
	ready  []string // it is when client gets 200 from each of these URLs
}

// components returns what runs, in the order of the start: each needs those before it.
func (c *cluster) components() []component {
	apiserver := secureURL(c.ports.APIServer)
	return []component{{
		name: "etcd",
		flags: slices.Concat([]string{
			"--name=kube",
			"--data-dir=" + c.path("etcd"),
			"--listen-client-urls=" + c.etcdURL(),
			"--advertise-client-urls=" + c.etcdURL(),
			// There are no peers, but etcd can't do without the port.
			"--listen-peer-urls=" + secureURL(c.ports.EtcdPeer),
			"--initial-advertise-peer-urls=" + secureURL(c.ports.EtcdPeer),
			"--initial-cluster=kube=" + secureURL(c.ports.EtcdPeer),
			"--enable-grpc-gateway=false",
			"--log-level=warn",
		},
			mutualTLS("", c.pki.etcdCA, c.pki.etcd),
			mutualTLS("peer-", c.pki.etcdCA, c.pki.etcd)),
		client: c.pki.etcdProbe,
		ready:  []string{c.etcdURL() + "/readyz"},
	}, {
		name: "kube-apiserver",
		flags: append([]string{
			"--bind-address=" + host,
			"--advertise-address=" + host,
			fmt.Sprintf("--secure-port=%d", c.ports.APIServer),
			"--tls-cert-file=" + c.pki.apiserver.cert,
			"--tls-private-key-file=" + c.pki.apiserver.key,

			"--etcd-servers=" + c.etcdURL(),
			"--etcd-cafile=" + c.pki.etcdCA.file,
			"--etcd-certfile=" + c.pki.apiserverEtcdClient.cert,
			"--etcd-keyfile=" + c.pki.apiserverEtcdClient.key,

			"--client-ca-file=" + c.pki.ca.file,
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + c.pki.serviceAccountKey,
			"--service-account-signing-key-file=" + c.pki.serviceAccountKey,

			// Aggregation: to the servers behind it, kube-apiserver is the front proxy, and tells them in these headers
			// who the user is. It publishes the CA, the name and the headers for them in the ConfigMap
			// kube-system/extension-apiserver-authentication.
			"--proxy-client-cert-file=" + c.pki.frontProxyClient.cert,
			"--proxy-client-key-file=" + c.pki.frontProxyClient.key,
			"--requestheader-client-ca-file=" + c.pki.frontProxyCA.file,
			"--requestheader-allowed-names=" + frontProxyUser,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-uid-headers=X-Remote-Uid",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",

			// The Service "kubernetes" is for pods: loopback is refused as its endpoint, and there are no pods.
			"--endpoint-reconciler-type=none",
			// Clients that watch would hold up the end for as long as they like.
			"--shutdown-watch-termination-grace-period=1s",
		}, c.apiserverFlags...),
		client: c.pki.adminProbe,
		ready: []string{
			apiserver + "/readyz",
			// Servers that join can't start without it, and it is made after kube-apiserver is ready.
			apiserver + "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
		},
	}, {
		name: "kube-controller-manager",
		flags: []string{
			"--bind-address=" + host,
			fmt.Sprintf("--secure-port=%d", c.ports.ControllerManager),
			"--tls-cert-file=" + c.pki.controllerManager.cert,
			"--tls-private-key-file=" + c.pki.controllerManager.key,
			"--kubeconfig=" + c.path("controller-manager.kubeconfig"),
			"--leader-elect=false",
			"--root-ca-file=" + c.pki.ca.file,
			"--service-account-private-key-file=" + c.pki.serviceAccountKey,
			"--use-service-account-credentials",
			// Each controller asks for credentials; the usual limits make a queue of them.
			"--kube-api-qps=1000",
			"--kube-api-burst=1000",
		},
		client: c.pki.adminProbe,
		ready: []string{
			secureURL(c.ports.ControllerManager) + "/healthz",
			// It says that it is healthy before its controllers run. This is what they make first of all in a new cluster.
			apiserver + "/api/v1/namespaces/default/serviceaccounts/default",
		},
	}}
}

// mutualTLS are the flags of etcd for the one kind of its ports or the other.
func mutualTLS(kind string, ca *authority, serving pair) []string {
	return []string{
		"--" + kind + "client-cert-auth",
		"--" + kind + "trusted-ca-file=" + ca.file,
		"--" + kind + "cert-file=" + serving.cert,
		"--" + kind + "key-file=" + serving.key,
	}
}
