#pragma once
/// \file
/// Runs device code on CPU threads: a grid of blocks, a block of up to 1024 threads, a warp of 32 lanes.
///
/// A warp is one CPU thread, and its lanes are fibers of that thread; they change places where they wait
/// (port::poll, port::pause_lane) and where they meet (sync_warp, ballot, shuffle, sync_block), and nowhere
/// else. All warps of a resident block run at the same time, each under the operating system's scheduler, so
/// that threads of a block may wait for each other. Of a grid that needs more CPU threads than the options
/// allow, blocks run in waves, as on a GPU: a block starts when an earlier one has ended. Blocks that wait
/// for each other must all be resident: say `cooperative`, and a grid that does not fit is refused.
///
/// Stricter than a GPU: a mask that names a lane which has exited or never existed is an error, and so is a
/// shuffle from a lane outside the mask. As on a GPU, threads that have exited count as arrived in
/// sync_block.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "belfry/lanes/errors.hpp"

namespace belfry::lanes {

inline constexpr std::uint32_t kMostThreadsABlock = 1024;

struct Grid {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;  ///< in a block, 1 to 1024
};

struct LaunchOptions {
  std::string name = "kernel";                                   ///< in messages, and of the CPU threads
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);  ///< for the whole launch
  std::uint32_t cpu_threads = 256;                               ///< most warps that run at the same time
  std::size_t stack_bytes = std::size_t{256} << 10;              ///< of each lane; a guard page lies below
  bool cooperative = false;  ///< all blocks at the same time, or a refusal
  /// A warp that waits gives its CPU away at once, for others that poll share it. Always so where the
  /// launch's own warps outnumber the CPUs.
  bool gives_way = false;
  /// The calling thread runs the first warp, in place of a new thread; it is not pinned. For measurements:
  /// the system has placed the caller already, beside whatever else runs.
  bool caller_runs = false;
  std::vector<int> cpus;  ///< CPUs to pin warps to, taken in turns; empty: the system places them
};

/// How a launch that ran to its end was run.
struct LaunchReport {
  std::uint32_t warps_a_block = 0;
  std::uint32_t blocks_at_once = 0;
  std::uint32_t cpu_threads = 0;
  std::uint32_t waves = 0;              ///< blocks over blocks_at_once, rounded up
  std::chrono::nanoseconds elapsed{0};  ///< from the first lane's start to the last lane's end
};

namespace detail {

/// The kernel without its type.
struct AnyKernel {
  void (*call)(const void* kernel);
  const void* kernel;
};

LaunchReport run(Grid grid, const LaunchOptions& options, AnyKernel kernel);

}  // namespace detail

/// Calls `kernel()` once in each lane, every time on a copy of its own, and returns when all have ended.
/// Inside, belfry/port/lane.hpp says which lane it is.
///
/// A launch is given up when a lane throws, when lanes can never meet, or when the deadline passes: then
/// every other lane gets a Stopped out of its next wait. A lane that neither waits nor meets others cannot be
/// stopped, and the launch then lasts as long as that lane; code that is noexcept around a wait ends the
/// process.
///
/// \throws LaunchError, and of its kinds KernelError (first exception of a lane) and DivergenceError
template <class Kernel>
LaunchReport launch(Grid grid, const LaunchOptions& options, Kernel kernel) {
  static_assert(std::is_copy_constructible_v<Kernel> && std::is_invocable_v<Kernel&>);
  const auto call = [](const void* shared) {
    Kernel mine(*static_cast<const Kernel*>(shared));
    mine();
  };
  return detail::run(grid, options, {call, &kernel});
}

}  // namespace belfry::lanes
