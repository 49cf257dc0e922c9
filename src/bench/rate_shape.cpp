#include "bench/rate_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "belfry/port/lane.hpp"
#include "bench/kernels/target_value.hpp"

namespace belfry::bench {
namespace {

constexpr std::byte kUntouched{0xb5};

std::size_t slot_offset(const RateWork& job, std::uint32_t thread, std::uint64_t slot) {
  return job.target_of(thread, slot).offset;
}

}  // namespace

std::uint32_t RateShape::warps() const {
  const std::uint32_t a_block = (threads / blocks + port::kWarpSize - 1) / port::kWarpSize;
  return a_block * blocks;
}

RateKind RateShape::kind() const {
  RateKind kind;
  kind.cooperation = cooperation;
  kind.queue_shared = posters() > queues;
  kind.across_blocks = blocks > 1;
  kind.no_record = no_record;
  return kind;
}

void check(const RateShape& s) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  if (s.threads % s.blocks != 0) {
    refuse(fmt::format("{} threads cannot be dealt to {} blocks: take a multiple", s.threads, s.blocks));
  }
  if (s.threads / s.blocks > 1024) {
    refuse(fmt::format("{} threads in a block: a block holds 1024, so raise --blocks", s.threads / s.blocks));
  }
  if (s.cooperation == Cooperation::thread) {
    if (s.queues % s.threads != 0) {
      refuse(fmt::format("{} queues cannot be dealt to {} threads: with --sharing thread, take a multiple",
                         s.queues, s.threads));
    }
    return;
  }
  if (s.queues > s.posters()) {
    refuse(fmt::format("{} queues for {} {}: with --sharing {}, no more queues than these", s.queues,
                       s.posters(), s.cooperation == Cooperation::warp ? "warps" : "threads",
                       cooperation_names()[static_cast<std::size_t>(s.cooperation)]));
  }
  if (s.cooperation == Cooperation::lock && s.batch != 1) {
    refuse("--sharing lock rings once a WQE: take --batch 1, or another --sharing");
  }
  if (s.cooperation == Cooperation::warp) {
    if (s.threads / s.blocks % port::kWarpSize != 0 || s.batch % port::kWarpSize != 0) {
      refuse(
          "--sharing warp posts 32 WQEs at a time: take multiples of 32 for --batch and for the threads of a "
          "block");
    }
  }
}

const std::vector<std::string>& cooperation_names() {
  static const std::vector<std::string> names = {"thread", "lock", "handoff", "warp"};
  return names;
}

