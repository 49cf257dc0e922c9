#pragma once
/// \file
/// What all warps of a launch share: the kernel, and whether and why it is being given up.

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "belfry/lanes/launch.hpp"

namespace belfry::lanes {

class LaunchState {
 public:
  LaunchState(Grid of, const LaunchOptions& with, detail::AnyKernel what);

  const Grid grid;
  const LaunchOptions& options;
  const detail::AnyKernel kernel;
  const std::uint32_t warps_a_block;
  const std::uint32_t blocks_at_once;
  /// Whether warps, or they and others, outnumber the CPUs: then one that waits gives way at once.
  const bool crowded;

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  /// Gives the launch up. The first reason is the one that is kept.
  void fail(std::exception_ptr reason);
  /// The same at the deadline; the reason is composed from what lanes say of themselves in give_up().
  void time_out();
  /// A lane of a launch that is given up says where it waited.
  void give_up(std::uint32_t block, std::uint32_t thread, const std::string& where);

  /// \throws the reason, if the launch was given up. To be called when no lane runs any more.
  void rethrow() const;

 private:
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::exception_ptr reason_;
  bool timed_out_ = false;
  std::uint64_t given_up_ = 0;
  std::vector<std::string> places_;
};

}  // namespace belfry::lanes
