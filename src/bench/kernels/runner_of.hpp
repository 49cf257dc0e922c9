#pragma once
/// \file
/// KernelRunner on top of whatever launches a kernel. A launcher is a type with
///
///     const char* name() const;
///     std::shared_ptr<void> allocate(std::size_t bytes);   // zeroed
///     std::shared_ptr<void> place(const void* contents, std::size_t bytes);
///     Clock clock();
///     template <class Kernel> void launch(std::uint32_t blocks, std::uint32_t threads, const Kernel&
///     kernel);
///
/// where launch() returns when the kernel has ended, and throws std::runtime_error if it did not end well.

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "bench/kernel_runner.hpp"
#include "bench/kernels/handoff.hpp"
#include "bench/kernels/loaded.hpp"
#include "bench/kernels/payload.hpp"
#include "bench/kernels/publication.hpp"
#include "bench/kernels/put.hpp"
#include "bench/kernels/rate.hpp"
#include "bench/kernels/scope.hpp"

namespace belfry::bench {

template <class Launcher>
class RunnerOf final : public KernelRunner {
 public:
  template <class... Arguments>
  explicit RunnerOf(Arguments&&... arguments) : launcher_(std::forward<Arguments>(arguments)...) {}

  const char* name() const override { return launcher_.name(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return launcher_.allocate(bytes); }
  std::shared_ptr<void> place(const void* contents, std::size_t bytes) override {
    return launcher_.place(contents, bytes);
  }
  Clock clock() override { return launcher_.clock(); }

  void puts(const std::string& arm, const PutJob& job) override { run_arm<PutKernel>(arm, job); }
  void puts(const std::string& arm, const ProxyPutJob& job) override { run_arm<PutKernel>(arm, job); }
  void round_trips(const std::string& arm, const FlagJob& job) override {
    run_arm<RoundTripKernel>(arm, job);
  }
  void round_trips(const std::string& arm, const ProxyFlagJob& job) override {
    run_arm<RoundTripKernel>(arm, job);
  }
  void echo(const std::string& arm, const FlagJob& job) override { run_arm<EchoKernel>(arm, job); }
  void echo(const std::string& arm, const ProxyFlagJob& job) override { run_arm<EchoKernel>(arm, job); }
  void doorbells(const DoorbellJob& job) override { launcher_.launch(1, 1, DoorbellKernel{job}); }

  void scope(CompletionScope scope, const ScopeJob& job) override {
    switch (scope) {
      case CompletionScope::queue:
        return launcher_.launch(1, 1, ScopeKernel<CompletionScope::queue>{job});
      case CompletionScope::peer:
        return launcher_.launch(1, 1, ScopeKernel<CompletionScope::peer>{job});
      case CompletionScope::quiet:
        return launcher_.launch(1, 1, ScopeKernel<CompletionScope::quiet>{job});
      case CompletionScope::signal:
        return launcher_.launch(1, 1, ScopeKernel<CompletionScope::signal>{job});
    }
  }

  void rate(const RateKind& kind, Grid grid, const RateJob& job) override {
    using device::Publication;
    using device::Sharing;
    switch (kind.cooperation) {
      case Cooperation::thread:
        return own_rate(kind, grid, job);
      case Cooperation::lock:
        return shared_rate<Publication::lock>(kind, grid, job);
      case Cooperation::handoff:
        return shared_rate<Publication::handoff>(kind, grid, job);
      case Cooperation::warp:
        if (!kind.queue_shared) {
          if (kind.no_record)
            return warp_rate<Sharing::exclusive, device::DoorbellMode::no_record>(grid, job);
          return warp_rate<Sharing::exclusive>(grid, job);
        }
        return kind.across_blocks ? warp_rate<Sharing::gpu>(grid, job) : warp_rate<Sharing::block>(grid, job);
    }
  }
  void rate(bool from_memory, Grid grid, const ProxyRateJob& job) override {
    using Channel = device::proxy::Channel<
        ProxyPolicy<device::proxy::Protocol::tuned, device::proxy::Form::payload_visible>>;
    if (from_memory)
      return launcher_.launch(grid.blocks, grid.threads, ThreadRateKernel<Channel, PutFrom::memory>{job});
    launcher_.launch(grid.blocks, grid.threads, ThreadRateKernel<Channel, PutFrom::register_>{job});
  }
  void payload(PayloadForm form, const PutJob& job) override {
    using device::Payload;
    constexpr auto kRecord = device::DoorbellMode::record;
    constexpr auto kOrdering = device::default_ordering(kRecord);
    using Inline = device::gda::Channel<OpPolicy<kOrdering, kRecord, Payload::inlined>>;
    using Pointer = device::gda::Channel<OpPolicy<kOrdering, kRecord, Payload::pointer>>;
    switch (form) {
      case PayloadForm::value:
        return launcher_.launch(1, 1, PayloadKernel<Inline, PutFrom::register_>{job});
      case PayloadForm::inlined:
        return launcher_.launch(1, 1, PayloadKernel<Inline, PutFrom::memory>{job});
      case PayloadForm::pointer:
        return launcher_.launch(1, 1, PayloadKernel<Pointer, PutFrom::memory>{job});
    }
  }
  void payload(PayloadForm form, const ProxyPutJob& job) override {
    using device::proxy::Form;
    using device::proxy::Protocol;
    using Visible = device::proxy::Channel<ProxyPolicy<Protocol::tuned, Form::payload_visible>>;
    using Published = device::proxy::Channel<ProxyPolicy<Protocol::tuned, Form::payload_published>>;
    switch (form) {
      case PayloadForm::value:
        return launcher_.launch(1, 1, PayloadKernel<Visible, PutFrom::register_>{job});
      case PayloadForm::inlined:
        throw std::invalid_argument("a proxy's descriptor holds a value, and no payload from memory");
      case PayloadForm::pointer:
        return launcher_.launch(1, 1, PayloadKernel<Published, PutFrom::memory>{job});
    }
  }
  void publication(PublicationKind kind, Grid grid, const PublicationJob& job) override {
    switch (kind) {
      case PublicationKind::lane:
        return launcher_.launch(grid.blocks, grid.threads, PublicationKernel<PublicationKind::lane>{job});
      case PublicationKind::lane_synced:
        return launcher_.launch(grid.blocks, grid.threads,
                                PublicationKernel<PublicationKind::lane_synced>{job});
      case PublicationKind::warp:
        return launcher_.launch(grid.blocks, grid.threads, PublicationKernel<PublicationKind::warp>{job});
    }
  }
  void loaded(bool shared, std::uint32_t blocks, const LoadedJob& job) override {
    loaded_by<LoadedGda>(shared, blocks, job);
  }
  void loaded(bool shared, std::uint32_t blocks, const ProxyLoadedJob& job) override {
    loaded_by<LoadedProxy>(shared, blocks, job);
  }
  void handoff(HandoffPutKind kind, Grid grid, const HandoffJob& job) override {
    using device::proxy::Form;
    using device::proxy::Protocol;
    switch (kind) {
      case HandoffPutKind::tuned:
        return handoff_by<ProxyPolicy<Protocol::tuned, Form::payload_visible>>(grid, job);
      case HandoffPutKind::tuned_published:
        return handoff_by<ProxyPolicy<Protocol::tuned, Form::payload_published>>(grid, job);
      case HandoffPutKind::shared_tuned:
        return handoff_by<ProxyPolicy<Protocol::shared_tuned, Form::payload_visible>>(grid, job);
      case HandoffPutKind::baseline:
        return handoff_by<ProxyPolicy<Protocol::baseline, Form::payload_visible>>(grid, job);
      case HandoffPutKind::baseline_published:
        return handoff_by<ProxyPolicy<Protocol::baseline, Form::payload_published>>(grid, job);
      case HandoffPutKind::bare:
        if (job.burst == 0) throw std::invalid_argument("bare stores know no full ring: in bursts only");
        return launcher_.launch(1, 1, HandoffBurstKernel<BareStore>{job});
    }
  }

 private:
  template <class Path, class Job>
  void loaded_by(bool shared, std::uint32_t blocks, const Job& job) {
    if (shared) return launcher_.launch(1 + blocks, 1, LoadedKernel<Path, true>{job});
    launcher_.launch(1 + blocks, 1, LoadedKernel<Path, false>{job});
  }
  template <class Policy>
  void handoff_by(Grid grid, const HandoffJob& job) {
    if (job.burst != 0) return launcher_.launch(1, 1, HandoffBurstKernel<HandoffPut<Policy>>{job});
    launcher_.launch(grid.blocks, grid.threads, HandoffStreamKernel<Policy>{job});
  }
  template <device::Sharing sharing, device::Publication publication, device::Payload payload, PutFrom from,
            device::DoorbellMode mode = device::DoorbellMode::record>
  void thread_rate(Grid grid, const RateJob& job) {
    launcher_.launch(
        grid.blocks, grid.threads,
        ThreadRateKernel<device::gda::Channel<RatePolicy<sharing, publication, payload, mode>>, from>{job});
  }
  void own_rate(const RateKind& kind, Grid grid, const RateJob& job) {
    using device::Payload;
    constexpr auto kOwn = device::Sharing::exclusive;
    constexpr auto kHandoff = device::Publication::handoff;
    if (kind.no_record)
      return thread_rate<kOwn, kHandoff, Payload::inlined, PutFrom::register_,
                         device::DoorbellMode::no_record>(grid, job);
    if (!kind.from_memory)
      return thread_rate<kOwn, kHandoff, Payload::inlined, PutFrom::register_>(grid, job);
    if (kind.pointer) return thread_rate<kOwn, kHandoff, Payload::pointer, PutFrom::memory>(grid, job);
    thread_rate<kOwn, kHandoff, Payload::inlined, PutFrom::memory>(grid, job);
  }
  template <device::Publication publication>
  void shared_rate(const RateKind& kind, Grid grid, const RateJob& job) {
    using device::Payload;
    using device::Sharing;
    if (kind.across_blocks)
      return thread_rate<Sharing::gpu, publication, Payload::inlined, PutFrom::register_>(grid, job);
    thread_rate<Sharing::block, publication, Payload::inlined, PutFrom::register_>(grid, job);
  }
  template <device::Sharing sharing, device::DoorbellMode mode = device::DoorbellMode::record>
  void warp_rate(Grid grid, const RateJob& job) {
    using Policy = RatePolicy<sharing, device::Publication::handoff, device::Payload::inlined, mode>;
    launcher_.launch(grid.blocks, grid.threads, WarpRateKernel<Policy>{job});
  }

  /// One thread of the kernel of the arm of this name, among those of the job's transport.
  template <template <class> class Kernel, class Job>
  void run_arm(const std::string& name, const Job& job) {
    bool found = false;
    const auto visit = [&](auto arm) {
      if (name != arm.name) return;
      found = true;
      launcher_.launch(1, 1, Kernel<decltype(arm)>{job});
    };
    if constexpr (std::is_same_v<decltype(job.view), device::EndpointView>) {
      for_each_op_arm(visit);
    } else {
      for_each_proxy_arm(visit);
    }
    if (!found) throw std::invalid_argument("no kernel for the arm '" + name + "'");
  }

  Launcher launcher_;
};

}  // namespace belfry::bench