const std::vector<RateArm>& rate_arms() {
  using enum Cooperation;
  // Named after threads, queues, SMs (blocks here) and WQEs a doorbell. Those without a reference are not in
  // the published table.
  static const std::vector<RateArm> arms = {
      {"t1-q1-s1-w1", "one thread, one queue", "rate/mini-gda-t1-q1-s1-w1", {1, 1, 1, 1, thread}},
      {"t1-q2-s1-w1",
       "one thread, two queues in turns",
       "rate/mini-gda-t1-q2-32-s1-w1",
       {1, 2, 1, 1, thread}},
      {"t1-q32-s1-w1",
       "one thread, 32 queues in turns",
       "rate/mini-gda-t1-q2-32-s1-w1",
       {1, 32, 1, 1, thread}},
      {"t1-q1-s1-w16", "one thread, 16 WQEs a doorbell", "rate/mini-gda-t1-q1-s1-w16", {1, 1, 1, 16, thread}},
      {"t32-q1-s1-w1-locked",
       "32 threads on one queue, a lock around each WQE",
       "rate/mini-gda-t32-q1-s1-w1-locked",
       {32, 1, 1, 1, lock}},
      {"t32-q1-s1-w32-handoff",
       "32 threads on one queue, slots handed on from thread to thread",
       "",
       {32, 1, 1, 32, handoff}},
      {"t256-q1-s1-w32-handoff",
       "256 threads on one queue, slots handed on from thread to thread",
       "rate/mini-gda-t256-q1-s1-w32-handoff",
       {256, 1, 1, 32, handoff}},
      {"t32-q1-s1-w32-warp",
       "one warp reserves and rings for its lanes",
       "rate/mini-gda-t32-q1-s1-w32-warp",
       {32, 1, 1, 32, warp}},
      {"t256-q1-s1-w32-warp",
       "8 warps on one queue, each reserves and rings for its lanes",
       "rate/mini-gda-t256-q1-s1-w32-warp",
       {256, 1, 1, 32, warp}},
      {"t16-q16-s16-w1",
       "16 blocks of one thread and one queue",
       "rate/mini-gda-t16-q16-s16-w1",
       {16, 16, 16, 1, thread}},
      {"t16-q16-s16-w16",
       "the same, 16 WQEs a doorbell",
       "rate/mini-gda-t16-q16-s16-w16",
       {16, 16, 16, 16, thread}},
      {"t32-q32-s1-w16",
       "a warp, each thread a queue, 16 WQEs a doorbell",
       "rate/mini-gda-t32-q32-s1-w16",
       {32, 32, 1, 16, thread}},
      {"t64-q64-s1-w16",
       "two warps, each thread a queue, 16 WQEs a doorbell",
       "rate/mini-gda-t64-q64-s1-w16",
       {64, 64, 1, 16, thread}},
      {"t64-q64-s64-w16",
       "64 blocks of one thread and one queue, 16 WQEs a doorbell",
       "rate/mini-gda-t64-q64-s64-w16",
       {64, 64, 64, 16, thread}},
      {"t512-q16-s16-w32-warp",
       "16 blocks of one warp and one queue, 32 WQEs a doorbell",
       "",
       {512, 16, 16, 32, warp}},
      {"t2048-q64-s64-w32-warp", "64 of them", "", {2048, 64, 64, 32, warp}},
      {"t1-q1-s1-w16-no-record", "t1-q1-s1-w16 without a doorbell record", "", {1, 1, 1, 16, thread, true}},
      {"t32-q1-s1-w32-warp-no-record",
       "t32-q1-s1-w32-warp without a doorbell record",
       "",
       {32, 1, 1, 32, warp, true}},
      {"t512-q16-s16-w32-warp-no-record",
       "t512-q16-s16-w32-warp without a doorbell record",
       "",
       {512, 16, 16, 32, warp, true}},
      {"t2048-q64-s64-w32-warp-no-record",
       "t2048-q64-s64-w32-warp without a doorbell record",
       "",
       {2048, 64, 64, 32, warp, true}},
  };
  return arms;
}

void clear_rate_target(std::span<std::byte> window, const RateWork& job, std::uint32_t threads) {
  const std::size_t bytes = std::size_t{threads} * job.target.count * job.target.stride;
  std::fill_n(window.begin() + static_cast<std::ptrdiff_t>(job.target.begin.offset), bytes, kUntouched);
}

bool rate_target_is_right(std::span<const std::byte> window, std::span<const std::byte> source,
                          const RateWork& job, std::uint32_t threads) {
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    for (std::uint64_t slot = 0; slot < job.target.count; ++slot) {
      const std::byte* held = window.data() + slot_offset(job, thread, slot);
      std::size_t written = 0;
      if (slot < job.messages_a_thread) {
        const std::uint64_t last = last_write(slot, job.target.count, job.messages_a_thread);
        const std::uint64_t value = target_value(job.seed + thread, last);
        const std::byte* expected = source.empty() ? reinterpret_cast<const std::byte*>(&value)
                                                   : source.data() + job.source.at(last).offset;
        written = job.bytes;
        if (std::memcmp(held, expected, written) != 0) return false;
      }
      const bool untouched =
          std::all_of(held + written, held + job.target.stride, [](std::byte b) { return b == kUntouched; });
      if (!untouched) return false;
    }
  }
  return true;
}

}  // namespace belfry::bench
