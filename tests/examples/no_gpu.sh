#!/usr/bin/env bash
# Expects a command to fail for want of a GPU, and to say what to do. Skips (77) where there is one.
#   no_gpu.sh COMMAND...
[[ ! -e /dev/nvidia0 ]] || { echo "skipped: there is a GPU"; exit 77; }
out=$("$@" 2>&1) && { echo "succeeded: $out"; exit 1; }
echo "$out"
grep -qE 'belfry doctor gpu|built without nvcc' <<<"$out"
