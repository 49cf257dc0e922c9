#pragma once
/// \file
/// launch_on_gpu(), for the launch.cu that CMake makes for each example.

#include <cuda_runtime.h>

#include <string>

#include "belfry/host/errors.hpp"
#include "common/gpu.hpp"

namespace belfry::examples {

template <class Kernel>
__global__ void run_kernel(const __grid_constant__ Kernel kernel) {
  kernel();
}

inline void check_cuda(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  throw host::Error(host::ErrorKind::unsupported, std::string(what) + ": " + cudaGetErrorString(code),
                    "`belfry doctor gpu` says more");
}

/// On a stream of its own: the kernels of several PEs wait for each other, and must run at the same time.
template <class Kernel>
void launch_on_gpu(int gpu, std::uint32_t blocks, std::uint32_t threads, const Kernel& kernel) {
  check_cuda(cudaSetDevice(gpu), "the PE's GPU");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a CUDA stream");
  run_kernel<<<blocks, threads, 0, stream>>>(kernel);
  cudaError_t code = cudaGetLastError();
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  check_cuda(code, "the kernel");
}

}  // namespace belfry::examples
