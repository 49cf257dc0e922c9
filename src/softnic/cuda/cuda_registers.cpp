/// \file
/// Doorbell registers in GPU memory. The host reaches them by copies on a stream of their own, which go on
/// beside kernels.

#include <cuda_runtime_api.h>

#include <memory>

#include "softnic/cuda/cuda_failure.hpp"
#include "softnic/gpu/gpu_register_memory.hpp"

namespace belfry::softnic::cuda {

namespace {

constexpr std::size_t kPageBytes = std::size_t{kGpuPageRegisters} * kGpuRegisterBytes;
constexpr std::size_t kRegisterWords = kGpuRegisterBytes / sizeof(std::uint64_t);

/// Its memory stays: CUDA may be gone before it is, and to free some waits for all kernels.
class CudaRegisterMemory final : public GpuRegisterMemory {
 public:
  explicit CudaRegisterMemory(int gpu) : gpu_(gpu) {
    const Current current(gpu_);
    void* raw = nullptr;
    check(cudaMalloc(&raw, kPageBytes), "GPU memory for doorbells");
    registers_ = static_cast<unsigned char*>(raw);
    check(cudaHostAlloc(&raw, kPageBytes, cudaHostAllocPortable), "pinned memory for doorbells");
    staging_ = static_cast<std::uint64_t*>(raw);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "the stream of doorbells");
    // What the first copy of either direction sets up would wait for kernels that run.
    std::uint64_t value = 0;
    if (!write(0, value) || !read(&value, 1)) throw std::runtime_error(error_);
  }

  unsigned char* registers() override { return registers_; }

  bool open_to(MemoryOwner gpu) override {
    if (gpu == gpu_) return true;
    return succeeds(error_, [&] {
      const Current current(gpu);
      const cudaError_t code = cudaDeviceEnablePeerAccess(gpu_, 0);
      if (code != cudaErrorPeerAccessAlreadyEnabled) check(code, "peer access to doorbells in GPU memory");
      cudaGetLastError();
    });
  }

  bool read(std::uint64_t* values, std::uint32_t count) override {
    return succeeds(error_, [&] {
      copy(staging_, registers_, std::size_t{count} * kGpuRegisterBytes, cudaMemcpyDeviceToHost);
      for (std::uint32_t i = 0; i < count; ++i) values[i] = staging_[i * kRegisterWords];
    });
  }

  bool write(std::uint32_t index, std::uint64_t value) override {
    return succeeds(error_, [&] {
      staging_[0] = value;
      copy(registers_ + std::size_t{index} * kGpuRegisterBytes, staging_, sizeof value,
           cudaMemcpyHostToDevice);
    });
  }

  std::string error() const override { return error_; }

 private:
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const Current current(gpu_);
    check(cudaMemcpyAsync(to, from, bytes, kind, stream_), "a copy of doorbells in GPU memory");
    check(cudaStreamSynchronize(stream_), "a copy of doorbells in GPU memory");
  }

  const int gpu_;
  unsigned char* registers_ = nullptr;
  std::uint64_t* staging_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::string error_;
};

}  // namespace

}  // namespace belfry::softnic::cuda

extern "C" __attribute__((visibility("default"))) belfry::softnic::GpuRegisterMemory*
belfry_softnic_make_gpu_register_memory(int gpu, char* error, std::size_t error_bytes) {
  return belfry::softnic::cuda::make_or_say<belfry::softnic::cuda::CudaRegisterMemory>(gpu, error,
                                                                                       error_bytes);
}
