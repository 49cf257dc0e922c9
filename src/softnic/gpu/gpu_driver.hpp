#pragma once
/// \file
/// The NIC's side of the engine on one GPU: a thread that wakes the engine when a doorbell rings, gives it
/// new tables when objects change, and hears of queues that fail. An engine that has nothing to do leaves the
/// GPU.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "softnic/gpu/gpu_doorbell_page.hpp"
#include "softnic/gpu/gpu_engine.hpp"
#include "softnic/gpu/gpu_pins.hpp"
#include "softnic/gpu/gpu_snapshot.hpp"

namespace belfry::softnic {

class NicCore;

class GpuDriver {
 public:
  /// Starts the thread. \param changes grows whenever the NIC's objects change \param pins all engines', as
  /// `pages`
  GpuDriver(NicCore& core, MemoryOwner gpu, std::unique_ptr<GpuEngine> engine,
            const std::atomic<std::uint64_t>& changes, GpuPins& pins, GpuDoorbellPages& pages);
  ~GpuDriver();
  GpuDriver(const GpuDriver&) = delete;
  GpuDriver& operator=(const GpuDriver&) = delete;

  MemoryOwner gpu() const { return gpu_; }

  /// Lets the engine touch another GPU's memory; says so where the driver does not allow it.
  void reach(MemoryOwner gpu);
  /// Whether it may, or it is its own.
  bool reaches(MemoryOwner gpu);

  // Never with the NIC's lock held: has the engine take its objects as they are now, and waits until it has.
  std::uint64_t ask();
  void await(std::uint64_t asked);

  /// Ends engine and thread. Any number of times.
  void stop();

 private:
  void run();
  void run_awake();
  void run_asleep();
  void refresh();
  void apply_tables();
  bool rung();
  std::uint64_t rung_at(const GpuWatch& watch, unsigned i) const;
  bool look_at_page();
  void forget_doorbells(const GpuQueuePair& q);
  void launch();
  void reap();
  void hear_failures();
  void fail_queue(std::uint32_t slot, std::uint64_t generation, const GpuProgress& progress);
  void give_up(const std::string& what);
  void wait_a_little();

  NicCore& core_;
  const MemoryOwner gpu_;
  std::unique_ptr<GpuEngine> engine_;
  const std::atomic<std::uint64_t>& changes_;
  GpuPins& pins_;
  GpuDoorbellPages& pages_;
  std::atomic<bool> quit_{false};

  std::mutex mutex_;
  std::condition_variable settled_;
  std::set<MemoryOwner> reachable_;  ///< other GPUs; under mutex_
  std::uint64_t asked_ = 0;          ///< ask() calls; under mutex_
  std::uint64_t served_ = 0;         ///< under mutex_
  std::atomic<bool> asking_{false};

  // Of the thread.
  GpuTables tables_;
  GpuDoorbellPage* page_ = nullptr;            ///< where kernels ring in this GPU's memory, if they do
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

  std::thread thread_;  ///< last: it uses the rest
};

}  // namespace belfry::softnic
