#!/usr/bin/env bash
# Neutron: its API alone, with no agents and no message bus. On SQLite, or with the database, the identity service and the network
# that mariadb.sh, keystone.sh and ovn.sh started in the same folder before. Without Keystone a token states who its bearer is:
# stated_identity.py.
#   neutron.sh install | start DIR | stop DIR
set -euo pipefail
source "$(dirname "$0")/process.sh"
packages=(python3-neutron curl)
servers=(neutron)

start() {
	port NEUTRON_PORT
	configure
	schema
	export PYTHONPATH=$here
	local program=("$here/serve_neutron.py")
	if [ -n "${OVN_NORTH:-}" ]; then
		# OVN needs the other workers of the server too, and they need a database that takes several writers.
		[ -n "${MARIADB_URL:-}" ] || fail "OVN needs mariadb.sh in the same folder"
		program=(-c 'from neutron.cmd.eventlet.server import main; main()')
	fi
	spawn neutron "$python" "${program[@]}" "${config[@]}"
	await neutron curl -fsS "http://127.0.0.1:$NEUTRON_PORT/"
	record NEUTRON_URL "http://127.0.0.1:$NEUTRON_PORT"
	record NEUTRON_DATABASE "$([ -n "${MARIADB_URL:-}" ] && echo mariadb || echo sqlite)"
}

configure() {
	config=(--config-file "$here/neutron.conf" --config-file "$dir/neutron.conf")
	mkdir -p "$dir/neutron"
	# SQLite locks its file as a whole: a second process would fail with "database is locked".
	cat >"$dir/neutron.conf" <<-END
		[DEFAULT]
		bind_port = $NEUTRON_PORT
		state_path = $dir/neutron
		api_paste_config = $here/api-paste.ini
		auth_strategy = $([ -n "${KEYSTONE_URL:-}" ] && echo keystone || echo stated)
		api_workers = $([ -n "${MARIADB_URL:-}" ] && echo 2 || echo 0)
		[database]
		connection = ${MARIADB_URL:-sqlite:///$dir/neutron.sqlite}
		[oslo_concurrency]
		lock_path = $dir/neutron
		[oslo_policy]
		# With the roles as Keystone means them: who is reader only may not write. Without, reader is as good as member.
		enforce_new_defaults = $([ -n "${KEYSTONE_URL:-}" ] && echo true || echo false)
		[keystone_authtoken]
		auth_url = ${KEYSTONE_URL:-}
		www_authenticate_uri = ${KEYSTONE_URL:-}
	END
	[ -n "${OVN_NORTH:-}" ] || return 0
	cat >>"$dir/neutron.conf" <<-END
		[DEFAULT]
		service_plugins = ovn-router
		[ml2]
		mechanism_drivers = ovn
		tenant_network_types = geneve
		[ml2_type_geneve]
		# What Neutron asks of OVN's headers at the least.
		max_header_size = 38
		[ovn]
		ovn_nb_connection = $OVN_NORTH
		ovn_sb_connection = $OVN_SOUTH
		# As clouds have it: each network has a port of OVN's own.
		ovn_metadata_enabled = true
	END
}

# schema makes the tables. The migrations cannot run on SQLite, which does not alter constraints: there the models make them, as in
# Neutron's own unit tests.
schema() {
	local log=$dir/neutron-schema.log
	if [ -n "${MARIADB_URL:-}" ]; then
		"$python" -c 'from neutron.db.migration.cli import main; main()' "${config[@]}" upgrade heads >"$log" 2>&1 ||
			fail "migration failed, see $log"
	elif [ ! -e "$dir/neutron.sqlite" ]; then
		"$python" - "$dir/neutron.sqlite.new" >"$log" 2>&1 <<-END || fail "tables cannot be made, see $log"
			import sys
			from neutron.db.migration.models import head
			import sqlalchemy
			head.get_metadata().create_all(sqlalchemy.create_engine("sqlite:///" + sys.argv[1]))
		END
		mv "$dir/neutron.sqlite.new" "$dir/neutron.sqlite"
	fi
}

main "$@"
