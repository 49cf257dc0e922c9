#pragma once
/// \file
/// Rings for the experiment `handoff`, and the thread that drains them.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "bench/kernel_runner.hpp"
#include "proxy/ring_memory.hpp"

namespace belfry::bench {

/// Rings of a PE of two, with one window, and nothing behind them.
class HandoffRings {
 public:
  /// Throws host::Error where there is no memory. \param slots a power of two up to 32768
  /// \param provider of the rings: host memory that the runner's kernels reach; null: plain host memory
  HandoffRings(KernelRunner& runner, std::uint32_t rings, std::uint32_t slots,
               std::shared_ptr<host::QueueMemory> provider = nullptr);

  const device::proxy::ProxyView& view() const { return view_; }
  const proxy::RingMemory& memory() const { return memory_; }

 private:
  proxy::RingMemory memory_;
  std::shared_ptr<device::proxy::RingState> states_;
  std::shared_ptr<device::proxy::Ring> rings_;
  std::shared_ptr<device::LocalWindow> window_;
  device::proxy::ProxyView view_;
};

/// Takes `count` descriptors out of each ring, as a worker does, and looks whether each is the one that
/// handoff_request() makes: none lost, doubled, torn or out of order.
class Drain {
 public:
  /// \param threads to which the rings are dealt
  Drain(const HandoffRings& rings, std::uint64_t count, std::uint32_t threads = 1);
  /// Ends it, if it has not got all.
  ~Drain();
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  /// Whether everything has come and was right. Waits for nothing: the kernel has seen its rings drained.
  bool is_right();

 private:
  void run(const HandoffRings& rings, std::uint64_t count, std::uint32_t first, std::uint32_t step);
  void join();

  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> right_{0};
  std::uint64_t expected_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace belfry::bench
