#pragma once
/// \file
/// The NIC's side of its GPU engine: a thread that wakes the engine when a doorbell rings, gives it new
/// tables when objects change, and hears of queues that fail. An engine that has nothing to do leaves the
/// GPU.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "softnic/gpu/gpu_engine.hpp"
#include "softnic/gpu/gpu_pins.hpp"
#include "softnic/gpu/gpu_snapshot.hpp"

namespace belfry::softnic {

class NicCore;

class GpuDriver {
 public:
  explicit GpuDriver(NicCore& core);
  ~GpuDriver();
  GpuDriver(const GpuDriver&) = delete;
  GpuDriver& operator=(const GpuDriver&) = delete;

  /// Whether the range is memory of the GPU whose engine this is. The first such question of a process that
  /// uses CUDA loads the engine. Never with the NIC's lock held.
  bool is_gpu_memory(const void* address, std::size_t bytes);

  /// Objects have changed in a way that may wait until the engine next starts, or until a settle(). Any time.
  void note_change() { changes_.fetch_add(1, std::memory_order_release); }

  /// Returns when the engine touches nothing but what the NIC's objects name now. Never with the NIC's lock
  /// held.
  void settle();

 private:
  void load();
  void start_thread();
  void run();
  void run_awake();
  void run_asleep();
  void refresh();
  void apply_tables();
  bool rung() const;
  void launch();
  void reap();
  void hear_failures();
  void fail_queue(std::uint32_t slot, std::uint64_t generation, const GpuProgress& progress);
  void give_up(const std::string& what);
  void wait_a_little();

  NicCore& core_;
  std::once_flag loaded_;
  std::unique_ptr<GpuEngine> engine_;
  std::thread thread_;
  std::atomic<bool> quit_{false};
  std::atomic<std::uint64_t> changes_{1};

  std::mutex mutex_;
  std::condition_variable settled_;
  std::uint64_t asked_ = 0;   ///< settle() calls; under mutex_
  std::uint64_t served_ = 0;  ///< under mutex_
  std::atomic<bool> asking_{false};

  // Of the thread.
  GpuTables tables_;
  GpuPins pins_;
  std::vector<std::uint64_t> generations_;     ///< of queues, as the engine has them
  std::vector<std::uint64_t> cq_generations_;  ///< likewise
  std::vector<bool> told_;                     ///< slots whose failure the NIC knows
  std::uint64_t seen_changes_ = 0;
  std::uint32_t seen_attention_ = 0;
  bool awake_ = false;
  bool stopping_ = false;
  bool due_ = false;     ///< it must run although nobody rang
  bool stale_ = true;    ///< the engine has older tables
  bool broken_ = false;  ///< CUDA failed
  unsigned idle_turns_ = 0;
};

}  // namespace belfry::softnic
