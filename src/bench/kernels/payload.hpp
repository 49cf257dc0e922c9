#pragma once
/// \file
/// Kernels that make a payload from registers and write it to a peer, in each form that a put takes it.

#include "bench/kernels/jobs.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/kernels/put.hpp"
#include "bench/kernels/target_value.hpp"

namespace belfry::bench {

/// Word `w`, of 8 B, of write `i`: other words in every place of every write.
BELFRY_FN constexpr std::uint64_t payload_word(std::uint64_t seed, std::uint64_t i, std::uint64_t w) {
  return target_value(seed, i) + w * 0x0101010101010101ull;
}

/// One thread, one write outstanding. The clock starts while the payload is in registers.
/// \tparam from register_, of 4 or 8 B, or memory, of any multiple of 4 B
template <class Channel_, PutFrom from>
struct PayloadKernel {
  PutJobOf<typename Channel_::View> job;

  BELFRY_FN void operator()() const {
    Channel_ channel(job.view, job.peer);
    const std::uint64_t all = job.warm_up + job.count;
    for (std::uint64_t i = 0; i < all; ++i) {
      const std::uint64_t begin = job.clock.now();
      const device::Operation op = make_and_put(channel, i);
      const std::uint64_t issued = job.clock.now();
      const device::Outcome outcome = channel.wait(device::Thread{}, op, kKernelTimeout);
      const std::uint64_t done = job.clock.now();
      if (!outcome.ok()) {
        job.end->outcome = outcome;
        return;
      }
      if (i < job.warm_up) continue;
      job.issue[i - job.warm_up] = issued - begin;
      job.completion[i - job.warm_up] = done - begin;
    }
  }

 private:
  BELFRY_FN device::Operation make_and_put(Channel_& channel, std::uint64_t i) const {
    const device::Place remote = job.target.at(i);
    if constexpr (from == PutFrom::register_) {
      const std::uint64_t value = payload_word(job.seed, i, 0);
      if (job.bytes == 4)
        return channel.put_value(device::Thread{}, remote, static_cast<std::uint32_t>(value));
      return channel.put_value(device::Thread{}, remote, value);
    } else {
      const device::Place local = job.source.at(i);
      store(own_address(job.view, local), i);
      return channel.put(device::Thread{}, remote, local, job.bytes);
    }
  }

  BELFRY_FN void store(std::byte* at, std::uint64_t i) const {
    const std::uint32_t words = job.bytes / 8;
    for (std::uint32_t w = 0; w < words; ++w)
      reinterpret_cast<std::uint64_t*>(at)[w] = payload_word(job.seed, i, w);
    if (job.bytes % 8 == 0) return;
    reinterpret_cast<std::uint32_t*>(at)[2 * words] =
        static_cast<std::uint32_t>(payload_word(job.seed, i, words));
  }
};

}  // namespace belfry::bench
