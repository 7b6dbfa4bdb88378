#!/usr/bin/env bash
# MariaDB with an empty database for Neutron, as production has it: text is compared without regard to letter case.
#   mariadb.sh install | start DIR | stop DIR
set -euo pipefail
source "$(dirname "$0")/process.sh"
packages=(mariadb-server-core mariadb-client-core) # these start no service
servers=(mariadb)

start() {
	port MARIADB_PORT
	local data=$dir/mariadb
	if [ ! -e "$data" ]; then
		mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user="$(id -un)" \
			--datadir="$data.new" >"$dir/mariadb-install.log" 2>&1 || fail "database cannot be made, see $dir/mariadb-install.log"
		mv "$data.new" "$data"
	fi
	cat >"$dir/mariadb.sql" <<-END
		CREATE DATABASE IF NOT EXISTS neutron CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
		CREATE USER IF NOT EXISTS neutron@'127.0.0.1';
		GRANT ALL ON neutron.* TO neutron@'127.0.0.1';
	END
	# Nothing here has to survive a power cut.
	spawn mariadb mariadbd --no-defaults --user="$(id -un)" --datadir="$data" --socket=socket --init-file="$dir/mariadb.sql" \
		--bind-address=127.0.0.1 --port="$MARIADB_PORT" --innodb-buffer-pool-size=64M --debug-no-sync
	await mariadb bash -c ": </dev/tcp/127.0.0.1/$MARIADB_PORT"
	record MARIADB_URL "mysql+pymysql://neutron@127.0.0.1:$MARIADB_PORT/neutron?charset=utf8mb4"
}

main "$@"
