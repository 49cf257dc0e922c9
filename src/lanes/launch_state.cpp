#include "lanes/launch_state.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "belfry/port/lane.hpp"

namespace belfry::lanes {

namespace {

constexpr std::size_t kMostPlaces = 4;

std::uint32_t usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
}

std::uint32_t cpus_for(const LaunchOptions& options) {
  if (options.cpus.empty()) return usable_cpus();
  std::vector<int> cpus = options.cpus;
  std::sort(cpus.begin(), cpus.end());
  return static_cast<std::uint32_t>(std::unique(cpus.begin(), cpus.end()) - cpus.begin());
}

}  // namespace

LaunchState::LaunchState(Grid of, const LaunchOptions& with, detail::AnyKernel what)
    : grid(of),
      options(with),
      kernel(what),
      warps_a_block((of.threads + port::kWarpSize - 1) / port::kWarpSize),
      blocks_at_once(std::min(of.blocks, with.cpu_threads / warps_a_block)),
      crowded(with.gives_way || warps_a_block * blocks_at_once > cpus_for(with)) {}

void LaunchState::fail(std::exception_ptr reason) {
  const std::lock_guard lock(mutex_);
  if (!stopped()) reason_ = std::move(reason);
  stop();
}

void LaunchState::time_out() {
  const std::lock_guard lock(mutex_);
  if (!stopped()) timed_out_ = true;
  stop();
}

void LaunchState::give_up(std::uint32_t block, std::uint32_t thread, const std::string& where) {
  const std::lock_guard lock(mutex_);
  ++given_up_;
  if (!timed_out_ || places_.size() == kMostPlaces) return;
  places_.push_back("block " + std::to_string(block) + " thread " + std::to_string(thread) + " in " + where);
}

void LaunchState::rethrow() const {
  if (reason_) std::rethrow_exception(reason_);
  if (!timed_out_) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(options.deadline).count();
  std::string message = options.name + " did not end within " + std::to_string(ms) + " ms";
  if (given_up_ != 0) message += ": " + std::to_string(given_up_) + " lanes still waited";
  const char* separator = " (";
  for (const std::string& place : places_) {
    message += separator + place;
    separator = "; ";
  }
  if (given_up_ > places_.size() && !places_.empty()) message += "; and others";
  if (!places_.empty()) message += ")";
  throw LaunchError(ErrorKind::timed_out, message,
                    "Look for what they wait for, or raise LaunchOptions::deadline");
}

}  // namespace belfry::lanes
