#include "belfry/lanes/launch.hpp"

#include <pthread.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <memory>
#include <system_error>
#include <thread>

#include "lanes/launch_state.hpp"
#include "lanes/warp.hpp"

namespace belfry::lanes {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastStackBytes = std::size_t{16} << 10;

void check(const Grid& grid, const LaunchOptions& options) {
  const auto refuse = [&](const std::string& message, const std::string& remedy) {
    throw LaunchError(ErrorKind::bad_argument, options.name + ": " + message, remedy);
  };
  if (port::current_lane() != nullptr) {
    throw LaunchError(ErrorKind::nested, options.name + " was launched from inside a lane",
                      "Launch from a host thread");
  }
  if (grid.blocks == 0 || grid.threads == 0 || grid.threads > kMostThreadsABlock) {
    refuse("a grid of " + std::to_string(grid.blocks) + " blocks of " + std::to_string(grid.threads) +
               " threads",
           "A grid has at least one block, and a block 1 to 1024 threads");
  }
  if (options.deadline.count() <= 0)
    refuse("a deadline that has passed", "Give LaunchOptions::deadline some time");
  if (options.stack_bytes < kLeastStackBytes) {
    refuse("stacks of " + std::to_string(options.stack_bytes) + " B",
           "Give LaunchOptions::stack_bytes 16 KiB or more");
  }
  const std::uint64_t warps = (grid.threads + port::kWarpSize - 1) / port::kWarpSize;
  const std::uint64_t needed = options.cooperative ? warps * grid.blocks : warps;
  if (needed > options.cpu_threads) {
    refuse((options.cooperative ? "a cooperative grid of " : "a block of ") + std::to_string(needed) +
               " warps, and " + std::to_string(options.cpu_threads) +
               " CPU threads to run them at the same time",
           "Raise LaunchOptions::cpu_threads or take a smaller " +
               std::string(options.cooperative ? "grid" : "block"));
  }
}

/// CPU threads that run one block after the other.
class Residency {
 public:
  /// \param next the first block of the grid that nobody has taken yet
  Residency(LaunchState& launch, std::atomic<std::uint64_t>& next)
      : launch_(launch), next_(next), turn_(launch.warps_a_block, NextBlock{this}) {
    next_block();
  }

  void run_warps(std::uint32_t index) {
    Warp warp(launch_, barrier_, index);
    while (block_ < launch_.grid.blocks) {
      warp.run(static_cast<std::uint32_t>(block_));
      turn_.arrive_and_wait();
    }
  }

 private:
  struct NextBlock {
    Residency* residency;
    void operator()() noexcept { residency->next_block(); }
  };

  void next_block() {
    block_ = launch_.stopped() ? launch_.grid.blocks : next_.fetch_add(1, std::memory_order_relaxed);
    barrier_.reset(launch_.warps_a_block);
  }

  LaunchState& launch_;
  std::atomic<std::uint64_t>& next_;
  std::uint64_t block_ = 0;
  BlockBarrier barrier_;
  std::barrier<NextBlock> turn_;
};

/// The CPU threads of a launch, which wait for its start together.
class Crew {
 public:
  explicit Crew(LaunchState& launch) : launch_(launch), count_(launch.blocks_at_once * launch.warps_a_block) {
    for (std::uint32_t i = 0; i < launch.blocks_at_once; ++i) {
      residencies_.push_back(std::make_unique<Residency>(launch, next_block_));
    }
  }

  std::chrono::nanoseconds run(Clock::time_point deadline) {
    const bool caller_runs = launch_.options.caller_runs;
    bool complete = true;
    try {
      for (std::uint32_t i = caller_runs ? 1 : 0; i < count_; ++i) hire(i);
      if (caller_runs) threads_.emplace_back([this, deadline] { watch(deadline); });
    } catch (const std::system_error& error) {
      complete = false;
      launch_.fail(std::make_exception_ptr(LaunchError(ErrorKind::system,
                                                       launch_.options.name + ": CPU thread " +
                                                           std::to_string(threads_.size() + 1) + " of " +
                                                           std::to_string(count_) + ": " + error.what(),
                                                       "Lower LaunchOptions::cpu_threads, correct its cpus, "
                                                       "or raise the limit of processes (ulimit -u)")));
    }
    const Clock::time_point start = Clock::now();
    open(complete);
    if (complete && caller_runs) run_warp(0);
    if (complete && !caller_runs) wait(deadline);
    for (std::thread& thread : threads_) thread.join();
    return Clock::now() - start;
  }

 private:
  void hire(std::uint32_t index) {
    threads_.emplace_back([this, index] { work(index); });
    // For debuggers and top; the system takes 15 characters.
    pthread_setname_np(threads_.back().native_handle(), launch_.options.name.substr(0, 15).c_str());
    const std::vector<int>& cpus = launch_.options.cpus;
    if (cpus.empty()) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    const int cpu = cpus[index % cpus.size()];
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
    if (const int code = pthread_setaffinity_np(threads_.back().native_handle(), sizeof set, &set);
        code != 0) {
      throw std::system_error(code, std::generic_category(),
                              "cannot be pinned to CPU " + std::to_string(cpu));
    }
  }

  void work(std::uint32_t index) {
    gate_.wait(Gate::closed);
    if (gate_.load() == Gate::cancelled) return;
    run_warp(index);
  }

  void run_warp(std::uint32_t index) {
    residencies_[index / launch_.warps_a_block]->run_warps(index % launch_.warps_a_block);
    const std::lock_guard lock(mutex_);
    if (++ended_ == count_) all_ended_.notify_one();
  }

  /// Keeps the deadline while the caller runs a warp.
  void watch(Clock::time_point deadline) {
    gate_.wait(Gate::closed);
    if (gate_.load() == Gate::open) wait(deadline);
  }

  void open(bool complete) {
    gate_.store(complete ? Gate::open : Gate::cancelled);
    gate_.notify_all();
  }

  void wait(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    if (all_ended_.wait_until(lock, deadline, [&] { return ended_ == count_; })) return;
    launch_.time_out();
  }

  enum class Gate : std::uint32_t { closed, open, cancelled };

  LaunchState& launch_;
  const std::uint32_t count_;  ///< CPU threads that run warps
  std::atomic<std::uint64_t> next_block_{0};
  std::vector<std::unique_ptr<Residency>> residencies_;
  std::vector<std::thread> threads_;
  std::atomic<Gate> gate_{Gate::closed};
  std::mutex mutex_;
  std::condition_variable all_ended_;
  std::uint32_t ended_ = 0;
};

Clock::time_point deadline_after(std::chrono::nanoseconds wait) {
  const Clock::time_point now = Clock::now();
  return wait > Clock::time_point::max() - now ? Clock::time_point::max() : now + wait;
}

}  // namespace

LaunchReport detail::run(Grid grid, const LaunchOptions& options, AnyKernel kernel) {
  check(grid, options);
  const Clock::time_point deadline = deadline_after(options.deadline);
  LaunchState state(grid, options, kernel);
  Crew crew(state);
  LaunchReport report;
  report.elapsed = crew.run(deadline);
  state.rethrow();
  report.warps_a_block = state.warps_a_block;
  report.blocks_at_once = state.blocks_at_once;
  report.cpu_threads = state.warps_a_block * state.blocks_at_once;
  report.waves = (grid.blocks - 1) / state.blocks_at_once + 1;
  return report;
}

}  // namespace belfry::lanes
