/// \file
/// The copier's kernel: one block.

#include "softnic/cuda/copier_kernel.hpp"
#include "softnic/gpu/copy_serving.hpp"

namespace belfry::softnic::cuda {

namespace {

constexpr unsigned kThreads = 256;
/// A fourth of a multiprocessor's registers: it has to fit beside what else runs.
constexpr unsigned kRegisterShare = 4;

__global__ void __launch_bounds__(kThreads, kRegisterShare)
    copier_kernel(const __grid_constant__ CopierLaunch launch, BlockCopy* shared) {
  CopyServer(launch, shared).run();
}

}  // namespace

cudaError_t launch_copier(const CopierLaunch& launch, BlockCopy* shared, cudaStream_t stream) {
  copier_kernel<<<1, kThreads, 0, stream>>>(launch, shared);
  return cudaGetLastError();
}

}  // namespace belfry::softnic::cuda
