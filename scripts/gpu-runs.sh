# What the scripts that measure on GPUs share; sourced by them, from the root of the tree, with OUT set: where records go.
# BELFRY_BUILD=DIR uses that build (bin/ and lib/ below it) in place of building one; BELFRY_QUICK=1: few iterations.
out=$(realpath -m "$OUT")
mkdir -p "$out"
failed=0
quick=()
[[ -n ${BELFRY_QUICK:-} ]] && quick=(--quick)

if [[ -z ${BELFRY_BUILD:-} ]]; then
  cmake --preset release &&
    cmake --build build/release --target belfry belfry-softnic-cuda gpu_conformance_tests examples || exit 1
  BELFRY_BUILD=build/release
fi
bin=$BELFRY_BUILD/bin
# A kernel's first launch would wait for kernels that wait for it.
export CUDA_MODULE_LOADING=EAGER

run() { # NAME SECONDS COMMAND...
  local name=$1 seconds=$2 begin=$SECONDS
  shift 2
  echo "=== $name: $*"
  if ! timeout "$seconds" "$@" >"$out/$name.txt" 2>&1; then
    failed=1
    echo "FAILED ($?): $name"
  fi
  tail -n "${TAIL:-60}" "$out/$name.txt"
  echo "--- $name took $((SECONDS - begin)) s"
}
bench() { # NAME SECONDS EXPERIMENT ARGUMENTS...
  local name=$1 seconds=$2
  shift 2
  run "$name" "$seconds" "$bin/belfry" bench "$@" --nic soft --lanes cuda "${quick[@]}" --json "$out/$name.jsonl"
}
example() { # NAME PATH ARGUMENTS...: an example checks its payload itself
  local name=$1 path=$2
  shift 2
  run "example-$name-$path" 20 "$bin/belfry" softnic --fabric "gpu-$name-$path" -- "$bin/examples/$name" --nic soft \
    --lanes cuda "$@"
}
finish() {
  [[ -n ${BELFRY_KEEP_TEXT:-} ]] || rm -f "$out"/*.txt
  exit $failed
}
