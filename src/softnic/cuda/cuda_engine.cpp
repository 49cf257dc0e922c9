/// \file
/// libbelfry-softnic-cuda.so: the GPU engine's host side.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "softnic/cuda/cuda_failure.hpp"
#include "softnic/cuda/engine_kernel.hpp"
#include "softnic/gpu/gpu_engine.hpp"

namespace belfry::softnic::cuda {

namespace {

constexpr std::uint32_t kQueuesAWarp = 32;

struct FreeGpu {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct FreePinned {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

/// An array that grows, in GPU memory or pinned; its first elements stay what they were, new ones are zero.
/// Smaller ones of before are kept: CUDA frees memory only once every kernel has ended, and a kernel may wait
/// for the engine that wants to start.
template <class T, class Free>
class Array {
 public:
  T* get() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return memory_.get()[i]; }

  void grow(std::size_t count, cudaStream_t stream) {
    if (count <= size_) return;
    const std::size_t size = std::bit_ceil(std::max(count, kLeast));
    void* raw = nullptr;
    if constexpr (std::is_same_v<Free, FreeGpu>) {
      check(cudaMalloc(&raw, size * sizeof(T)), "GPU memory for the engine");
    } else {
      check(cudaHostAlloc(&raw, size * sizeof(T), cudaHostAllocPortable), "pinned memory for the engine");
    }
    std::unique_ptr<T, Free> fresh(static_cast<T*>(raw));
    check(cudaMemsetAsync(raw, 0, size * sizeof(T), stream), "clearing the engine's memory");
    if (size_ != 0)
      check(cudaMemcpyAsync(raw, memory_.get(), size_ * sizeof(T), cudaMemcpyDefault, stream),
            "copying the engine's memory");
    check(cudaStreamSynchronize(stream), "growing the engine's memory");
    if (memory_ != nullptr) former_.push_back(std::move(memory_));
    memory_ = std::move(fresh);
    size_ = size;
  }

 private:
  static constexpr std::size_t kLeast = sizeof(T) <= 64 ? 1024 : 128;

  std::unique_ptr<T, Free> memory_;
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<T, Free>> former_;
};

template <class T>
using GpuArray = Array<T, FreeGpu>;
template <class T>
using PinnedArray = Array<T, FreePinned>;

class CudaEngine final : public GpuEngine {
 public:
  explicit CudaEngine(const GpuEngineOptions& options) : options_(options) {
    const Current current(options_.gpu);
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "the engine's stream");
    check(cudaStreamCreateWithPriority(&control_stream_, cudaStreamNonBlocking, greatest),
          "the engine's second stream");
    control_.grow(1, stream_);
    status_.grow(1, stream_);
    stop_word_.grow(1, stream_);
    stop_word_[0] = kStopWord;
    // The kernel is loaded with its first launch, which has to wait for whatever runs: so it comes here,
    // before there is anything that waits for the engine.
    place({}, {}, 0);
    if (!launch() || !stop()) throw std::runtime_error(error_);
    check(cudaStreamSynchronize(stream_), "the engine's first launch");
  }

  bool reach(MemoryOwner gpu, std::string& error) override {
    return succeeds(error, [&] {
      const Current current(options_.gpu);
      int can = 0;
      check(cudaDeviceCanAccessPeer(&can, options_.gpu, gpu), "peer access");
      if (can == 0) throw std::runtime_error("the driver offers no peer access between them");
      const cudaError_t code = cudaDeviceEnablePeerAccess(gpu, 0);
      if (code != cudaErrorPeerAccessAlreadyEnabled) check(code, "peer access");
      cudaGetLastError();
    });
  }

