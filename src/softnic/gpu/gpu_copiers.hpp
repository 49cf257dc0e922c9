#pragma once
/// \file
/// What copies GPU memory for the CPU's NIC: a copier for each GPU whose memory has been registered.

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "softnic/config.hpp"
#include "softnic/firmware/keys.hpp"
#include "softnic/firmware/nic_lock.hpp"
#include "softnic/gpu/gpu_library.hpp"
#include "softnic/gpu/ring_copier.hpp"

namespace belfry::softnic {

class GpuCopiers {
 public:
  explicit GpuCopiers(NicLock& lock) : lock_(lock) {}

  /// Makes one, or says on stderr why there is none: keys of that GPU's memory are then out of reach. Any
  /// thread, never with the NIC's lock held.
  void add(MemoryOwner gpu, GpuLibrary& library, const GpuConfig& config);
  /// Any thread.
  bool has(MemoryOwner gpu) const { return find(gpu) != nullptr; }

  // Once there is one, and by the thread that polls. The NIC's lock is let go of meanwhile. All are as
  // RingCopier's; false also while the process ends: CUDA may be gone by then.

  unsigned char* staging() const { return staging_; }
  bool to_gpu(MemoryOwner gpu, void* to, const void* staged, std::size_t bytes);
  bool from_gpu(MemoryOwner gpu, void* staged, const void* from, std::size_t bytes);
  bool between(MemoryOwner gpu, void* to, const void* from, std::size_t bytes);
  bool update(MemoryOwner gpu, void* at, wire::WqeOpcode opcode, const AtomicOperands& operands,
              std::uint64_t* former);
  bool holds(MemoryOwner gpu, const void* address, std::size_t bytes);

  /// Commands that copiers' kernels have carried out. By the thread that polls.
  std::uint64_t served() const;

  /// Waits for the end of a copy; there is none afterwards.
  void quit();

 private:
  static constexpr std::size_t kMostGpus = 64;

  RingCopier* find(MemoryOwner gpu) const {
    const auto i = static_cast<std::size_t>(gpu);
    return i < kMostGpus ? copiers_[i].load(std::memory_order_acquire) : nullptr;
  }
  template <class Work>
  bool outside(MemoryOwner gpu, const Work& work);
  template <class Copy>
  bool copy(MemoryOwner gpu, const Copy& copy);

  NicLock& lock_;
  std::mutex made_mutex_;
  std::vector<std::unique_ptr<RingCopier>> made_;  ///< under made_mutex_
  std::array<std::atomic<RingCopier*>, kMostGpus> copiers_{};
  unsigned char* staging_ = nullptr;  ///< set before a key names GPU memory

  std::mutex busy_;  ///< held during a copy: the end of the process waits for it, and nobody else
  bool quit_ = false;
  bool failed_ = false;  ///< and that was said
};

}  // namespace belfry::softnic
