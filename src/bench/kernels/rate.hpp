#pragma once
/// \file
/// Kernels that post as many messages as they can.

#include "belfry/device/gda.hpp"
#include "bench/kernels/jobs.hpp"
#include "bench/kernels/put.hpp"
#include "bench/kernels/target_value.hpp"

namespace belfry::bench {

template <device::Sharing sharing_, device::Publication publication_, device::Payload payload_,
          device::DoorbellMode mode_ = device::DoorbellMode::record>
struct RatePolicy : device::DefaultPolicy {
  static constexpr device::Sharing sharing = sharing_;
  static constexpr device::Publication publication = publication_;
  static constexpr device::Payload payload = payload_;
  static constexpr device::DoorbellMode doorbell_mode = mode_;
  static constexpr device::Ordering ordering = device::default_ordering(mode_);
};

/// Each thread posts for itself, with queues of its own or with others on one.
/// \tparam Channel of either transport
template <class Channel, PutFrom from>
struct ThreadRateKernel {
  RateJobOf<typename Channel::View> job;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = port::block_index() * port::threads_a_block() + port::thread_index();
    RateResult& result = job.results[me];
    result.begin_ns = port::now_ns();
    const device::Outcome outcome = job.queues_a_thread == 1 ? on_one_queue(me) : on_own_queues(me);
    result.end_ns = port::now_ns();
    result.end.outcome = outcome;
  }

 private:
  BELFRY_FN device::Operation post(Channel& channel, device::Place remote, device::Place local,
                                   std::uint64_t value, device::Announce announce) const {
    if constexpr (from == PutFrom::register_) {
      return channel.put_value(device::Thread{}, remote, value, announce, kKernelTimeout);
    } else {
      return channel.put(device::Thread{}, remote, local, job.bytes, announce, kKernelTimeout);
    }
  }

  BELFRY_FN device::Outcome on_one_queue(std::uint32_t me) const {
    Channel channel(job.view, job.peer, job.queue_of(me));
    const Slots own_targets = job.targets_of(me);
    SlotCursor targets(own_targets);
    SlotCursor sources(job.source);
    // Of every `batch` messages one rings, and the last. Threads that share a queue ring in turns.
    std::uint32_t until_ring = job.batch - 1 - me % job.batch;
    device::Operation op;
    for (std::uint64_t i = 0; i < job.messages_a_thread && op.ok(); ++i) {
      const bool now = until_ring == 0 || i + 1 == job.messages_a_thread;
      until_ring = until_ring == 0 ? job.batch - 1 : until_ring - 1;
      op = post(channel, targets.next(), sources.next(), target_value(job.seed + me, i),
                now ? device::Announce::now : device::Announce::later);
    }
    // In order: the last one's completion is that of all.
    return channel.wait(device::Thread{}, op, kKernelTimeout);
  }

  /// Message i goes to queue i mod queues_a_thread of the thread's.
  BELFRY_FN device::Outcome on_own_queues(std::uint32_t me) const {
    for (std::uint64_t i = 0; i < job.messages_a_thread; ++i) {
      Channel channel(job.view, job.peer, own_queue(me, i));
      const bool now =
          (i / job.queues_a_thread + 1) % job.batch == 0 || i + job.queues_a_thread >= job.messages_a_thread;
      const device::Operation op =
          post(channel, job.target_of(me, i), job.source.at(i), target_value(job.seed + me, i),
               now ? device::Announce::now : device::Announce::later);
      if (!op.ok()) return outcome_of(op);
    }
    for (std::uint32_t q = 0; q < job.queues_a_thread; ++q) {
      Channel channel(job.view, job.peer, own_queue(me, q));
      const device::Outcome outcome = channel.flush(device::Thread{}, kKernelTimeout);
      if (!outcome.ok()) return outcome;
    }
    return {};
  }

  BELFRY_FN std::uint32_t own_queue(std::uint32_t me, std::uint64_t i) const {
    return me * job.queues_a_thread + static_cast<std::uint32_t>(i % job.queues_a_thread);
  }
};

/// A warp reserves for all of its lanes, and rings once for all.
template <class Policy>
struct WarpRateKernel {
  RateJob job;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = port::block_index() * port::threads_a_block() + port::thread_index();
    const device::Warp warp{port::warp_mask()};
    RateResult& result = job.results[me];
    result.begin_ns = port::now_ns();
    result.end.outcome = post_all(warp, me);
    result.end_ns = port::now_ns();
  }

 private:
  BELFRY_FN device::Outcome post_all(device::Warp warp, std::uint32_t me) const {
    device::gda::Channel<Policy> channel(job.view, job.peer, job.queue_of(warp_number()));
    const std::uint32_t calls_a_doorbell = job.batch <= port::kWarpSize ? 1 : job.batch / port::kWarpSize;
    const Slots own_targets = job.targets_of(me);
    SlotCursor targets(own_targets);
    std::uint32_t until_ring = calls_a_doorbell - 1;
    for (std::uint64_t i = 0; i < job.messages_a_thread; ++i) {
      const bool now = until_ring == 0 || i + 1 == job.messages_a_thread;
      until_ring = until_ring == 0 ? calls_a_doorbell - 1 : until_ring - 1;
      const device::Operation op =
          channel.put_value_each(warp, targets.next(), target_value(job.seed + me, i),
                                 now ? device::Announce::now : device::Announce::later, kKernelTimeout);
      if (!op.ok()) return outcome_of(op);
    }
    return channel.flush(warp, kKernelTimeout);
  }

  BELFRY_FN static std::uint32_t warp_number() {
    const std::uint32_t warps_a_block = (port::threads_a_block() + port::kWarpSize - 1) / port::kWarpSize;
    return port::block_index() * warps_a_block + port::thread_index() / port::kWarpSize;
  }
};

}  // namespace belfry::bench
