#!/usr/bin/env bash
# Keystone on SQLite, with the users of seed_keystone.py, whose clouds.yaml it puts into the folder. KEYSTONE_TOKEN_SECONDS is how long
# a token lives, an hour if not set.
#   keystone.sh install | start DIR | stop DIR
set -euo pipefail
source "$(dirname "$0")/process.sh"
packages=(python3-keystone python3-waitress curl)
servers=(keystone)

start() {
	port KEYSTONE_PORT
	port NEUTRON_PORT # the catalog has it
	local url=http://127.0.0.1:$KEYSTONE_PORT/v3
	configure
	if [ ! -e "$dir/clouds.yaml" ]; then database "$url"; fi
	spawn keystone "$python" "$here/serve_keystone.py" "$KEYSTONE_PORT" "${config[@]}"
	await keystone curl -fsS "$url"
	if [ ! -e "$dir/clouds.yaml" ]; then
		"$python" "$here/seed_keystone.py" "$url" "http://127.0.0.1:$NEUTRON_PORT" >"$dir/clouds.yaml.new"
		mv "$dir/clouds.yaml.new" "$dir/clouds.yaml"
	fi
	record KEYSTONE_URL "$url"
	record OS_CLIENT_CONFIG_FILE "$dir/clouds.yaml"
}

configure() {
	config=(--config-file "$here/keystone.conf" --config-file "$dir/keystone.conf")
	(umask 077 && mkdir -p "$dir/keystone/fernet" "$dir/keystone/credential")
	cat >"$dir/keystone.conf" <<-END
		[database]
		connection = sqlite:///$dir/keystone/keystone.sqlite
		[token]
		expiration = ${KEYSTONE_TOKEN_SECONDS:-3600}
		[fernet_tokens]
		key_repository = $dir/keystone/fernet
		[credential]
		key_repository = $dir/keystone/credential
	END
}

database() {
	local log=$dir/keystone-database.log me group
	me=$(id -un) group=$(id -gn)
	{
		manage db_sync
		# With a rollback journal a reader makes a writer fail: "database is locked".
		"$python" -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("pragma journal_mode=wal")' "$dir/keystone/keystone.sqlite"
		manage fernet_setup --keystone-user "$me" --keystone-group "$group"
		manage credential_setup --keystone-user "$me" --keystone-group "$group"
		manage bootstrap --bootstrap-username admin --bootstrap-password admin --bootstrap-region-id RegionOne \
			--bootstrap-public-url "$1" --bootstrap-internal-url "$1" --bootstrap-admin-url "$1"
	} >"$log" 2>&1
}

manage() { "$python" -c 'from keystone.cmd.manage import main; main()' "${config[@]}" "$@"; }

main "$@"
