#pragma once
/// \file
/// Kernels that compute or stream, and now and then tell a peer: what having communication compiled in costs
/// the kernel around it. Loops over rounds are not unrolled: copies of a round would hold more values than
/// `live`.

#include <cstdint>

#include "belfry/device/gda.hpp"
#include "belfry/device/proxy.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/kernels/put.hpp"
#include "bench/kernels/residency_jobs.hpp"
#include "bench/kernels/target_value.hpp"

namespace belfry::bench {

/// The longest that a block waits: a grid that keeps the NIC's engine out ends soon.
inline constexpr port::Timeout kResidencyTimeout = port::Timeout::seconds(2);

struct NoTalk {
  static constexpr bool compiled_in = false;
};

template <class Channel_, Call call, bool waits>
struct Talk : TalkOf<typename Channel_::View> {
  using Channel = Channel_;
  static constexpr bool compiled_in = true;

  /// A compiler that has to keep registers free for the call keeps values on the stack for as long as they
  /// live, in the loops too. So they are put there by hand, and only by a thread that sends.
  template <std::uint32_t live>
  BELFRY_FN void after(std::uint32_t part, float (&values)[live]) const {
    if (part >= this->messages || port::thread_index() != 0) return;
    if constexpr (call == Call::inlined) {
      send(*this, part);
    } else {
      volatile float parked[live];
      for (std::uint32_t i = 0; i < live; ++i) parked[i] = values[i];
      send_apart(*this, part);
      for (std::uint32_t i = 0; i < live; ++i) values[i] = parked[i];
    }
  }

 private:
  [[gnu::noinline]] BELFRY_FN static void send_apart(const Talk& talk, std::uint32_t part) {
    send(talk, part);
  }
  BELFRY_FN static void send(const Talk& talk, std::uint32_t part) {
    // After a failure nobody waits any more: a kernel whose messages go nowhere ends soon.
    if (port::load<port::Scope::gpu>(talk.failed) != 0) return;
    const std::uint64_t n = std::uint64_t{port::block_index()} * talk.messages + part;
    Channel channel(talk.view, talk.peer, port::block_index() % talk.queues);
    const device::Operation op =
        channel.put_value(device::Thread{}, talk.target + n * 8, target_value(talk.seed, n),
                          device::Announce::now, kResidencyTimeout);
    bool good = op.ok();
    if constexpr (waits) good = good && channel.wait(device::Thread{}, op, kResidencyTimeout).ok();
    if (!good) port::fetch_add<port::Scope::gpu>(talk.failed, 1u);
  }
};

/// \tparam live values that each thread keeps, a multiple of 4
template <Caller caller, std::uint32_t live, class Talk>
struct ResidencyKernel {
  static_assert(live % 4 == 0);
  ResidencyWork work;
  Talk talk;

  BELFRY_FN void operator()() const {
    float values[live];
    begin(values);
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::uint32_t part = 0; part < work.messages; ++part) {
      if constexpr (caller == Caller::compute) {
        compute(values);
      } else {
        stream(values, part * work.rounds);
      }
      if constexpr (Talk::compiled_in) talk.after(part, values);
    }
    float sum = 0;
    for (std::uint32_t i = 0; i < live; ++i) sum += values[i] * static_cast<float>(i + 1);
    work.output[thread()] = sum;
  }

 private:
  BELFRY_FN static std::uint32_t thread() {
    return port::block_index() * port::threads_a_block() + port::thread_index();
  }
  BELFRY_FN static std::uint32_t threads() { return port::block_count() * port::threads_a_block(); }

  BELFRY_FN static void begin(float (&values)[live]) {
    for (std::uint32_t i = 0; i < live; ++i)
      values[i] = caller == Caller::compute ? static_cast<float>((thread() + i) % 1024) / 1024 : 0;
  }

  BELFRY_FN void compute(float (&values)[live]) const {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::uint32_t round = 0; round < work.rounds; ++round) {
      for (std::uint32_t step = 0; step < kStepsARound; ++step) {
        for (std::uint32_t i = 0; i < live; ++i) values[i] = values[i] * work.factor + work.addend;
      }
    }
  }

  BELFRY_FN void stream(float (&values)[live], std::uint32_t first) const {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::uint32_t round = first; round < first + work.rounds; ++round) {
      const std::uint64_t slice = (round & (work.slices - 1)) * (live / 4);
      for (std::uint32_t i = 0; i < live / 4; ++i) {
        const FourFloats four = work.input[(slice + i) * threads() + thread()];
        values[4 * i] += four.x;
        values[4 * i + 1] += four.y;
        values[4 * i + 2] += four.z;
        values[4 * i + 3] += four.w;
      }
    }
  }
};

/// One write on each queue to a slot of its own, each waited for: wakes the NIC before the kernel that is
/// measured, and ends only after all that went before on those queues.
template <class Channel>
struct KnockKernel {
  TalkOf<typename Channel::View> talk;

  BELFRY_FN void operator()() const {
    for (std::uint32_t queue = 0; queue < talk.queues; ++queue) {
      Channel channel(talk.view, talk.peer, queue);
      const device::Operation op =
          channel.put_value(device::Thread{}, talk.target + std::uint64_t{queue} * 8, talk.seed + queue,
                            device::Announce::now, kResidencyTimeout);
      if (!op.ok() || !channel.wait(device::Thread{}, op, kResidencyTimeout).ok())
        port::fetch_add<port::Scope::gpu>(talk.failed, 1u);
    }
  }
};

}  // namespace belfry::bench
