#pragma once
/// \file
/// Warps whose lanes come to each put spread in time, as lanes do that have worked for different times.

#include "belfry/device/gda.hpp"
#include "bench/kernels/jobs.hpp"
#include "bench/kernels/put.hpp"
#include "bench/kernels/rate.hpp"
#include "bench/kernels/target_value.hpp"

namespace belfry::bench {

/// A turn of a loop that waits for nobody: the lanes of a CPU's warp go on meanwhile, as a GPU's do.
BELFRY_FN inline void take_a_turn() {
#if !defined(__CUDA_ARCH__)
  port::pause_lane();
#endif
}

/// Every lane puts its values on the queue of the block's warps, one a turn; before each it works for a time
/// of its own.
template <PublicationKind kind>
struct PublicationKernel {
  PublicationJob job;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = port::block_index() * port::threads_a_block() + port::thread_index();
    RateResult& result = job.results[me];
    result.begin_ns = port::now_ns();
    std::uint64_t ticks = 0;
    result.end.outcome = put_all(me, ticks);
    result.end_ns = port::now_ns();
    job.ticks[me] = ticks;
  }

 private:
  using Policy = RatePolicy<device::Sharing::block, device::Publication::handoff, device::Payload::inlined>;
  using Channel = device::gda::Channel<Policy>;

  BELFRY_FN device::Outcome put_all(std::uint32_t me, std::uint64_t& ticks) const {
    const device::Warp warp{port::warp_mask()};
    Channel channel(job.view, job.peer, 0);
    device::Operation op;
    for (std::uint64_t i = 0; i < job.messages_a_thread; ++i) {
      work(me, i);
      const std::uint64_t begin = job.clock.now();
      op = put(channel, warp, me, i);
      // All or none go on: a lane that is gone would be waited for.
      const bool failed = kind == PublicationKind::lane ? !op.ok() : port::ballot(warp.mask, !op.ok()) != 0;
      ticks += job.clock.now() - begin;
      if (failed) break;
    }
    return channel.wait(device::Thread{}, op, kKernelTimeout);
  }

  BELFRY_FN device::Operation put(Channel& channel, device::Warp warp, std::uint32_t me,
                                  std::uint64_t i) const {
    const device::Place remote = job.target_of(me, i);
    const std::uint64_t value = target_value(job.seed + me, i);
    const bool last = i + 1 == job.messages_a_thread;
    if constexpr (kind == PublicationKind::warp) {
      return channel.put_value_each(warp, remote, value, device::Announce::now, kKernelTimeout);
    } else {
      const bool now = last || (i + me + 1) % job.batch == 0;
      return channel.put_value(device::Thread{}, remote, value,
                               now ? device::Announce::now : device::Announce::later, kKernelTimeout);
    }
  }

  BELFRY_FN void work(std::uint32_t me, std::uint64_t i) const {
    if (job.spread_ticks == 0) return;
    const std::uint64_t share = (target_value(me + 1, i) >> 20 & 0xffff) * job.spread_ticks >> 16;
    for (const std::uint64_t begin = job.clock.now(); job.clock.now() - begin < share;) take_a_turn();
  }
};

}  // namespace belfry::bench
