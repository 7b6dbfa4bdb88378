#!/usr/bin/env bash
# Runs in a cluster of kube (kube -- register.sh): registers network-apiserver
# with the manifests and runs it as a plain process, with a simulator of Neutron,
# until it is told to stop. No pod runs without a node, so the Service points to
# the process.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=$(dirname "$KUBECONFIG")

children=()
stop() {
	trap - EXIT INT TERM
	# The server first: it has a last word for Neutron.
	for ((i = ${#children[@]} - 1; i >= 0; i--)); do
		kill "${children[i]}" 2>/dev/null || true
		wait "${children[i]}" 2>/dev/null || true
	done
}
trap 'stop' EXIT
trap 'stop; exit 0' INT TERM

# The overlay is that of the folder artifacts/, but for the Service.
mkdir -p "$data/overlay"
cat >"$data/overlay/kustomization.yaml" <<EOF
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- $(realpath --relative-to="$data/overlay" artifacts/overlays/simulator)
patches:
- target: {kind: Service, name: network-apiserver}
  patch: |
    - op: replace
      path: /spec
      value: {type: ExternalName, externalName: localhost, ports: [{port: $SERVER_PORT}]}
EOF
kubectl apply -k "$data/overlay" >"$data/apply.log"

cat >"$data/clouds.yaml" <<EOF
clouds:
  demo:
    region_name: RegionOne
    auth:
      auth_url: http://127.0.0.1:$NEUTRON_PORT/identity/v3
      username: demo
      password: demo
      project_name: demo
      user_domain_id: default
      project_domain_id: default
EOF
neutron-simulator --listen "127.0.0.1:$NEUTRON_PORT" --state "$data/neutron.db" >"$data/neutron-simulator.log" 2>&1 &
children+=($!)
OS_CLIENT_CONFIG_FILE=$data/clouds.yaml network-apiserver \
	--secure-port "$SERVER_PORT" \
	--kubeconfig "$SERVER_KUBECONFIG" \
	--etcd-servers "$ETCD_SERVERS" --etcd-cafile "$ETCD_CAFILE" \
	--etcd-certfile "$ETCD_CERTFILE" --etcd-keyfile "$ETCD_KEYFILE" \
	--os-cloud demo \
	--enable-priority-and-fairness \
	--register-apiservice --service-namespace network-apiserver --service-port "$SERVER_PORT" \
	--leader-elect-resource-namespace network-apiserver >"$data/network-apiserver.log" 2>&1 &
server=$!
children+=("$server")

# Not by the APIService alone: it may still be as an earlier run left it.
until kubectl get networks --all-namespaces >/dev/null 2>&1; do
	kill -0 "$server" 2>/dev/null || { tail "$data/network-apiserver.log" >&2; exit 1; }
	sleep 0.5
done
cat <<EOF
network-apiserver is registered.

  export KUBECONFIG=$KUBECONFIG

  kubectl   $(command -v kubectl)
  logs      $data/*.log
  Neutron   http://127.0.0.1:$NEUTRON_PORT (simulator)
EOF
wait "$server"
