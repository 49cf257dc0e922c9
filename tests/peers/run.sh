#!/usr/bin/env bash
# run.sh CASE [ARGUMENTS]: one program of Debian's, unmodified, under the software NIC; checks what it
# prints, not only its status. CMakeLists.txt lists the cases.
set -uo pipefail
: "${BELFRY:?set BELFRY to the belfry program}"
# shellcheck source=harness.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/harness.sh"

# Guards against devices that are found but not counted, named or addressed as configured.
case_devices() {
  need ibv_devices ibverbs-utils
  softnic --devices 3 --node 2 -- ibv_devices >"$work/out" 2>&1 || fail "ibv_devices (status $?)"
  expect out '^ *mlx5_[0-9]+' 3
  for index in 0 1 2; do expect out "^ *mlx5_$index[[:space:]]+00be1ffffe00020$index\$" 1; done
}

# Guards against attributes that sysfs and the device's own commands state differently.
case_devinfo_infiniband() {
  need ibv_devinfo ibverbs-utils
  softnic -- ibv_devinfo -v >"$work/out" 2>&1 || fail "ibv_devinfo (status $?)"
  expect out '^hca_id:[[:space:]]+mlx5_0$' 1
  expect out 'transport:[[:space:]]+InfiniBand \(0\)' 1
  expect out 'node_guid:[[:space:]]+00be:1fff:fe00:0000' 1
  expect out 'sys_image_guid:[[:space:]]+00be:1fff:fe00:0000' 1
  expect out 'vendor_id:[[:space:]]+0x02c9' 1
  expect out 'vendor_part_id:[[:space:]]+4129' 1
  expect out 'fw_ver:[[:space:]]+28\.39\.1002' 1
  expect out 'board_id:[[:space:]]+BELFRY_SOFTNIC' 1
  expect out 'phys_port_cnt:[[:space:]]+1' 1
  expect out 'max_qp:[[:space:]]+16384' 1
  expect out 'max_qp_rd_atom:[[:space:]]+16' 1
  expect out 'atomic_cap:[[:space:]]+ATOMIC_HCA' 1
  expect out 'state:[[:space:]]+PORT_ACTIVE \(4\)' 1
  expect out 'max_mtu:[[:space:]]+4096 \(5\)' 1
  expect out 'active_mtu:[[:space:]]+4096 \(5\)' 1
  expect out 'port_lid:[[:space:]]+1$' 1
  expect out 'link_layer:[[:space:]]+InfiniBand' 1
  expect out 'max_msg_sz:[[:space:]]+0x40000000' 1
  expect out 'GID\[ *0\]:[[:space:]]+fe80:0000:0000:0000:00be:1fff:fe00:0000' 1
  expect out 'GID\[' 1
}

# Guards against a path MTU that does not follow from the netdev's as the kernel derives it, and against
# a GID table without its types.
case_devinfo_ethernet() {
  need ibv_devinfo ibverbs-utils
  local netdev path
  while read -r netdev path; do
    softnic --link eth --mtu "$netdev" -- ibv_devinfo -v >"$work/out" 2>&1 || fail "ibv_devinfo (status $?)"
    expect out "active_mtu:[[:space:]]+$path \\(" 1
  done <<<$'1500 1024\n2200 2048\n4200 4096'
  expect out 'link_layer:[[:space:]]+Ethernet' 1
  expect out 'port_lid:[[:space:]]+0$' 1
  expect out 'GID\[ *0\]:[[:space:]]+fe80:0000:0000:0000:00be:1fff:fe00:0000, RoCE v1' 1
  expect out 'GID\[ *1\]:[[:space:]]+fe80::be:1fff:fe00:0, RoCE v2' 1
  expect out 'GID\[ *2\]:[[:space:]]+0000:0000:0000:0000:0000:ffff:0a42:0001, RoCE v1' 1
  expect out 'GID\[ *3\]:[[:space:]]+::ffff:10\.66\.0\.1, RoCE v2' 1
  expect out 'GID\[' 4
}

# pingpong LINK [ARGUMENTS]. Guards against SEND and RECV that lose, cut or (with -c) spoil messages.
case_pingpong() {
  local link=$1 iterations=500 size=4096
  shift
  need ibv_rc_pingpong ibverbs-utils
  pair --link "$link" -- ibv_rc_pingpong -n "$iterations" -s "$size" "$@"
  for side in server client; do
    expect "$side" "^$((2 * iterations * size)) bytes in .* = .* Mbit/sec" 1
    expect "$side" "^$iterations iters in .* = .* usec/iter" 1
    expect "$side" 'invalid|Failed|mismatch' 0
  done
}

# latency LINK PROGRAM [ARGUMENTS]. Guards against operations that do not end, or are not all counted.
case_latency() {
  local link=$1 program=$2 bytes=8
  shift 2
  need "$program" perftest
  [[ $program == ib_atomic_lat ]] || set -- -s "$bytes" "$@"
  pair --link "$link" -- "$program" -F -n 1000 "$@"
  row client "$bytes" 1000 3
  common_header "$link"
}

# bandwidth LINK PROGRAM QPS [ARGUMENTS]
case_bandwidth() {
  local link=$1 program=$2 qps=$3 bytes=65536
  shift 3
  need "$program" perftest
  if [[ $program == ib_atomic_bw ]]; then bytes=8; else set -- -s "$bytes" "$@"; fi
  pair --link "$link" -- "$program" -F -n 1000 -q "$qps" "$@"
  row client "$bytes" $((1000 * qps)) 4
  expect client "Number of qps *: $qps[[:space:]]" 1
  common_header "$link"
}

# Guards against sizes that fail where a request changes form: inline, one packet, several packets, more
# than a queue's worth of packets.
case_every_size() {
  local program=$1 power
  need "$program" perftest
  pair -- "$program" -F -a -n 200
  for ((power = 1; power <= 23; ++power)); do row client $((1 << power)) 200 4; done
}

common_header() {
  local type=IB
  [[ $1 == eth ]] && type=Ethernet
  for side in server client; do
    expect "$side" "Link type *: $type" 1
    expect "$side" 'Completion with error|Failed|Couldn.t|Unable' 0
  done
}

# Guards against a client that waits for ever for a peer that was killed, and against anything that the
# killed process leaves behind.
case_killed_server() {
  need ib_write_bw perftest
  start_server -- ib_write_bw -F -D 30
  in_background client -- ib_write_bw -F -D 30 -p "$port" 127.0.0.1
  client=$started
  sleep 3
  kill -0 "$client" 2>/dev/null || fail "the client ended before the server was killed"
  kill_program "$server" || fail "no server to kill"
  local status=0
  wait "$client" || status=$?
  [[ $status != 0 ]] || fail "the client says that all went well"
  [[ $status != 124 && $status != 137 ]] || fail "the client hangs (status $status)"
  expect client 'retry counter exceeded|Failed status 12|status 12'
  local left
  left=$(find /dev/shm /tmp /var/tmp -maxdepth 1 -name '*belfry*' -newer "$work/server" 2>/dev/null)
  [[ -z $left ]] || fail "left behind: $left"
}

name=$1
shift
declare -F "case_$name" >/dev/null || fail "no such case: $name"
"case_$name" "$@"
printf 'ok: %s %s\n' "$name" "$*"
