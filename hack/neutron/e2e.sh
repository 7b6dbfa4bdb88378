#!/usr/bin/env bash
# Runs the contract suite against Neutron on SQLite and then on MariaDB, and the whole server against MariaDB with OVN and Keystone, whose
# tokens live for seconds. Installs what is missing, so it wants Debian and root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

finish() {
	"$here/neutron.sh" stop "$dir"
	"$here/ovn.sh" stop "$dir"
	"$here/keystone.sh" stop "$dir"
	"$here/mariadb.sh" stop "$dir"
	rm -rf "$dir"
}

# against "SERVER..." COMMAND... runs the command with the environment of the last server, which is Neutron on the others.
against() {
	local server servers=$1
	shift
	dir=$(mktemp -d)
	trap finish EXIT
	for server in $servers; do
		"$here/$server.sh" install
		"$here/$server.sh" start "$dir"
	done
	(source "$dir/env" && cd "$here/../.." && "$@")
	finish
	trap - EXIT
}

contract() { go test -count=1 -timeout 5m ./test/contract; }

against "neutron" contract
against "mariadb neutron" contract
export KEYSTONE_TOKEN_SECONDS=5
against "mariadb keystone ovn neutron" go test -count=1 -timeout 5m -tags openstack -run '^(TestCloud|TestPackets)$' ./test/e2e
