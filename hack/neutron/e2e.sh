#!/usr/bin/env bash
# Runs the contract suite against Neutron on SQLite and then on MariaDB. Installs what is missing, so it wants Debian and root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

finish() {
	"$here/neutron.sh" stop "$dir"
	"$here/mariadb.sh" stop "$dir"
	rm -rf "$dir"
}

# against SERVER... tests the last one, which is Neutron on the others.
against() {
	local server
	dir=$(mktemp -d)
	trap finish EXIT
	for server in "$@"; do
		"$here/$server.sh" install
		"$here/$server.sh" start "$dir"
	done
	(source "$dir/env" && cd "$here/../.." && go test -count=1 -timeout 5m ./test/contract)
	finish
	trap - EXIT
}

against neutron
against mariadb neutron
