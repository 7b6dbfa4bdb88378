#!/usr/bin/env bash
# Makes the certificates of the etcd in artifacts/base, good for ten years, as
# the Secrets etcd-tls and etcd-client-tls. The key of their CA is not kept: to
# renew them, delete both, run this again, and restart etcd and the server.
set -euo pipefail
namespace=network-apiserver

# It is made last. Another would shut the server that runs out of its etcd.
made=$(kubectl get secret etcd-client-tls --namespace="$namespace" --ignore-not-found --output=name)
if [[ -n $made ]]; then
	echo "$made of namespace $namespace is there already, and stays as it is" >&2
	exit
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
openssl req -x509 "${key[@]}" -days 3650 -subj /CN=network-apiserver-etcd-ca -keyout ca.key -out ca.crt 2>/dev/null

# issue SECRET COMMON_NAME EXTENSIONS
issue() {
	openssl req "${key[@]}" -subj "/CN=$2" -keyout tls.key -out tls.csr 2>/dev/null
	openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -days 3650 -out tls.crt -extfile <(printf '%s\n' "$3") 2>/dev/null
	kubectl create secret generic "$1" --namespace="$namespace" --dry-run=client -o yaml \
		--from-file=ca.crt --from-file=tls.crt --from-file=tls.key | kubectl apply -f -
}

kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f -
issue etcd-tls etcd "subjectAltName=DNS:etcd.$namespace.svc,DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth,clientAuth"
issue etcd-client-tls network-apiserver "extendedKeyUsage=clientAuth"
