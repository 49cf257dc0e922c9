#include "lanes/warp.hpp"

#include <sched.h>

#include <exception>
#include <new>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace belfry::lanes {

namespace {

/// Idle rounds between two sched_yields of a warp that has a CPU to itself: some microseconds of pauses, so
/// that what it waits for is noticed at once, and yet no thread outside the launch starves.
constexpr std::uint32_t kRoundsARest = 64;

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

const char* to_string(Call call) {
  switch (call) {
    case Call::poll:
      return "poll";
    case Call::sync_warp:
      return "sync_warp";
    case Call::ballot:
      return "ballot";
    case Call::shuffle:
      return "shuffle";
    case Call::sync_block:
      return "sync_block";
  }
  return "unknown";
}

std::string name_lanes(std::uint32_t mask) {
  std::string text = port::count_lanes(mask) == 1 ? "lane " : "lanes ";
  const char* separator = "";
  for (std::uint32_t first = 0; first < port::kWarpSize; ++first) {
    if ((mask >> first & 1u) == 0) continue;
    std::uint32_t last = first;
    while (last + 1 < port::kWarpSize && (mask >> (last + 1) & 1u) != 0) ++last;
    text += separator;
    text += std::to_string(first);
    if (last != first) text.append("-").append(std::to_string(last));
    separator = ", ";
    first = last;
  }
  return text;
}

Warp::Warp(LaunchState& launch, BlockBarrier& barrier, std::uint32_t index)
    : launch_(launch),
      barrier_(barrier),
      index_(index),
      rounds_a_rest_(launch.crowded ? 1 : kRoundsARest),
      exceptions_(exception_state_of_thread()),
      current_(&port::current_lane()) {
  thread_.adopt_thread();
}

void Warp::run(std::uint32_t block) {
  try {
    prepare(block);
  } catch (const std::bad_alloc&) {
    live_ = 0;
    launch_.fail(std::make_exception_ptr(
        LaunchError(ErrorKind::system,
                    launch_.options.name + ": no memory for stacks of " +
                        std::to_string(launch_.options.stack_bytes) + " B a lane",
                    "Lower LaunchOptions::stack_bytes or cpu_threads, or raise vm.max_map_count")));
  }
  if (live_ != 0) {
    tsan_release(this);
    {
      const RunnerSection section;
      *current_ = &lanes_[0];
      lanes_[0].fiber_.resume(thread_, *exceptions_);
    }
    tsan_acquire(this);
  }
  barrier_.leave();
}

void Warp::prepare(std::uint32_t block) {
  const std::uint32_t first = index_ * port::kWarpSize;
  const std::uint32_t left = launch_.grid.threads - first;
  block_ = block;
  all_ = live_ = ready_ = left >= port::kWarpSize ? port::kFullWarp : (1u << left) - 1u;
  in_sync_block_ = open_meetings_ = 0;
  block_vote_ = false;
  progress_ = released_ = false;
  for (std::uint32_t i = 0; i < port::kWarpSize && i < left; ++i) {
    Lane& lane = lanes_[i];
    lane.lane = i;
    lane.thread = first + i;
    lane.block = block;
    lane.threads_a_block = launch_.grid.threads;
    lane.blocks = launch_.grid.blocks;
    lane.warp_ = this;
    lane.fiber_.prepare(launch_.options.stack_bytes, &Warp::enter, &lane);
  }
}

void Warp::enter(void* argument) {
  Lane& lane = *static_cast<Lane*>(argument);
  Warp& warp = *lane.warp_;
  LaunchState& launch = warp.launch_;
  tsan_acquire(&warp);
  try {
    launch.kernel.call(launch.kernel.kernel);
  } catch (const Stopped&) {
    // Its reason is known already.
  } catch (...) {
    launch.fail(std::make_exception_ptr(
        KernelError(launch.options.name, lane.block, lane.thread, std::current_exception())));
  }
  tsan_release(&warp);
  warp.exit(lane);
}

void Warp::exit(Lane& lane) {
  Fiber* next = nullptr;
  {
    const RunnerSection section;
    next = &retire(lane);
  }
  next->resume_last(lane.fiber_, *exceptions_);
}

Fiber& Warp::retire(const Lane& lane) {
  live_ &= ~lane.bit();
  ready_ &= ~lane.bit();
  progress_ = true;
  if (live_ == 0) {
    *current_ = nullptr;
    return thread_;
  }
  check_exit(lane);
  if (ready_ == 0) wait_until_ready();
  Lane& next = lanes_[next_ready(lane.lane)];
  *current_ = &next;
  return next.fiber_;
}

void Warp::switch_lanes(Lane& from, Lane& to) {
  *current_ = &to;
  to.fiber_.resume(from.fiber_, *exceptions_);
}

std::uint32_t Warp::next_ready(std::uint32_t lane) const {
  const std::uint32_t above = ready_ & ~((2u << lane) - 1u);
  return port::first_lane(above != 0 ? above : ready_);
}

void Warp::yield(Lane& lane) {
  const std::uint32_t next = next_ready(lane.lane);
  if (next <= lane.lane) end_round();
  if (next != lane.lane) switch_lanes(lane, lanes_[next]);
}

void Warp::end_round() {
  if (progress_) {
    progress_ = false;
    return;
  }
  rest();
}

void Warp::rest() {
  if (++idle_rounds_ % rounds_a_rest_ == 0) {
    sched_yield();
  } else {
    pause_cpu();
  }
}

void Warp::wait(Lane& lane, Call call) {
  ready_ &= ~lane.bit();
  progress_ = true;
  if (ready_ == 0) wait_until_ready();
  const std::uint32_t next = next_ready(lane.lane);
  if (next != lane.lane) switch_lanes(lane, lanes_[next]);
  if (released_) heed_stop(lane, call);
}

/// Of lanes that can all not run, only those can go on which wait for other warps, and these only if no lane
/// of this warp is missing there.
void Warp::wait_until_ready() {
  if (in_sync_block_ != live_) {
    fail_stuck();
    release_all();
    return;
  }
  const std::uint32_t phase = barrier_.arrive(block_vote_);
  while (!barrier_.passed(phase) && !launch_.stopped()) rest();
  // A phase can also have ended because warps of a launch that is given up have left.
  if (launch_.stopped()) {
    release_all();
    return;
  }
  // Each lane keeps the answer: by the time it runs, others may have voted for the next one.
  const bool any = barrier_.any(phase);
  for (std::uint32_t left = in_sync_block_; left != 0; left &= left - 1) {
    lanes_[port::first_lane(left)].result_ = any ? 1 : 0;
  }
  block_vote_ = false;
  ready_ = in_sync_block_;
  in_sync_block_ = 0;
}

void Warp::release_all() {
  released_ = true;
  ready_ = live_;
}

void Warp::heed_stop(Lane& lane, Call call) {
  release_all();
  if (std::uncaught_exceptions() > 0) return;
  launch_.give_up(lane.block, lane.thread, to_string(call));
  throw Stopped{};
}

void Lane::yield() {
  const RunnerSection section;
  warp_->yield(*this);
  if (warp_->launch_.stopped()) warp_->heed_stop(*this, Call::poll);
}

}  // namespace belfry::lanes
