#!/usr/bin/env bash
# Builds, checks and measures what runs on a GPU, within 9 minutes, and leaves one file of records an experiment.
#
#   scripts/h200.sh [OUT]        OUT: where records go (default results/h200)
#   BELFRY_BUILD=DIR             use this build (bin/ and lib/ below it) in place of building one
#   BELFRY_QUICK=1               few iterations: shows that it works
#
# The NIC is the software ConnectX with its engine on the same GPU: the records say so.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
OUT=${1:-results/h200}
source scripts/gpu-runs.sh

run check 120 "$bin/gpu_conformance_tests" --gtest_brief=1
example 01_put_and_wait gda --bytes 1000003
for path in gda proxy; do
  example 02_ping_pong $path --path $path
  example 03_dispatch_combine $path --path $path --pes 4 --warps 3
  example 04_halo_exchange $path --path $path --pes 4
done
export BELFRY_SOFTNIC_GPU_POLL=doorbell
bench op-doorbell 60 op --passes 5 --iterations 5000
# A test option: doorbells that do not cross PCIe.
BELFRY_SOFTNIC_GPU_DOORBELLS=gpu bench op-gpu-doorbell 30 op --arms gda-value,gda-value-no-record,gda-inline,gda-value-shared,gda-value-shared-no-record,gda-value-locked,fence --passes 5 --iterations 5000
bench op-host-cq 30 op --arms gda-inline,gda-value,gda-gpu-fence-no-record --completions host --passes 5 --iterations 5000
# Queues in host memory are the CPU's NIC's.
bench op-host-queue 30 op --arms gda-system-release,gda-system-fence --send-queue host --passes 5 --iterations 5000
bench op-host-record 30 op --arms gda-system-release,gda-system-fence --record host --passes 5 --iterations 5000
bench rate 60 rate --iterations 400000 --passes 3
BELFRY_SOFTNIC_GPU_WRITES=unordered bench rate-unordered 30 rate --iterations 400000 --passes 3
BELFRY_SOFTNIC_GPU_WRITES=unordered bench litmus-doorbell 40 litmus --iterations 3000000
export BELFRY_SOFTNIC_GPU_POLL=record
bench op-record 60 op --passes 5 --iterations 5000
BELFRY_SOFTNIC_GPU_WRITES=unordered bench rate-record-unordered 30 rate --iterations 400000 --passes 3
BELFRY_SOFTNIC_GPU_WRITES=unordered BELFRY_SOFTNIC_GPU_BLOCKS=4 bench rate-record-unordered-4-blocks 30 rate --iterations 400000 --passes 3
BELFRY_SOFTNIC_GPU_WRITES=unordered bench litmus-record 40 litmus --iterations 3000000
unset BELFRY_SOFTNIC_GPU_POLL
# mini-proxy, whose NIC is the CPU's.
bench handoff 40 handoff --iterations 2000000
bench handoff-4-readers 20 handoff --iterations 2000000 --readers 4 --arms tuned-r4,tuned-r16,tuned-rings
bench proxy-rate 40 proxy-rate
bench proxy-state 60 proxy-state --idle-ms 1000 --load-ms 300
# The same with its windows in GPU memory, which that NIC copies.
bench op-gpu-windows 30 op --arms gda-value,proxy-tuned,proxy-tuned-value --window gpu --passes 3 --iterations 2000
bench goodput-gpu-windows 40 goodput --arms proxy-4096,proxy-65536,proxy-1048576,proxy --window gpu
# Both.
bench loaded 60 loaded --background 64 --queues 32 --workers 4
bench payload 30 payload
bench goodput 40 goodput
bench goodput-16-queues 40 goodput --qps 16
bench residency 60 residency
# mini-gda.
bench scope 30 scope --iterations 2000
bench inline 40 inline --qps 16 --iterations 1000
bench publication 40 publication
# A thousand million writes of each ordering: by whole warps, and with an engine that keeps up with them. Last, for it
# takes longest.
export BELFRY_SOFTNIC_GPU_POLL=record BELFRY_SOFTNIC_GPU_WRITES=unordered BELFRY_SOFTNIC_GPU_BLOCKS=8
bench litmus-warps-record 260 litmus --post-as warp --iterations 500000000
finish
