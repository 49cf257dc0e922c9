#!/usr/bin/env bash
# Checks and measures what runs between two GPUs of one host, within 5 minutes, and leaves one file of records an
# experiment and placement.
#
#   scripts/h200-x2.sh [OUT]     OUT: where records go (default results/h200-x2)
#   BELFRY_BUILD=DIR             use this build (bin/ and lib/ below it) in place of building one
#   BELFRY_QUICK=1               few iterations: shows that it works
#
# Placements: `one`, both PEs and the engine on GPU 0; `two`, PE 0 and its engine on GPU 0, PE 1 and its own on GPU 1;
# `away`, both PEs on GPU 0 and the engine on GPU 1, which polls and fetches over NVLink. The NIC is the software
# ConnectX: the records say so.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
OUT=${1:-results/h200-x2}
source scripts/gpu-runs.sh

at() { # PLACEMENT NAME SECONDS EXPERIMENT ARGUMENTS...
  local placement=$1 name=$2-$1 gpus=0
  shift 2
  [[ $placement == two ]] && gpus=0,1
  if [[ $placement == away ]]; then
    BELFRY_SOFTNIC_GPU=1 bench "$name" "$@" --gpus $gpus
  else
    bench "$name" "$@" --gpus $gpus
  fi
}

run check 90 "$bin/gpu_conformance_tests" --gtest_brief=1
BELFRY_SOFTNIC_GPU=1 run check-engine-away 90 "$bin/gpu_conformance_tests" --gtest_brief=1
BELFRY_SOFTNIC_GPU_POLL=record run check-record 60 "$bin/gpu_conformance_tests" --gtest_brief=1 --gtest_filter='TwoGpus*'
for path in gda proxy; do
  example 02_ping_pong $path --path $path --gpus 0,1
  example 03_dispatch_combine $path --path $path --pes 4 --warps 3 --gpus 0,1
  example 04_halo_exchange $path --path $path --pes 4 --gpus 0,1
done

ops=fence,gda-value,gda-value-no-record,gda-inline,gda-pointer,gda-system-release,gda-value-shared
rates=t1-q1-s1-w16,t32-q1-s1-w32-warp,t32-q1-s1-w32-warp-no-record,t512-q16-s16-w32-warp,t512-q16-s16-w32-warp-no-record
rates+=,t2048-q64-s64-w32-warp,t2048-q64-s64-w32-warp-no-record
sizes=gda-4096,gda-8192,gda-16384,gda-65536,gda-262144,gda
orderings=none,none-no-record,gpu-fence-no-record,gpu-release,gpu-release-no-record,system-release
for placement in one two away; do
  for poll in doorbell record; do
    BELFRY_SOFTNIC_GPU_POLL=$poll at $placement op-$poll 20 op --arms $ops --passes 5 --iterations 2000
  done
  export BELFRY_SOFTNIC_GPU_POLL=record BELFRY_SOFTNIC_GPU_WRITES=unordered
  at $placement rate-unordered 30 rate --arms $rates --passes 3 --iterations 1000000
  BELFRY_SOFTNIC_GPU_BLOCKS=4 at $placement rate-unordered-4-blocks 30 rate --arms $rates --passes 3 --iterations 1000000
  unset BELFRY_SOFTNIC_GPU_POLL BELFRY_SOFTNIC_GPU_WRITES
  BELFRY_SOFTNIC_GPU_BLOCKS=16 at $placement goodput-64-queues 20 goodput --arms $sizes --qps 64 --megabytes 512 --passes 3
  export BELFRY_SOFTNIC_GPU_WRITES=unordered
  at $placement litmus-doorbell 45 litmus --arms $orderings --passes 1 --iterations 8000000
  BELFRY_SOFTNIC_GPU_POLL=record at $placement litmus-record 45 litmus --arms $orderings --passes 1 --iterations 8000000
  unset BELFRY_SOFTNIC_GPU_WRITES
done
residency=compute-b8-absent,compute-b8-gda-separate-dormant,compute-b8-gda-separate-send,compute-b8-gda-separate-wait
residency+=,compute-b4-absent,compute-b4-gda-inlined-send,compute-b4-gda-inlined-wait
residency+=,streaming-b4-absent,streaming-b4-gda-separate-send,streaming-b4-gda-separate-wait
for placement in one away; do
  at $placement residency 40 residency --arms $residency --passes 3
done
finish
