/// \file
/// The engine's kernel.

#include "softnic/cuda/engine_doorbells.cuh"
#include "softnic/cuda/engine_general.cuh"
#include "softnic/cuda/engine_hot.cuh"
#include "softnic/cuda/engine_kernel.hpp"
#include "softnic/cuda/engine_serving.cuh"

namespace belfry::softnic::cuda {

namespace {

template <bool constant>
__global__ void __launch_bounds__(kMostWarps* kWarpSize, 1)
    engine_kernel(const __grid_constant__ EngineParameters p) {
  EngineWarp<constant>(p).run();
}

}  // namespace

bool upload_constants(const GpuQueuePair* queues, std::size_t queue_count, const MkeyEntry* keys,
                      std::size_t key_count, cudaStream_t stream) {
  const auto kind = cudaMemcpyHostToDevice;
  if (queue_count != 0 && cudaMemcpyToSymbolAsync(constant_queues, queues, queue_count * sizeof *queues, 0,
                                                  kind, stream) != cudaSuccess)
    return false;
  return key_count == 0 || cudaMemcpyToSymbolAsync(constant_keys, keys, key_count * sizeof *keys, 0, kind,
                                                   stream) == cudaSuccess;
}

cudaError_t launch_engine(const EngineParameters& p, unsigned blocks, unsigned warps, cudaStream_t stream) {
  const bool constant = p.slots <= kConstantQueues && p.key_rows <= kConstantKeys;
  if (constant) {
    engine_kernel<true><<<blocks, warps * kWarpSize, 0, stream>>>(p);
  } else {
    engine_kernel<false><<<blocks, warps * kWarpSize, 0, stream>>>(p);
  }
  return cudaGetLastError();
}

}  // namespace belfry::softnic::cuda
