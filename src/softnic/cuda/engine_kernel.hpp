#pragma once
/// \file
/// The engine's kernel, as the host starts it.

#include <cuda_runtime_api.h>

#include <cstddef>

#include "softnic/cuda/engine_types.hpp"

namespace belfry::softnic::cuda {

/// Copies tables that fit to constant memory, in the stream's order; the sources are pinned.
bool upload_constants(const GpuQueuePair* queues, std::size_t queue_count, const MkeyEntry* keys,
                      std::size_t key_count, cudaStream_t stream);

/// \param blocks, warps of the grid; no more than 32 queues a warp
cudaError_t launch_engine(const EngineParameters& parameters, unsigned blocks, unsigned warps,
                          cudaStream_t stream);

}  // namespace belfry::softnic::cuda
