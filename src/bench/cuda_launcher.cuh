#pragma once
/// \file
/// Launching measured kernels on a GPU. See runner_of.hpp for what a launcher is.

#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/clock.hpp"

namespace belfry::bench {

inline void check_cuda(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code) + " (CUDA error " +
                           std::to_string(static_cast<int>(code)) + ")");
}

template <class Kernel>
__global__ void run_kernel(const __grid_constant__ Kernel kernel) {
  kernel();
}

/// How fast the multiprocessor's clock runs: kernels read it, and the host wants time.
static __global__ void measure_clock(std::uint64_t nanoseconds, std::uint64_t* result) {
  const auto now = [] {
    std::uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
  };
  const std::uint64_t begin = now();
  const auto first = static_cast<std::uint64_t>(clock64());
  while (now() - begin < nanoseconds) {
  }
  result[1] = now() - begin;
  result[0] = static_cast<std::uint64_t>(clock64()) - first;
}

/// Pinned host memory that the host sees, and, while a kernel runs, its twin in GPU memory: what a kernel
/// notes must not travel over PCIe between the operations that it measures.
class Twins {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) {
    void* host = nullptr;
    void* gpu = nullptr;
    check_cuda(cudaHostAlloc(&host, bytes, cudaHostAllocPortable), "pinned memory");
    std::memset(host, 0, bytes);
    if (const cudaError_t code = cudaMalloc(&gpu, bytes); code != cudaSuccess) {
      cudaFreeHost(host);
      check_cuda(code, "GPU memory");
    }
    const std::lock_guard lock(mutex_);
    pairs_[static_cast<char*>(host)] = {gpu, bytes};
    return {host, [this](void* at) { free(static_cast<char*>(at)); }};
  }

  /// \return the twin of what `host` points to, with its contents; itself where it has none
  template <class T>
  T* enter(T* host, cudaStream_t stream) {
    const auto* pair = find(host);
    if (pair == nullptr) return host;
    check_cuda(cudaMemcpyAsync(pair->gpu, host, pair->bytes, cudaMemcpyHostToDevice, stream),
               "a copy to the GPU");
    return static_cast<T*>(pair->gpu);
  }
  template <class T>
  void leave(T* host, cudaStream_t stream) {
    const auto* pair = find(host);
    if (pair == nullptr) return;
    check_cuda(cudaMemcpyAsync(host, pair->gpu, pair->bytes, cudaMemcpyDeviceToHost, stream),
               "a copy from the GPU");
    check_cuda(cudaStreamSynchronize(stream), "a copy from the GPU");
  }

 private:
  struct Pair {
    void* gpu = nullptr;
    std::size_t bytes = 0;
  };

  const Pair* find(const void* host) {
    const std::lock_guard lock(mutex_);
    const auto found = pairs_.find(const_cast<char*>(static_cast<const char*>(host)));
    return found == pairs_.end() ? nullptr : &found->second;
  }
  void free(char* host) {
    const std::lock_guard lock(mutex_);
    cudaFree(pairs_[host].gpu);
    pairs_.erase(host);
    cudaFreeHost(host);
  }

  std::mutex mutex_;
  std::map<char*, Pair> pairs_;
};

/// The pointers of a kernel's job that are results, by their names in bench/kernels/jobs.hpp. A job with
/// others writes where the host reads.
template <class Job, class Visit>
void visit_results(Job& job, const Visit& visit) {
  if constexpr (requires { job.issue; }) visit(job.issue);
  if constexpr (requires { job.completion; }) visit(job.completion);
  if constexpr (requires { job.round_trip; }) visit(job.round_trip);
  if constexpr (requires { job.ticks; }) visit(job.ticks);
  if constexpr (requires { job.ahead; }) visit(job.ahead);
  if constexpr (requires { job.sent; }) visit(job.sent);
  if constexpr (requires { job.stop; }) visit(job.stop);
  if constexpr (requires { job.results; }) visit(job.results);
  if constexpr (requires { job.end; }) visit(job.end);
}

class CudaLauncher {
 public:
  explicit CudaLauncher(int gpu) : gpu_(gpu) {
    const std::string none =
        "--lanes cuda finds no GPU " + std::to_string(gpu) +
        " that CUDA can use (`belfry doctor gpu` says more; without --lanes cuda kernels "
        "run on CPU lanes)";
    check_cuda(cudaSetDevice(gpu), none.c_str());
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), none.c_str());
  }
  ~CudaLauncher() { cudaStreamDestroy(stream_); }
  CudaLauncher(const CudaLauncher&) = delete;
  CudaLauncher& operator=(const CudaLauncher&) = delete;

  const char* name() const { return "cuda"; }
  cudaStream_t stream() const { return stream_; }
  /// Makes it the calling thread's GPU, which others that serve the thread may have changed.
  void use() const { check_cuda(cudaSetDevice(gpu_), "the kernels' GPU"); }
  std::shared_ptr<void> allocate(std::size_t bytes) {
    use();
    return twins_.allocate(bytes);
  }
  std::shared_ptr<void> place(const void* contents, std::size_t bytes) {
    use();
    void* gpu = nullptr;
    check_cuda(cudaMalloc(&gpu, bytes), "GPU memory");
    std::shared_ptr<void> memory(gpu, [](void* at) { cudaFree(at); });
    check_cuda(cudaMemcpyAsync(gpu, contents, bytes, cudaMemcpyHostToDevice, stream_), "a copy to the GPU");
    check_cuda(cudaStreamSynchronize(stream_), "a copy to the GPU");
    return memory;
  }

  template <class Kernel>
  void launch(std::uint32_t blocks, std::uint32_t threads, Kernel kernel) {
    use();
    std::vector<void*> entered;
    visit_results(kernel.job, [&](auto*& pointer) {
      if (pointer == nullptr) return;
      entered.push_back(pointer);
      pointer = twins_.enter(pointer, stream_);
    });
    run_kernel<<<blocks, threads, 0, stream_>>>(kernel);
    check_cuda(cudaGetLastError(), "launching a kernel");
    check_cuda(cudaStreamSynchronize(stream_), "a kernel");
    for (void* host : entered) twins_.leave(static_cast<char*>(host), stream_);
  }

  Clock clock() {
    use();
    const auto result = std::static_pointer_cast<std::uint64_t>(allocate(2 * sizeof(std::uint64_t)));
    std::uint64_t* const on_gpu = twins_.enter(result.get(), stream_);
    measure_clock<<<1, 1, 0, stream_>>>(5'000'000, on_gpu);
    check_cuda(cudaStreamSynchronize(stream_), "measuring the GPU's clock");
    twins_.leave(result.get(), stream_);
    return Clock("GPU clock64",
                 static_cast<double>(result.get()[1]) / static_cast<double>(result.get()[0]) / 1e3);
  }

 private:
  int gpu_;
  cudaStream_t stream_ = nullptr;
  Twins twins_;
};

}  // namespace belfry::bench
