#!/usr/bin/env bash
# Runs the contract suite against Neutron on SQLite and then on MariaDB, and the whole server against both with Keystone, whose tokens live
# for seconds; beside MariaDB OVN carries packets. Installs what is missing, so it wants Debian and root.
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

# docs/backup.md is followed to the letter.
command -v jq >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends jq >/dev/null; }
whole() { go test -count=1 -timeout 10m -tags openstack -run "$1" ./test/e2e; }

# SQLite takes one request at a time: there a token must live through a queue.
export KEYSTONE_TOKEN_SECONDS=15
against "keystone neutron" whole '^Test(Cloud|Reader|SamePlace|Restore)$'
export KEYSTONE_TOKEN_SECONDS=5
against "mariadb keystone ovn neutron" whole '^Test(Cloud|Reader|SamePlace|Restore|Packets)$'
