#!/usr/bin/env bash
# run.sh HARNESS REPLAY FOLDER: fresh seeds into FOLDER/corpus, then libFuzzer for BELFRY_FUZZ_SECONDS.
# A crashing input is left in FOLDER; `REPLAY FILE` reproduces it.
set -euo pipefail
harness=$1 replay=$2 folder=$3
seconds=${BELFRY_FUZZ_SECONDS:-60}

rm -rf "$folder/corpus"
mkdir -p "$folder/corpus"
"$replay" --seeds "$folder/corpus"
exec "$harness" -seed=1 -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
  -print_final_stats=1 -verbosity=1 -artifact_prefix="$folder/" "$folder/corpus" </dev/null
