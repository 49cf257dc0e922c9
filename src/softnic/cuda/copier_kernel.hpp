#pragma once
/// \file
/// The copier's kernel, as the host starts it.

#include <cuda_runtime_api.h>

#include "softnic/gpu/copy_ring.hpp"

namespace belfry::softnic {
struct BlockCopy;
}

namespace belfry::softnic::cuda {

/// \param shared one, in the GPU's memory
cudaError_t launch_copier(const CopierLaunch& launch, BlockCopy* shared, cudaStream_t stream);

}  // namespace belfry::softnic::cuda
