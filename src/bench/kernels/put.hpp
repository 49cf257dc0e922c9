#pragma once
/// \file
/// Kernels of one operation at a time.

#include <cstring>

#include "belfry/device/gda.hpp"
#include "bench/kernels/jobs.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/kernels/target_value.hpp"

namespace belfry::bench {

inline constexpr port::Timeout kKernelTimeout = port::Timeout::seconds(kKernelWaitSeconds);

/// The address of a byte of this PE's own copy of a window.
template <class View>
BELFRY_FN std::byte* own_address(const View& view, device::Place place) {
  return reinterpret_cast<std::byte*>(view.windows[place.window].address + place.offset);
}

BELFRY_FN inline device::Outcome outcome_of(device::Operation op) {
  device::Outcome outcome;
  outcome.status = op.status;
  return outcome;
}

/// Has a value computed here and now, and not by the code that is measured.
template <class T>
BELFRY_FN void pin(T& value) {
  static_assert(sizeof(T) == 8 || sizeof(T) == 4);
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
#else
  asm volatile("" : "+r"(value));
#endif
}

/// Puts the payload of write `i` where put_from() takes it.
template <class View>
BELFRY_FN void prepare_source(const View& view, device::Place source, std::uint64_t value,
                              std::uint32_t bytes) {
  std::byte* const at = own_address(view, source);
  if (bytes >= sizeof value) {
    memcpy(at, &value, sizeof value);
    return;
  }
  // One by one: a copy of unknown length would take the value through memory.
  for (std::uint32_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

template <PutFrom from, class Channel>
BELFRY_FN device::Operation put_from(Channel& channel, device::Place remote, device::Place local,
                                     std::uint64_t value, std::uint32_t bytes) {
  if constexpr (from == PutFrom::register_) {
    return channel.put_value(device::Thread{}, remote, value);
  } else {
    return channel.put(device::Thread{}, remote, local, bytes);
  }
}

/// The payload of a write, as far as it has to be there before the clock starts: all of it, and visible,
/// where the put itself publishes nothing.
template <PutFrom from, class View>
BELFRY_FN void publish_ahead(const View& view, device::Place source, std::uint64_t value,
                             std::uint32_t bytes) {
  if constexpr (from == PutFrom::visible_memory) {
    prepare_source(view, source, value, bytes);
    port::fence<port::Scope::system>();
  }
}

/// \tparam Arm of for_each_op_arm() or for_each_proxy_arm()
template <class Arm>
struct PutKernel {
  PutJobOf<typename Arm::View> job;

  BELFRY_FN void operator()() const {
    Channel channel(job.view, job.peer);
    const std::uint64_t all = job.warm_up + job.count;
    for (std::uint64_t i = 0; i < all; ++i) {
      const device::Outcome outcome = one(channel, i);
      if (outcome.ok()) continue;
      job.end->outcome = outcome;
      return;
    }
  }

 private:
  using Channel = typename Arm::Channel;

  BELFRY_FN device::Outcome one(Channel& channel, std::uint64_t i) const {
    std::uint64_t value = target_value(job.seed, i);
    device::Place local = job.source.at(i);
    device::Place remote = job.target.at(i);
    pin(value);
    pin(local.offset);
    pin(remote.offset);
    publish_ahead<Arm::from>(job.view, local, value, job.bytes);
    if constexpr (Arm::from == PutFrom::memory) prepare_source(job.view, local, value, job.bytes);
    const std::uint64_t begin = job.clock.now();
    const device::Operation op = put_from<Arm::from>(channel, remote, local, value, job.bytes);
    const std::uint64_t issued = job.clock.now();
    const device::Outcome outcome = channel.wait(device::Thread{}, op, kKernelTimeout);
    const std::uint64_t done = job.clock.now();
    if (i >= job.warm_up) {
      job.issue[i - job.warm_up] = issued - begin;
      job.completion[i - job.warm_up] = done - begin;
    }
    return outcome;
  }
};

/// Waits until the flag is no longer `before`. \return its value then, 0 if it stayed
template <class View>
BELFRY_FN std::uint64_t wait_for_flag(const FlagJobOf<View>& job, std::uint64_t before) {
  const device::Status status =
      device::wait_signal(job.view, job.flag, device::Compare::not_equal, before, kKernelTimeout);
  if (status != device::Status::done) {
    job.end->outcome.status = status;
    return 0;
  }
  return port::load<port::Scope::system>(
      reinterpret_cast<const std::uint64_t*>(own_address(job.view, job.flag)));
}

/// The end that asks.
template <class Arm>
struct RoundTripKernel {
  FlagJobOf<typename Arm::View> job;

  BELFRY_FN void operator()() const {
    typename Arm::Channel channel(job.view, job.peer);
    std::uint64_t before = 0;
    const std::uint64_t all = job.warm_up + job.count;
    for (std::uint64_t i = 0; i < all; ++i) {
      const std::uint64_t value = target_value(job.seed, i);
      const device::Place local = job.source.at(i);
      publish_ahead<Arm::from>(job.view, local, value, sizeof value);
      const std::uint64_t begin = job.clock.now();
      if constexpr (Arm::from == PutFrom::memory) prepare_source(job.view, local, value, sizeof value);
      const device::Operation op = put_from<Arm::from>(channel, job.flag, local, value, sizeof value);
      if (!op.ok()) {
        job.end->outcome = outcome_of(op);
        return;
      }
      const std::uint64_t seen = wait_for_flag(job, before);
      const std::uint64_t done = job.clock.now();
      if (seen == 0) return;
      if (seen != value) job.end->wrong = true;
      before = seen;
      if (i >= job.warm_up) job.round_trip[i - job.warm_up] = done - begin;
    }
    job.end->outcome = channel.flush(device::Thread{}, kKernelTimeout);
  }
};

/// The end that answers: with the value that it was sent, so that a wrong one comes back wrong.
template <class Arm>
struct EchoKernel {
  FlagJobOf<typename Arm::View> job;

  BELFRY_FN void operator()() const {
    typename Arm::Channel channel(job.view, job.peer);
    std::uint64_t before = 0;
    const std::uint64_t all = job.warm_up + job.count;
    for (std::uint64_t i = 0; i < all; ++i) {
      const device::Place local = job.source.at(i);
      const std::uint64_t expected = target_value(job.seed, i);
      publish_ahead<Arm::from>(job.view, local, expected, sizeof expected);
      const std::uint64_t value = wait_for_flag(job, before);
      if (value == 0) return;
      before = value;
      const device::Operation op = answer(channel, local, value, expected);
      if (!op.ok()) {
        job.end->outcome = outcome_of(op);
        return;
      }
    }
    job.end->outcome = channel.flush(device::Thread{}, kKernelTimeout);
  }

 private:
  BELFRY_FN device::Operation answer(typename Arm::Channel& channel, device::Place local, std::uint64_t value,
                                     std::uint64_t expected) const {
    // What lies ready is the right answer only.
    if (Arm::from == PutFrom::visible_memory && value != expected)
      return channel.put_value(device::Thread{}, job.flag, value);
    if constexpr (Arm::from == PutFrom::memory) prepare_source(job.view, local, value, sizeof value);
    return put_from<Arm::from>(channel, job.flag, local, value, sizeof value);
  }
};

/// The register store alone, or a store and a fence, which no put that orders its WQE can be cheaper than.
/// The doorbell names the blocks that the NIC has been told of already.
struct DoorbellKernel {
  DoorbellJob job;

  BELFRY_FN void operator()() const {
    const device::SendQueue queue = job.view.queues[job.peer * job.view.queues_a_peer];
    const std::uint64_t producer = port::load<port::Scope::gpu>(&queue.state->published);
    auto* const scratch = reinterpret_cast<std::uint64_t*>(own_address(job.view, job.view.sink));
    for (std::uint64_t i = 0; i < job.count; ++i) {
      const std::uint64_t begin = job.clock.now();
      if (job.fence) {
        port::store<port::Scope::gpu>(scratch, i);
        port::fence<port::Scope::gpu>();
      } else {
        device::gda::ring_in_order<device::Ordering::none, device::DoorbellMode::no_record>(queue, producer);
      }
      const std::uint64_t rung = job.clock.now();
      job.issue[i] = rung - begin;
      while (job.clock.now() - rung < job.pause_ticks) {
      }
    }
  }
};

}  // namespace belfry::bench