  Pinned pin(const HostRange& range) override {
    const Current current(options_.gpu);
    const cudaError_t code =
        cudaHostRegister(range.address, range.bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (code == cudaErrorHostMemoryAlreadyRegistered) {
      cudaGetLastError();
      if (is_pinned(range)) return Pinned::theirs;
    }
    return succeeded(code, "pinning host memory") ? Pinned::ours : Pinned::refused;
  }
  void unpin(const HostRange& range) override {
    const Current current(options_.gpu);
    succeeded(cudaHostUnregister(range.address), "unpinning host memory");
  }

  bool update(std::span<const GpuQueuePair> queues, std::span<const MkeyEntry> keys,
              std::uint32_t completion_queues) override {
    const Current current(options_.gpu);
    try {
      place(queues, keys, completion_queues);
      return true;
    } catch (const std::exception& failure) {
      error_ = failure.what();
      return false;
    }
  }

  bool reset_completions(std::uint32_t slot) override {
    const Current current(options_.gpu);
    try {
      cq_producers_.grow(slot + 1, stream_);
    } catch (const std::exception& failure) {
      error_ = failure.what();
      return false;
    }
    return succeeded(cudaMemsetAsync(cq_producers_.get() + slot, 0, sizeof(std::uint64_t), stream_),
                     "resetting a completion queue");
  }

  bool launch() override {
    const Current current(options_.gpu);
    if (!succeeded(cudaMemsetAsync(control_.get(), 0, sizeof(EngineControl), stream_), "launching"))
      return false;
    EngineParameters p;
    p.queues = queues_.get();
    p.keys = keys_.get();
    p.progress = progress_.get();
    p.cq_producers = cq_producers_.get();
    p.receive_next = receive_next_.get();
    p.control = control_.get();
    p.status = status_.get();
    p.idle_ns = std::uint64_t{options_.idle_us} * 1000;
    p.far_queues = far_queues_;
    p.slots = slots_;
    p.key_rows = key_rows_;
    p.launch = ++launches_;
    const unsigned warps = std::clamp(options_.warps, 1u, unsigned{kMostWarps});
    const unsigned needed = (slots_ + kQueuesAWarp * warps - 1) / (kQueuesAWarp * warps);
    const unsigned blocks = std::max({options_.blocks, needed, 1u});
    try {
      scratch_.grow(std::size_t{blocks} * warps, stream_);
    } catch (const std::exception& failure) {
      error_ = failure.what();
      return false;
    }
    p.scratch = scratch_.get();
    return succeeded(launch_engine(p, blocks, warps, stream_), "launching the engine");
  }

  bool running() override {
    if (std::atomic_ref<std::uint32_t>(status_[0].finished).load(std::memory_order_acquire) == launches_)
      return false;
    // A kernel that failed never says that it has finished.
    if (++polls_ % 1024 != 0) return true;
    const Current current(options_.gpu);
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return true;
    succeeded(state, "the engine's kernel");
    return false;
  }

  bool stop() override {
    const Current current(options_.gpu);
    return succeeded(cudaMemcpyAsync(&control_.get()->stop, stop_word_.get(), sizeof(std::uint32_t),
                                     cudaMemcpyHostToDevice, control_stream_),
                     "stopping the engine");
  }

  std::uint32_t attention() const override {
    return std::atomic_ref<std::uint32_t>(status_[0].attention).load(std::memory_order_acquire);
  }
  GpuProgress& progress(std::uint32_t slot) override {
    if (slot >= progress_.size()) {
      const Current current(options_.gpu);
      progress_.grow(slot + 1, stream_);
    }
    return progress_[slot];
  }

  std::string error() const override { return error_; }

 private:
  /// Looked at in steps: whoever pins does not leave holes.
  static bool is_pinned(const HostRange& range) {
    constexpr std::uint64_t kStep = 1 << 20;
    for (std::uint64_t at = 0;; at += kStep) {
      const std::uint64_t last = range.bytes - 1;
      cudaPointerAttributes attributes{};
      const auto* address = static_cast<const char*>(range.address) + std::min(at, last);
      if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) return false;
      if (attributes.type != cudaMemoryTypeHost || attributes.devicePointer != address) return false;
      if (at >= last) return true;
    }
  }

  bool succeeded(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return true;
    cudaGetLastError();  // else the application would find it
    error_ = CudaFailure(what, code).what();
    return false;
  }

