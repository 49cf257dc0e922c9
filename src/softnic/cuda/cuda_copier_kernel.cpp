/// \file
/// The copier's kernel: its memory, its stream and its launches.

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <stdexcept>

#include "softnic/cuda/copier_kernel.hpp"
#include "softnic/cuda/cuda_failure.hpp"
#include "softnic/gpu/copy_serving.hpp"
#include "softnic/gpu/gpu_copier.hpp"

namespace belfry::softnic::cuda {

namespace {

constexpr std::chrono::milliseconds kLongestStart{100};

class CudaCopierKernel final : public GpuCopierKernel {
 public:
  explicit CudaCopierKernel(int gpu) : gpu_(gpu) {
    const Current current(gpu_);
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "the copier's stream");
    // Freed with the process: CUDA would wait for all kernels.
    void* raw = nullptr;
    check(cudaHostAlloc(&raw, sizeof(CopyRing), cudaHostAllocPortable), "pinned memory for the copier");
    std::memset(raw, 0, sizeof(CopyRing));
    ring_ = static_cast<CopyRing*>(raw);
    check(cudaMalloc(&raw, sizeof(BlockCopy)), "GPU memory for the copier");
    shared_ = static_cast<BlockCopy*>(raw);
    // The kernel is loaded with its first launch, which has to wait for whatever runs: so it comes here,
    // before there is anything that waits for a copy. This one leaves at once, and is of no number.
    CopierLaunch first;
    first.launch = 0;
    if (!launch(first)) throw std::runtime_error(error_);
    const auto begin = std::chrono::steady_clock::now();
    // On a GPU that is full it stays due: until it has run CUDA copies.
    while (!is_over() && std::chrono::steady_clock::now() - begin < kLongestStart) {
    }
  }

  CopyRing& ring() override { return *ring_; }

  bool launch(const CopierLaunch& launch) override {
    return succeeds(error_, [&] {
      const Current current(gpu_);
      CopierLaunch whole = launch;
      whole.ring = ring_;
      check(launch_copier(whole, shared_, stream_), "launching the copier");
    });
  }

  bool is_over() override {
    const Current current(gpu_);
    return cudaStreamQuery(stream_) != cudaErrorNotReady;
  }

  std::string error() const override { return error_; }

 private:
  const int gpu_;
  cudaStream_t stream_ = nullptr;
  CopyRing* ring_ = nullptr;
  BlockCopy* shared_ = nullptr;
  std::string error_;
};

}  // namespace

}  // namespace belfry::softnic::cuda

extern "C" __attribute__((visibility("default"))) belfry::softnic::GpuCopierKernel*
belfry_softnic_make_gpu_copier_kernel(int gpu, char* error, std::size_t error_bytes) {
  return belfry::softnic::cuda::make_or_say<belfry::softnic::cuda::CudaCopierKernel>(gpu, error, error_bytes);
}
