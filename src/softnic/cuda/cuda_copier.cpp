/// \file
/// Copies of GPU memory by CUDA's calls, awaited by a thread that spins.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "softnic/cuda/cuda_failure.hpp"
#include "softnic/gpu/gpu_copier.hpp"

namespace belfry::softnic::cuda {

namespace {

constexpr std::chrono::seconds kLongestCopy{10};

/// Of all GPUs' copiers. It stays: CUDA may be gone before they are.
unsigned char* shared_staging() {
  static unsigned char* const memory = [] {
    void* raw = nullptr;
    check(cudaHostAlloc(&raw, kGpuStagingBytes, cudaHostAllocPortable), "pinned memory for copies");
    return static_cast<unsigned char*>(raw);
  }();
  return memory;
}

/// The driver's function, or null: what a pointer is of, at once. It takes no lock that a call has while it
/// waits for kernels.
auto pointer_attributes() {
  using Function = CUresult (*)(unsigned, CUpointer_attribute*, void**, CUdeviceptr);
  static const auto function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &found, 7000, cudaEnableDefault,
                                         &result) != cudaSuccess) {
      cudaGetLastError();
      found = nullptr;
    }
    return reinterpret_cast<Function>(found);
  }();
  return function;
}

class CudaCopier final : public GpuCopier {
 public:
  explicit CudaCopier(int gpu) : gpu_(gpu) {
    const Current current(gpu_);
    staging_ = shared_staging();
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "the stream of copies");
    // What the first copy of either direction sets up would wait for kernels that run. Not freed: that would,
    // too.
    void* first = nullptr;
    check(cudaMalloc(&first, 1), "GPU memory for a first copy");
    if (!to_gpu(first, staging_, 1) || !from_gpu(staging_, first, 1)) throw std::runtime_error(error_);
  }

  unsigned char* staging() override { return staging_; }
  bool to_gpu(void* to, const void* staged, std::size_t bytes) override {
    return copy(to, staged, bytes, cudaMemcpyHostToDevice);
  }
  bool from_gpu(void* staged, const void* from, std::size_t bytes) override {
    return copy(staged, from, bytes, cudaMemcpyDeviceToHost);
  }
  bool holds(const void* address, std::size_t bytes) override {
    const auto ask = pointer_attributes();
    if (ask == nullptr) return false;
    CUdeviceptr begin = 0;
    std::size_t size = 0;
    int gpu = -1;
    CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&begin, &size, &gpu};
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    if (ask(3, what, answers, at) != CUDA_SUCCESS || gpu != gpu_) return false;
    return at - begin < size && bytes <= size - (at - begin);
  }
  std::string error() const override { return error_; }

 private:
  /// No events and no callbacks: the thread that waits is the NIC's, and every queue waits with it.
  bool copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (stuck_) return false;
    return succeeds(error_, [&] {
      const Current current(gpu_);
      check(cudaMemcpyAsync(to, from, bytes, kind, stream_), "a copy of GPU memory");
      const auto begin = std::chrono::steady_clock::now();
      cudaError_t state = cudaErrorNotReady;
      while ((state = cudaStreamQuery(stream_)) == cudaErrorNotReady) {
        if (std::chrono::steady_clock::now() - begin < kLongestCopy) continue;
        stuck_ = true;  // it may still touch the staging memory
        throw std::runtime_error("a copy of GPU memory did not end in time");
      }
      check(state, "a copy of GPU memory");
    });
  }

  const int gpu_;
  cudaStream_t stream_ = nullptr;
  unsigned char* staging_ = nullptr;
  bool stuck_ = false;
  std::string error_;
};

}  // namespace

}  // namespace belfry::softnic::cuda

extern "C" __attribute__((visibility("default"))) belfry::softnic::GpuCopier* belfry_softnic_make_gpu_copier(
    int gpu, char* error, std::size_t error_bytes) {
  return belfry::softnic::cuda::make_or_say<belfry::softnic::cuda::CudaCopier>(gpu, error, error_bytes);
}
