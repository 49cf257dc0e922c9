/// \file
/// KernelRunner on a GPU.

#include "bench/cuda_launcher.cuh"
#include "bench/kernels/runner_of.hpp"

namespace belfry::bench {

std::unique_ptr<KernelRunner> make_cuda_runner() { return std::make_unique<RunnerOf<CudaLauncher>>(); }

}  // namespace belfry::bench
