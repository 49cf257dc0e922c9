#pragma once
/// \file
/// The copier's kernel on CPU lanes, with GPU memory that is plain memory, and CUDA's copies in its place.

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "belfry/lanes/launch.hpp"
#include "softnic/gpu/copy_serving.hpp"
#include "softnic/gpu/gpu_copier.hpp"

namespace belfry::softnic::test {

/// Copies by the CPU, counted.
class CountedCopier final : public GpuCopier {
 public:
  unsigned char* staging() override { return staging_.data(); }
  bool to_gpu(void* to, const void* staged, std::size_t bytes) override { return copy(to, staged, bytes); }
  bool from_gpu(void* staged, const void* from, std::size_t bytes) override {
    return copy(staged, from, bytes);
  }
  bool holds(const void*, std::size_t) override { return !gone; }
  std::string error() const override { return "the memory is gone"; }

  std::atomic<unsigned> copies{0};
  std::atomic<bool> gone{false};

 private:
  bool copy(void* to, const void* from, std::size_t bytes) {
    ++copies;
    if (!gone) std::memcpy(to, from, bytes);
    return !gone;
  }
  std::vector<unsigned char> staging_ = std::vector<unsigned char>(kGpuStagingBytes);
};

/// A launch is a thread.
class LanesKernel final : public GpuCopierKernel {
 public:
  /// What the GPU does with a launch.
  enum class Mood {
    serves,
    is_full,  ///< never begins it
    hangs,    ///< begins it, and does not look at the ring
    dies,     ///< the same, and is over: as of a kernel that failed
  };

  LanesKernel() { std::memset(static_cast<void*>(&ring_), 0, sizeof ring_); }
  ~LanesKernel() override {
    if (thread_.joinable()) thread_.join();
  }

  CopyRing& ring() override { return ring_; }
  bool launch(const CopierLaunch& launch) override {
    ++launches;
    if (thread_.joinable()) thread_.join();
    if (mood == Mood::is_full || mood == Mood::hangs) over_ = false;
    if (mood == Mood::hangs || mood == Mood::dies)
      std::atomic_ref(ring_.alive).store(launch.launch, std::memory_order_release);
    if (mood != Mood::serves) return true;
    over_ = false;
    thread_ = std::thread([this, whole = launch]() mutable {
      whole.ring = &ring_;
      whole.idle_ns = idle_ns;
      lanes::LaunchOptions options;
      options.gives_way = true;
      options.deadline = std::chrono::minutes(10);
      lanes::launch({1, 64}, options, [this, &whole] { CopyServer(whole, &shared_).run(); });
      over_ = true;
    });
    return true;
  }
  bool is_over() override { return over_; }
  std::string error() const override { return "none"; }

  std::atomic<Mood> mood{Mood::serves};
  std::atomic<unsigned> launches{0};
  std::uint64_t idle_ns = 1'000'000'000;  ///< a busy machine is slow

 private:
  CopyRing ring_;
  BlockCopy shared_{};
  std::atomic<bool> over_{true};
  std::thread thread_;
};

}  // namespace belfry::softnic::test