  void place(std::span<const GpuQueuePair> queues, std::span<const MkeyEntry> keys,
             std::uint32_t completion_queues) {
    queues_.grow(std::max<std::size_t>(queues.size(), 1), stream_);
    receive_next_.grow(std::max<std::size_t>(queues.size(), 1), stream_);
    progress_.grow(std::max<std::size_t>(queues.size(), 1), stream_);
    keys_.grow(std::max<std::size_t>(keys.size(), 1), stream_);
    cq_producers_.grow(std::max(completion_queues, 1u), stream_);
    staged_queues_.grow(std::max<std::size_t>(queues.size(), 1), stream_);
    staged_keys_.grow(std::max<std::size_t>(keys.size(), 1), stream_);
    // The copies below read the staging memory, so what went before is over.
    check(cudaStreamSynchronize(stream_), "the engine's stream");
    for (std::size_t slot = 0; slot < queues.size(); ++slot) {
      if (queues[slot].generation == staged_queues_[slot].generation) continue;
      check(cudaMemsetAsync(receive_next_.get() + slot, 0, sizeof(std::uint64_t), stream_),
            "a queue's state");
    }
    if (!queues.empty()) std::memcpy(staged_queues_.get(), queues.data(), queues.size_bytes());
    if (!keys.empty()) std::memcpy(static_cast<void*>(staged_keys_.get()), keys.data(), keys.size_bytes());
    if (!upload_constants(staged_queues_.get(), std::min<std::size_t>(queues.size(), kConstantQueues),
                          staged_keys_.get(), std::min<std::size_t>(keys.size(), kConstantKeys), stream_))
      throw std::runtime_error("the engine's tables could not be copied to constant memory");
    if (!queues.empty())
      check(cudaMemcpyAsync(queues_.get(), staged_queues_.get(), queues.size_bytes(), cudaMemcpyHostToDevice,
                            stream_),
            "the engine's queues");
    if (!keys.empty())
      check(cudaMemcpyAsync(keys_.get(), staged_keys_.get(), keys.size_bytes(), cudaMemcpyHostToDevice,
                            stream_),
            "the engine's keys");
    far_queues_ = std::any_of(queues.begin(), queues.end(), [](const GpuQueuePair& q) { return q.far; });
    slots_ = static_cast<std::uint32_t>(queues.size());
    key_rows_ = static_cast<std::uint32_t>(keys.size());
  }

  const GpuEngineOptions options_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t control_stream_ = nullptr;
  GpuArray<EngineControl> control_;
  PinnedArray<EngineStatus> status_;
  PinnedArray<std::uint32_t> stop_word_;
  PinnedArray<GpuProgress> progress_;
  PinnedArray<GpuQueuePair> staged_queues_;
  PinnedArray<MkeyEntry> staged_keys_;
  GpuArray<GpuQueuePair> queues_;
  GpuArray<MkeyEntry> keys_;
  GpuArray<std::uint64_t> cq_producers_;
  GpuArray<std::uint64_t> receive_next_;
  GpuArray<Scratch> scratch_;
  bool far_queues_ = false;
  std::uint32_t slots_ = 0;
  std::uint32_t key_rows_ = 0;
  std::uint32_t launches_ = 0;
  std::uint32_t polls_ = 0;
  std::string error_;
};

MemoryOwner owner_of(const void* address) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();
    return kHostMemory;
  }
  return attributes.type == cudaMemoryTypeDevice ? static_cast<MemoryOwner>(attributes.device) : kHostMemory;
}

}  // namespace

}  // namespace belfry::softnic::cuda

extern "C" __attribute__((visibility("default"))) belfry::softnic::MemoryOwner belfry_softnic_owner_of_memory(
    const void* address, std::size_t bytes) {
  using belfry::softnic::cuda::owner_of;
  const auto* first = static_cast<const char*>(address);
  const belfry::softnic::MemoryOwner owner = owner_of(first);
  return bytes <= 1 || owner == owner_of(first + bytes - 1) ? owner : belfry::softnic::kHostMemory;
}

extern "C" __attribute__((visibility("default"))) belfry::softnic::GpuEngine* belfry_softnic_make_gpu_engine(
    const belfry::softnic::GpuEngineOptions& options, char* error, std::size_t error_bytes) {
  return belfry::softnic::cuda::make_or_say<belfry::softnic::cuda::CudaEngine>(options, error, error_bytes);
}
