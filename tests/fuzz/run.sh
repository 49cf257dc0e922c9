#!/usr/bin/env bash
# run.sh HARNESS REPLAY FOLDER: fresh seeds into FOLDER/corpus, then libFuzzer for BELFRY_FUZZ_SECONDS.
# A crashing input is left in FOLDER; `REPLAY FILE` reproduces it.
set -euo pipefail
harness=$1 replay=$2 folder=$3
seconds=${BELFRY_FUZZ_SECONDS:-60}

rm -rf "$folder"/corpus "$folder"/{crash,leak,oom,timeout}-*
mkdir -p "$folder/corpus"
"$replay" --seeds "$folder/corpus"
status=0
"$harness" -seed=1 -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
  -print_final_stats=1 -verbosity=1 -artifact_prefix="$folder/" "$folder/corpus" </dev/null || status=$?
# Where only the log is kept, the log has the input.
for input in "$folder"/{crash,leak,oom,timeout}-*; do
  [[ $status != 0 && -f $input ]] || continue
  printf '\n%s\nas base64 of gzip:\n' "$input"
  gzip -9 <"$input" | base64 -w 0
  printf '\n'
done
exit "$status"
