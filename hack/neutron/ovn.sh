#!/usr/bin/env bash
# OVN on one host, with the packets of Open vSwitch in user space: no kernel module is needed. Wants root for the tap devices, which
# are in a network namespace of the switch: folders do not meet there, and the devices end with it.
#   ovn.sh install | start DIR | stop DIR
# and, to be the machine behind a port of Neutron that is bound to this host: a network namespace of its own, without an address yet
#   ovn.sh plug DIR NAMESPACE PORT_ID MAC
#   ovn.sh unplug DIR NAMESPACE PORT_ID
set -euo pipefail
source "$(dirname "$0")/process.sh"
packages=(openvswitch-switch ovn-central ovn-host iproute2 ethtool busybox) # busybox has udhcpc and ping
servers=(ovsdb northdb southdb vswitchd northd controller)

start() {
	unshare --net ip tuntap add dev probe mode tap ||
		fail "no OVN on this machine: no network namespace or no tap device (/dev/net/tun) can be made"
	port OVN_NORTH_PORT
	port OVN_SOUTH_PORT
	folders
	mkdir -p "$run/plugged"
	database conf /usr/share/openvswitch/vswitch.ovsschema
	database north /usr/share/ovn/ovn-nb.ovsschema
	database south /usr/share/ovn/ovn-sb.ovsschema
	spawn ovsdb ovsdb-server "$run/conf.db" --remote=punix:"$run/db.sock" --unixctl="$run/ovsdb.ctl"
	spawn northdb ovsdb-server "$run/north.db" --remote=ptcp:"$OVN_NORTH_PORT":127.0.0.1 --unixctl="$run/northdb.ctl"
	spawn southdb ovsdb-server "$run/south.db" --remote=ptcp:"$OVN_SOUTH_PORT":127.0.0.1 --unixctl="$run/southdb.ctl"
	local north=tcp:127.0.0.1:$OVN_NORTH_PORT south=tcp:127.0.0.1:$OVN_SOUTH_PORT
	await ovsdb vsctl --no-wait init
	await northdb ovn-nbctl --db="$north" init
	vsctl --no-wait set open . external-ids:system-id=host external-ids:hostname="$(hostname)" external-ids:ovn-remote="$south" \
		external-ids:ovn-encap-type=geneve external-ids:ovn-encap-ip=127.0.0.1 external-ids:ovn-bridge-datapath-type=netdev \
		external-ids:ovn-cms-options=enable-chassis-as-gw
	spawn vswitchd unshare --net ovs-vswitchd "unix:$run/db.sock" --unixctl="$run/vswitchd.ctl"
	spawn northd ovn-northd --ovnnb-db="$north" --ovnsb-db="$south" --unixctl="$run/northd.ctl"
	spawn controller ovn-controller "unix:$run/db.sock"
	await controller registered "$south"
	await vswitchd bridged
	record OVN_DIR "$dir"
	record OVN_NORTH "$north"
	record OVN_SOUTH "$south"
}

stop() {
	folders
	finish_all
	local namespace
	for namespace in "$run"/plugged/*; do withdraw "${namespace##*/}"; done
}

folders() {
	run=$dir/ovn
	export OVS_RUNDIR=$run OVN_RUNDIR=$run OVS_LOGDIR=$run OVN_LOGDIR=$run OVS_DBDIR=$run
}

database() {
	if [ ! -e "$run/$1.db" ]; then ovsdb-tool create "$run/$1.db" "$2"; fi
}

vsctl() { ovs-vsctl --timeout=10 --db="unix:$run/db.sock" "$@"; }

registered() { ovn-sbctl --timeout=10 --db="$1" --bare --columns=name find chassis | grep -q host; }

# bridged says whether the switch has made the bridge that the controller asked for.
bridged() { vsctl get bridge br-int datapath_id | grep -q '"'; }

device() { echo "v${1:0:8}"; }

plug() {
	local device switch
	device=$(device "$2") switch=$(cat "$dir/vswitchd.pid")
	ip netns add "$1"
	touch "$run/plugged/$1"
	ip link add "$device" netns "$switch" type veth peer name eth0 netns "$1"
	ip netns exec "$1" ip link set lo up
	ip netns exec "$1" ip link set eth0 address "$3" up
	# The kernel leaves checksums to a device that is not there.
	ip netns exec "$1" ethtool -K eth0 tx off >/dev/null
	nsenter --target "$switch" --net ip link set "$device" up
	vsctl --may-exist add-port br-int "$device" -- set interface "$device" external_ids:iface-id="$2"
}

# unplug takes away what plug made, also where that did not come to its end.
unplug() {
	vsctl --if-exists del-port br-int "$(device "$2")"
	withdraw "$1"
}

# withdraw removes the namespace, if plug made it; the device goes along.
withdraw() {
	[ -e "$run/plugged/$1" ] || return 0
	ip netns del "$1"
	rm "$run/plugged/$1"
}

case "${1:-} $#" in
"plug 5" | "unplug 4")
	dir=$(cd "$2" && pwd)
	folders
	"$1" "${@:3}"
	;;
*) main "$@" ;;
esac
