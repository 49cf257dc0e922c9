/// \file
/// KernelRunner on a GPU.

#include "bench/cuda_launcher.cuh"
#include "bench/kernels/runner_of.hpp"

namespace belfry::bench {

std::unique_ptr<KernelRunner> make_cuda_runner(int gpu) {
  return std::make_unique<RunnerOf<CudaLauncher>>(gpu);
}

}  // namespace belfry::bench
