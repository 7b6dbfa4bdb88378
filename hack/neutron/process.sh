# shellcheck shell=bash
# Sourced by the scripts of this folder: what they have in common of packages, ports and processes. Each of them names its packages
# and its servers, in the order they start in, and defines start. All work in one folder, which the caller names: configuration,
# state, logs, process ids, and the file env with what a client, or the next script, has to know. What env names stays as it is, so
# that a server can be stopped and started again under one URL.

# Python leaves no byte code beside the modules of this folder.
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=/usr/bin/python3 # the one that Debian's packages belong to

# main COMMAND [DIR] is what each script ends with.
main() {
	case "${1:-} $#" in
	"install 1") install ;;
	"start 2")
		local missing
		missing=$(missing)
		[ -z "$missing" ] || fail "missing packages:" $missing "(install them with: $0 install)"
		mkdir -p "$2"
		dir=$(cd "$2" && pwd)
		! any_running || fail "already runs in $dir"
		recall
		trap stop EXIT
		start
		trap - EXIT
		;;
	"stop 2")
		[ -d "$2" ] || return 0
		dir=$(cd "$2" && pwd)
		stop
		;;
	*)
		echo "usage: $0 install | start DIR | stop DIR" >&2
		exit 2
		;;
	esac
}

fail() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# missing prints the packages that are not installed.
missing() {
	local package
	for package in "${packages[@]}"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
	done
}

install() {
	local missing
	missing=$(missing)
	[ -n "$missing" ] || return 0
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# recall takes what env says, and nothing from the environment: that may come from another folder's env.
recall() {
	unset "${!NEUTRON_@}" "${!MARIADB_@}" "${!OVN_@}" KEYSTONE_PORT KEYSTONE_URL
	if [ -e "$dir/env" ]; then source "$dir/env"; fi
}

# record NAME VALUE prints a line of env and puts it there, in place of what NAME was.
record() {
	touch "$dir/env"
	sed -i "/^export $1=/d" "$dir/env"
	printf 'export %s=%q\n' "$1" "$2" | tee -a "$dir/env"
	recall
}

# port NAME records a free port, unless env has one. The kernel gives the ports from 32768 on to clients: no client takes these.
port() {
	[ -z "${!1:-}" ] || return 0
	local port
	port=$("$python" -c '
import random, socket
while True:
    port = random.randrange(20000, 30000)
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        continue
    print(port)
    break')
	record "$1" "$port"
}

# running NAME looks at the command line too: the id of a process that has ended may be another's by now.
running() {
	[ -s "$dir/$1.pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$dir/$1.pid")/cmdline" | grep -qF "$dir/"
}

any_running() {
	local server
	for server in "${servers[@]}"; do
		if running "$server"; then return 0; fi
	done
	return 1
}

# spawn NAME COMMAND... runs a server as the leader of a process group; its command line holds the folder.
spawn() {
	local name=$1
	shift
	setsid "$@" >>"$dir/$name.log" 2>&1 </dev/null &
	echo $! >"$dir/$name.pid"
	# Until it is the server it has the command line of this shell.
	while kill -0 $! 2>/dev/null && ! running "$name"; do sleep 0.01; done
}

# await NAME COMMAND... waits until the command succeeds, a minute at most and only while the server runs.
await() {
	local name=$1 deadline=$((SECONDS + 60))
	shift
	until "$@" >/dev/null 2>&1; do
		if ! running "$name" || [ $SECONDS -gt $deadline ]; then
			tail -n 5 "$dir/$name.log" >&2
			fail "$name does not answer, see $dir/$name.log"
		fi
		sleep 0.1
	done
}

stop() { finish_all; }

finish_all() {
	local i
	for ((i = ${#servers[@]} - 1; i >= 0; i--)); do finish "${servers[i]}"; done
}

# finish NAME ends a server with all of its group. Ten seconds are enough to answer what it was asked.
finish() {
	if running "$1"; then
		local leader deadline=$((SECONDS + 10))
		leader=$(cat "$dir/$1.pid")
		kill "$leader"
		while kill -0 -- "-$leader" 2>/dev/null && [ $SECONDS -lt $deadline ]; do sleep 0.1; done
		kill -KILL -- "-$leader" 2>/dev/null || true
	fi
	rm -f "$dir/$1.pid"
}
