#!/usr/bin/env bash
# Runs a command where there is a GPU, and skips (77) elsewhere.
#   on_gpu.sh COMMAND...
[[ -e /dev/nvidia0 ]] || { echo "skipped: no GPU"; exit 77; }
exec "$@"
