#pragma once
/// \file
/// Kernels that fill rings which a CPU thread drains, with no NIC behind it.

#include "belfry/device/proxy.hpp"
#include "bench/kernels/jobs.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/kernels/put.hpp"

namespace belfry::bench {

/// Offset of descriptor `i`'s payload, in both windows: what the drain checks.
BELFRY_FN constexpr std::uint64_t handoff_offset(std::uint64_t i) { return (i & 0xffff) * 8; }
inline constexpr std::uint64_t kHandoffWindowBytes = 0x10000 * 8;
inline constexpr std::uint32_t kHandoffPeer = 1;

BELFRY_FN constexpr wire::ProxyRequest handoff_request(std::uint64_t i) {
  wire::ProxyRequest r;
  r.operation = wire::ProxyOperation::put;
  r.peer = kHandoffPeer;
  r.remote_offset = r.local_offset = handoff_offset(i);
  r.bytes = 8;
  return r;
}

BELFRY_SLOW_FN bool is_drained(const device::proxy::Ring& ring, std::uint64_t end) {
  port::Patience patience(kKernelTimeout);
  while (port::poll<port::Scope::system>(ring.taken) < end)
    if (patience.is_over()) return false;
  return true;
}

/// Thread t of the grid puts `count` descriptors into ring t as fast as it drains.
template <class Policy>
struct HandoffStreamKernel {
  HandoffJob job;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = port::block_index() * port::threads_a_block() + port::thread_index();
    RateResult& result = job.results[me];
    result.begin_ns = port::now_ns();
    {
      device::proxy::Channel<Policy> channel(job.view, kHandoffPeer, me);
      result.end.outcome = stream(channel);
    }
    if (result.end.outcome.ok() && !is_drained(job.view.rings[me], job.count))
      result.end.outcome.status = device::Status::timed_out;
    result.end_ns = port::now_ns();
  }

 private:
  BELFRY_FN device::Outcome stream(device::proxy::Channel<Policy>& channel) const {
    for (std::uint64_t i = 0; i < job.count; ++i) {
      const device::Place place{0, handoff_offset(i)};
      const device::Operation op =
          channel.put(device::Thread{}, place, place, 8, device::Announce::now, kKernelTimeout);
      if (!op.ok()) return outcome_of(op);
    }
    return {};
  }
};

/// What is done between two bursts. In a function of its own, so that a CPU's registers are the puts'.
class BurstClock {
 public:
  BELFRY_FN explicit BurstClock(const HandoffJob& job) : job_(job), begin_(job.clock.now()) {}

  /// Notes a burst, and waits until the ring is empty again. \return whether the next one begins
  BELFRY_SLOW_FN bool turn(std::uint64_t next, device::Status status) {
    const std::uint64_t done = job_.clock.now();
    device::Status& end = job_.results[0].end.outcome.status;
    end = status;
    if (status != device::Status::done) return false;
    job_.ticks[bursts_++] = done - begin_;
    if (!is_drained(job_.view.rings[0], next)) end = device::Status::timed_out;
    begin_ = job_.clock.now();
    return end == device::Status::done && next < job_.count;
  }

 private:
  HandoffJob job_;
  std::uint64_t begin_;
  std::uint64_t bursts_ = 0;
};

/// One thread puts bursts of `burst` descriptors into ring 0, which is empty before each: what a burst costs
/// where nobody waits for room. The ring is found by the thread's index, as a kernel of more threads does: a
/// compiler that knows it keeps the ring in registers that a whole warp shares, which are slower.
template <class Put>
struct HandoffBurstKernel {
  HandoffJob job;

  BELFRY_FN void operator()() const {
    Put put(job);
    BurstClock clock(job);
    std::uint64_t next = 0;
    std::uint32_t failed = 0;
    device::Status status = device::Status::done;
    do {
      // Looked at once a burst: a branch for each put would be half of what is measured.
      for (std::uint32_t left = job.burst; left != 0; --left)
        failed |= static_cast<std::uint32_t>(put(next++));
      status = static_cast<device::Status>(failed);
    } while (clock.turn(next, status));
  }
};

/// The put of a protocol, as a kernel calls it.
template <class Policy>
class HandoffPut {
 public:
  BELFRY_INLINE_FN explicit HandoffPut(const HandoffJob& job)
      : channel_(job.view, kHandoffPeer, port::thread_index()) {}
  BELFRY_INLINE_FN ~HandoffPut() {}
  BELFRY_FN device::Status operator()(std::uint64_t i) {
    const device::Place place{0, handoff_offset(i)};
    return channel_.put(device::Thread{}, place, place, 8, device::Announce::now, kKernelTimeout).status;
  }

 private:
  device::proxy::Channel<Policy> channel_;
};

/// The store alone, of a descriptor that is ready but for its parity and offset: what no put can be cheaper
/// than.
class BareStore {
 public:
  BELFRY_INLINE_FN explicit BareStore(const HandoffJob& job)
      : slots_(job.view.rings[port::thread_index()].slots),
        log_slots_(job.view.rings[port::thread_index()].log_slots),
        low_(wire::proxy_descriptor(handoff_request(0), 0).low) {}
  BELFRY_FN device::Status operator()(std::uint64_t i) {
    const std::uint64_t offset = handoff_offset(i);
    port::store_16(slots_ + (i & ((std::uint64_t{1} << log_slots_) - 1)),
                   {low_ | wire::proxy_parity(i >> log_slots_), offset | offset << 32});
    return device::Status::done;
  }

 private:
  port::Vector16* slots_;
  std::uint32_t log_slots_;
  std::uint64_t low_;
};

}  // namespace belfry::bench
