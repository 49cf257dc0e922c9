#pragma once
/// \file
/// Kernels that put 8 B on one queue and complete more or less than that queue.

#include "belfry/device/gda.hpp"
#include "bench/kernels/jobs.hpp"
#include "bench/kernels/put.hpp"
#include "bench/kernels/target_value.hpp"

namespace belfry::bench {

template <CompletionScope scope>
struct ScopeKernel {
  ScopeJob job;

  BELFRY_FN void operator()() const {
    const std::uint64_t all = job.warm_up + job.count;
    for (std::uint64_t i = 0; i < all; ++i) {
      const std::uint64_t begin = job.clock.now();
      const device::Outcome outcome = one(i);
      const std::uint64_t done = job.clock.now();
      if (!outcome.ok()) {
        job.end->outcome = outcome;
        return;
      }
      if (i >= job.warm_up) job.completion[i - job.warm_up] = done - begin;
    }
  }

 private:
  using Policy = device::DefaultPolicy;
  using Channel = device::gda::Channel<Policy>;

  /// A channel holds its queue's indices until it ends, and flushes of more than one queue make their own: so
  /// every scope makes one for its put and lets it go.
  BELFRY_FN device::Outcome one(std::uint64_t i) const {
    const device::gda::Endpoint<Policy> endpoint(job.view);
    const device::Place remote = job.target.at(i);
    const std::uint64_t value = target_value(job.seed, i);
    if constexpr (scope == CompletionScope::signal) {
      Channel channel(job.view, job.peer);
      device::Operation op = channel.put_value(device::Thread{}, remote, value, device::gda::Announce::later);
      if (op.ok()) op = channel.signal(device::Thread{}, {job.signal, 1, device::SignalOperation::add});
      return channel.wait(device::Thread{}, op, kKernelTimeout);
    } else if constexpr (scope == CompletionScope::queue) {
      Channel channel(job.view, job.peer);
      const device::Operation op = channel.put_value(device::Thread{}, remote, value);
      return op.ok() ? channel.flush(device::Thread{}, kKernelTimeout) : outcome_of(op);
    } else {
      const device::Operation op = put(remote, value);
      if (!op.ok()) return outcome_of(op);
      if constexpr (scope == CompletionScope::peer) {
        return endpoint.flush_peer(device::Thread{}, job.peer, kKernelTimeout);
      } else {
        return endpoint.quiet(device::Thread{}, kKernelTimeout);
      }
    }
  }

  BELFRY_FN device::Operation put(device::Place remote, std::uint64_t value) const {
    Channel channel(job.view, job.peer);
    return channel.put_value(device::Thread{}, remote, value);
  }
};

}  // namespace belfry::bench
