#pragma once
/// \file
/// A probe among background blocks that load the same NIC, at either end.

#include "belfry/device/gda.hpp"
#include "belfry/device/proxy.hpp"
#include "bench/kernels/jobs.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/kernels/put.hpp"

namespace belfry::bench {

struct LoadedGda {
  struct SharedPolicy : device::DefaultPolicy {
    static constexpr device::Sharing sharing = device::Sharing::gpu;
    static constexpr device::Payload payload = device::Payload::inlined;
  };
  struct OwnPolicy : device::DefaultPolicy {
    static constexpr device::Payload payload = device::Payload::inlined;
  };
  using View = device::EndpointView;
  using Shared = device::gda::Channel<SharedPolicy>;
  using Own = device::gda::Channel<OwnPolicy>;

  /// WQEs of the probe's queue that were not complete when the probe was posted: one look at the completion
  /// queue after the put brings the count of what is complete up to date. On a queue of its own that is the
  /// probe before, at most: its answer has come, but perhaps not its completion.
  class Backlog {
   public:
    BELFRY_FN explicit Backlog(const LoadedJobOf<View>& job)
        : state_(job.view.queues[job.peer * job.view.queues_a_peer].state) {}
    BELFRY_FN std::uint64_t before(Shared& channel, const device::Operation& op,
                                   const device::Operation&) const {
      channel.test(op);
      const std::uint64_t consumer = port::load<port::Scope::gpu>(&state_->consumer);
      return op.index > consumer ? op.index - consumer : 0;
    }
    BELFRY_FN std::uint64_t before(Own& channel, const device::Operation&,
                                   const device::Operation& last) const {
      return channel.test(last).ok() ? 0 : 1;
    }

   private:
    const device::QueueState* state_;
  };
};

struct LoadedProxy {
  using View = device::proxy::ProxyView;
  using Shared = device::proxy::Channel<
      ProxyPolicy<device::proxy::Protocol::shared_tuned, device::proxy::Form::payload_visible>>;
  using Own = device::proxy::Channel<
      ProxyPolicy<device::proxy::Protocol::tuned, device::proxy::Form::payload_visible>>;

  /// Descriptors that the worker takes before the probe's. In a shared ring: those before it. In a ring of
  /// its own: those of the worker's other rings between the put and the moment when the kernel sees that the
  /// probe is taken; an upper bound, for the worker goes on until it is seen.
  class Backlog {
   public:
    BELFRY_FN explicit Backlog(const LoadedJobOf<View>& job)
        : job_(job), taken_(port::load<port::Scope::system>(job.view.rings[0].taken)), others_(others()) {}
    BELFRY_FN std::uint64_t before(Shared&, const device::Operation& op, const device::Operation&) const {
      return op.index > taken_ ? op.index - taken_ : 0;
    }
    BELFRY_FN std::uint64_t before(Own&, const device::Operation& op, const device::Operation&) const {
      port::Patience patience(kKernelTimeout);
      while (port::poll<port::Scope::system>(job_.view.rings[0].taken) <= op.index)
        if (patience.is_over()) break;
      return others() - others_;
    }

   private:
    BELFRY_FN std::uint64_t others() const {
      std::uint64_t sum = 0;
      for (std::uint32_t ring = job_.workers; ring < job_.queues; ring += job_.workers)
        sum += port::load<port::Scope::system>(job_.view.rings[ring].taken);
      return sum;
    }
    const LoadedJobOf<View>& job_;
    std::uint64_t taken_;
    std::uint64_t others_;
  };
};

/// Block 0 is the probe, which asks or answers; all others load. A block is one thread.
/// \tparam Path   LoadedGda or LoadedProxy
/// \tparam shared whether background blocks use the probe's queue too
template <class Path, bool shared>
struct LoadedKernel {
  LoadedJobOf<typename Path::View> job;

  BELFRY_FN void operator()() const {
    const std::uint32_t block = port::block_index();
    if (block != 0) return load(block - 1);
    if (job.asks) {
      ask();
    } else {
      answer();
    }
    port::store<port::Scope::gpu>(job.stop, std::uint32_t{1});
  }

 private:
  using Shared = typename Path::Shared;
  template <bool is_shared, class A, class B>
  struct Choose {
    using Type = A;
  };
  template <class A, class B>
  struct Choose<false, A, B> {
    using Type = B;
  };
  using Probe = typename Choose<shared, Shared, typename Path::Own>::Type;

  BELFRY_FN void ask() const {
    Probe channel(job.view, job.peer, 0);
    std::uint64_t before = 0;
    device::Operation last;
    const std::uint64_t all = job.warm_up + job.count;
    for (std::uint64_t i = 0; i < all; ++i) {
      const std::uint64_t value = target_value(job.seed, i);
      const typename Path::Backlog backlog(job);
      const std::uint64_t begin = job.clock.now();
      const device::Operation op =
          channel.put_value(device::Thread{}, job.flag, value, device::Announce::now, kKernelTimeout);
      if (!op.ok()) {
        job.end->outcome = outcome_of(op);
        return;
      }
      // Looked at in between: the probe is on its way, and its answer is not missed.
      const std::uint64_t ahead = i < job.warm_up ? 0 : backlog.before(channel, op, last);
      const std::uint64_t seen = wait_for_flag(job, before);
      const std::uint64_t done = job.clock.now();
      if (seen == 0) return;
      if (seen != value) job.end->wrong = true;
      before = seen;
      last = op;
      if (i < job.warm_up) continue;
      job.round_trip[i - job.warm_up] = done - begin;
      job.ahead[i - job.warm_up] = ahead;
    }
    job.end->outcome = channel.flush(device::Thread{}, kKernelTimeout);
  }

  BELFRY_FN void answer() const {
    Probe channel(job.view, job.peer, 0);
    std::uint64_t before = 0;
    const std::uint64_t all = job.warm_up + job.count;
    for (std::uint64_t i = 0; i < all; ++i) {
      const std::uint64_t value = wait_for_flag(job, before);
      if (value == 0) return;
      before = value;
      const device::Operation op =
          channel.put_value(device::Thread{}, job.flag, value, device::Announce::now, kKernelTimeout);
      if (!op.ok()) {
        job.end->outcome = outcome_of(op);
        return;
      }
    }
    job.end->outcome = channel.flush(device::Thread{}, kKernelTimeout);
  }

  /// With a reserved queue 0, the others are dealt to the blocks; else all are.
  BELFRY_FN void load(std::uint32_t me) const {
    const std::uint32_t queue = shared ? me % job.queues : 1 + me % (job.queues - 1);
    Shared channel(job.view, job.peer, queue);
    RateResult& result = job.results[me];
    result.begin_ns = port::now_ns();
    std::uint64_t sent = 0;
    device::Operation op;
    // No waiting loads: a block that has room goes on, as it would on a GPU.
    while (op.ok() && port::load<port::Scope::gpu>(job.stop) == 0) {
      if (job.interval_ns != 0 && port::now_ns() - result.begin_ns < sent * job.interval_ns) {
        static_cast<void>(port::poll<port::Scope::gpu>(job.stop));  // a waiting load lets others run
        continue;
      }
      op = channel.put_value(device::Thread{}, job.target_of(me, sent), target_value(job.seed + me, sent),
                             device::Announce::now, kKernelTimeout);
      if (op.ok()) ++sent;
    }
    result.end_ns = port::now_ns();
    job.sent[me] = sent;
    result.end.outcome =
        op.ok() && sent != 0 ? channel.wait(device::Thread{}, op, kKernelTimeout) : outcome_of(op);
  }
};

}  // namespace belfry::bench
