#!/usr/bin/env bash
# Compiles the suite's kernels and compares what each takes of a multiprocessor with a budget; no GPU is needed.
#   registers.sh NVCC SOURCE-DIR INCLUDE-DIR... ; budgets below, one a line: FILE PATTERN REGISTERS STACK SPILLED
# STACK and SPILLED in bytes, SPILLED of the kernel without the functions that it calls.
# A kernel is under the first line whose pattern is in its name. A budget without a kernel fails too.
set -uo pipefail
nvcc=$1 source=$2
shift 2
includes=(-I"$source/src" -I"$source/include")
for folder; do includes+=(-I"$folder"); done
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

# The callers of `residency` keep to the blocks that they have alone (8 of 32 registers, 6 of 40): with communication
# called, the stack holds their values and what the code that sends needs, while it sends. More than a few bytes that
# the compiler spills by itself are values that it reloads in every round. Inlined, 4 blocks
# are left, and the streaming caller spills a few bytes.
# The NIC's engine keeps its queues in registers: a function of it that is called and not inlined would put them on the stack.
budgets='
copier_kernel.cu . 64 0 0
engine_kernel.cu . 255 0 0
residency_cuda.cu run_residency<8u 32 160 24
residency_cuda.cu run_residency<6u 40 160 24
residency_cuda.cu NoTalk 40 0 0
residency_cuda.cu run_residency<4u 64 24 24
residency_cuda.cu . 64 0 0
litmus_cuda.cu . 128 0 0
cuda_runner.cu LoadedKernel 128 0 0
cuda_runner.cu BurstKernel 64 0 0
cuda_runner.cu PutKernel 96 0 0
cuda_runner.cu . 128 0 0'

status=0
for file in copier_kernel.cu engine_kernel.cu residency_cuda.cu litmus_cuda.cu cuda_runner.cu; do
  if ! "$nvcc" -std=c++20 -O3 -arch=sm_90 -cubin -Xptxas -v "${includes[@]}" "$(find "$source/src" -name "$file")" \
      -o "$work/cubin" 2>"$work/log"; then
    cat "$work/log"
    exit 1
  fi
  # One line a kernel: registers, stack, spilled, name.
  c++filt <"$work/log" | awk '
    /Compiling entry function/ { split($0, part, "\047"); entry = part[2] }
    /Function properties for/ { sub(/.*Function properties for /, ""); name = $0 }
    /bytes stack frame/ && index(entry, name) == 1 { stack = $1; spilled = $5 }
    /Used [0-9]+ registers/ {
      match($0, /Used [0-9]+/)
      print substr($0, RSTART + 5, RLENGTH - 5), stack, spilled, entry
    }' >"$work/kernels"
  grep -F "$file " <<<"$budgets" >"$work/budgets"
  awk -v file="$file" '
    NR == FNR { pattern[NR] = $2; registers[NR] = $3; stack[NR] = $4; spilled[NR] = $5; lines = NR; next }
    {
      kernel = $0
      sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", kernel)
      for (i = 1; i <= lines; ++i)
        if (pattern[i] == "." || index(kernel, pattern[i])) break
      ++seen[i]
      if ($1 > most[i]) most[i] = $1
      if ($1 > registers[i] || $2 > stack[i] || $3 > spilled[i]) {
        printf "%s: %d registers, %d B of stack, %d B spilled, of %d, %d and %d: %s\n", file, $1, $2, $3, registers[i],
          stack[i], spilled[i], kernel
        failed = 1
      }
    }
    END {
      for (i = 1; i <= lines; ++i) {
        printf "%s %s: %d kernels, at most %d registers of %d\n", file, pattern[i], seen[i], most[i], registers[i]
        if (!seen[i]) { print "  a budget that no kernel is under"; failed = 1 }
      }
      exit failed
    }' "$work/budgets" "$work/kernels" || status=1
done
exit $status
