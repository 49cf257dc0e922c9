#!/bin/sh
# processes.sh BELFRY EXAMPLE PROCESSES [OPTIONS]: runs an example as so many processes on one fabric. Rank 0 takes a free
# port and prints it, so that no two tests want the same one.
set -eu
belfry=$1 example=$2 processes=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/out"
softnic() { "$belfry" softnic --fabric "examples-processes-$$" -- "$@"; }

softnic "$example" --nic soft --rank 0 --size "$processes" --root 127.0.0.1:0 "$@" >"$work/out" &
first=$!
exec 3<"$work/out"
IFS= read -r line <&3
address=${line##* }
cat <&3 &

others=
rank=1
while [ "$rank" -lt "$processes" ]; do
  softnic "$example" --nic soft --rank "$rank" --size "$processes" --root "$address" "$@" &
  others="$others $!"
  rank=$((rank + 1))
done
failed=0
for process in $first $others; do wait "$process" || failed=1; done
exit "$failed"
