#!/usr/bin/env bash
# Takes the server out of a cluster in the only order that leaves nothing behind:
# Networks while the controller still runs, then the server, which would register
# itself again, then the APIServices - while one is registered that nobody serves,
# no namespace can be deleted - then the rest.
#
#   uninstall.sh OVERLAY      artifacts/overlays/self-registered, for example
#
# Deployments lose the annotation that asks for a Network: each would get its own
# again. Networks with deletionPolicy Retain leave what they made in Neutron.
set -euo pipefail
overlay=${1:?usage: uninstall.sh OVERLAY}
kubectl kustomize "$overlay" >/dev/null # before anything is deleted

# Without one this was run before, and interrupted: then there are no Networks.
# One without a Service is that of a CRD, whose Networks are none of ours.
service=$(kubectl get apiservice v1.samplecrd.k8s.io --ignore-not-found --output=jsonpath='{.spec.service.name}')
if [[ -n $service ]]; then
	if ! kubectl get --raw "/apis/samplecrd.k8s.io/v1/networks?limit=1" >/dev/null; then
		echo "Networks can't be read, so nothing was deleted; kubectl describe apiservice v1.samplecrd.k8s.io says why." >&2
		echo "If no server will ever answer again, delete that APIService and run this again: what is in Neutron stays there." >&2
		exit 1
	fi
	kubectl annotate deployments --all --all-namespaces samplecrd.k8s.io/network- >/dev/null
	echo "Deleting all Networks and waiting until Neutron is empty of them" >&2
	kubectl delete networks.samplecrd.k8s.io --all --all-namespaces --timeout="${TIMEOUT:-10m}"
	left=$(kubectl get networks.samplecrd.k8s.io --all-namespaces)
	if [[ -n $left ]]; then
		printf 'Made meanwhile, and would be left in Neutron. Find out by whom, and run this again:\n%s\n' "$left" >&2
		exit 1
	fi
fi
kubectl delete deployment network-apiserver --namespace=network-apiserver --cascade=foreground --ignore-not-found
kubectl delete apiservice v1.samplecrd.k8s.io v2alpha1.samplecrd.k8s.io v1alpha1.pipeline.samplecrd.k8s.io --ignore-not-found
kubectl delete -k "$overlay" --ignore-not-found
