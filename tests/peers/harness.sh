# Runs unmodified RDMA programs under the software NIC, alone or as server and client over 127.0.0.1.
# Sourced by run.sh. Everything a program prints is kept; on failure all of it is shown.
#
# BELFRY: the belfry program. BELFRY_PEER_SECONDS: how long one run may take (default 60).

readonly seconds=${BELFRY_PEER_SECONDS:-60}
work=$(mktemp -d "${TMPDIR:-/tmp}/peer.XXXXXX")
readonly work
# A fabric of our own: tests that run at the same time do not meet.
fabric="peer-$$"
readonly fabric
background=()

clean_up() {
  local pid
  for pid in "${background[@]}"; do
    kill_program "$pid"
    kill -KILL "$pid" 2>/dev/null
  done
  wait 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT

fail() {
  printf 'FAILED: %s\n' "$*"
  local file
  for file in "$work"/*; do
    [[ -f $file ]] && printf -- '---- %s\n' "${file##*/}" && cat "$file"
  done
  exit 1
}

# need PROGRAM PACKAGE: a program that is missing is a failure, since nothing was shown to work.
need() {
  command -v "$1" >/dev/null && return
  printf 'FAILED: %s is not installed; run: apt-get install %s\n' "$1" "$2"
  exit 1
}

# softnic [belfry softnic options] -- COMMAND: under the deadline; a command that outlives it is killed.
softnic() { timeout --kill-after=5 "$seconds" "$BELFRY" softnic --fabric "$fabric" "$@"; }

# in_background OUTPUT OPTIONS -- COMMAND: the same, and sets started to the process id of its deadline.
in_background() {
  local output=$1
  shift
  exec {log}>"$work/$output"
  timeout --kill-after=5 "$seconds" "$BELFRY" softnic --fabric "$fabric" "$@" >&"$log" 2>&1 &
  started=$!
  background+=("$started")
  exec {log}>&-
}

# kill_program PID: kills what in_background() runs below that deadline.
kill_program() { pkill -KILL -P "$1"; }

# A TCP port that nobody listens at now.
free_port() {
  local port hex
  while :; do
    port=$((20000 + RANDOM % 10000))
    printf -v hex ':%04X ' "$port"
    grep -qs "$hex" /proc/net/tcp /proc/net/tcp6 || break
  done
  echo "$port"
}

# listening PORT: whether some process accepts connections there (state 0A).
listening() {
  local hex
  printf -v hex ':%04X 0+:0000 0A' "$1"
  grep -qsE "$hex" /proc/net/tcp && return
  printf -v hex ':%04X 0{32}:0000 0A' "$1"
  grep -qsE "$hex" /proc/net/tcp6
}

# start_server OPTIONS -- COMMAND: sets port and server; tries another port if one was taken meanwhile.
start_server() {
  local attempt waited
  for attempt in 1 2 3; do
    port=$(free_port)
    in_background server "$@" -p "$port"
    server=$started
    for ((waited = 0; waited < 50 * seconds; ++waited)); do
      listening "$port" && return
      kill -0 "$server" 2>/dev/null || break
      sleep 0.02
    done
    grep -qi 'in use' "$work/server" || break
  done
  fail "the server does not listen: $* -p $port (attempt $attempt)"
}

# pair OPTIONS -- COMMAND: server and client, both must succeed. Output: $work/server, $work/client.
pair() {
  start_server "$@"
  softnic "$@" -p "$port" 127.0.0.1 >"$work/client" 2>&1 || fail "client of: $* (status $?)"
  wait "$server" || fail "server of: $* (status $?)"
  background=()
}

# expect FILE PATTERN [TIMES]: lines that match the extended expression, at least one or exactly TIMES.
expect() {
  local count
  count=$(grep -cE -- "$2" "$work/$1")
  if [[ -n ${3:-} ]]; then
    [[ $count == "$3" ]] || fail "$1: $count lines match '$2', not $3"
  else
    ((count > 0)) || fail "$1: nothing matches '$2'"
  fi
}

# row FILE BYTES ITERATIONS COLUMN: perftest's row of that size has that many iterations and a positive
# number in each column from COLUMN to the last.
row() {
  awk -v bytes="$2" -v iterations="$3" -v from="$4" '
    $1 == bytes && $2 == iterations && NF >= from {
      good = 1
      for (i = from; i <= NF; ++i) if (!($i + 0 > 0)) good = 0
      found += good
    }
    END { exit found != 1 }' "$work/$1" || fail "$1: no full row for $2 bytes and $3 iterations"
}
