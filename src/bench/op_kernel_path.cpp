#include "bench/op_kernel_path.hpp"

namespace belfry::bench {
namespace {

constexpr Slots kTarget{{0, kGuardBytes}, kSlotBytes, kTargetSlots};
constexpr Slots kSource{{0, kSourceOffset}, kSlotBytes, kSources};

}  // namespace

host::Windows kernel_windows(const OpEnd& end, device::MemoryKind kind) {
  const host::Memory& memory = end.endpoint().memory();
  const host::WindowOptions window{.bytes = memory.bytes(), .adopt = memory.data(), .kind = kind};
  return {end.group(), end.endpoint().domain(), {&window, 1}};
}

template <class View>
KernelPath<View>::KernelPath(const View& view, int peer, std::uint64_t seed, KernelRunner& puts,
                             KernelRunner& round_trips, const Clock& clock, std::string arm)
    : view_(view),
      puts_(puts),
      round_trips_(round_trips),
      clock_(clock),
      arm_(std::move(arm)),
      peer_(static_cast<std::uint32_t>(peer)),
      seed_(seed) {}

template <class View>
void KernelPath<View>::puts(std::uint64_t count, PutSamples& samples) {
  const auto issue = allocate_of<std::uint64_t>(puts_, count);
  const auto completion = allocate_of<std::uint64_t>(puts_, count);
  const auto end = allocate_of<KernelEnd>(puts_, 1);
  PutJobOf<View> job;
  job.view = view_;
  job.clock = clock_.ticks();
  job.peer = peer_;
  job.seed = seed_;
  job.warm_up = warm_up_of(count);
  job.count = count;
  job.target = kTarget;
  job.source = kSource;
  job.issue = issue.get();
  job.completion = completion.get();
  job.end = end.get();
  puts_.puts(arm_, job);
  check_end(*end, "the puts of " + arm_);
  samples.issue = to_microseconds(issue.get(), count, clock_);
  samples.put_completion = to_microseconds(completion.get(), count, clock_);
}

template <class View>
FlagJobOf<View> KernelPath<View>::flag_job(std::uint64_t count, KernelEnd* end) const {
  FlagJobOf<View> job;
  job.view = view_;
  job.clock = clock_.ticks();
  job.peer = peer_;
  job.seed = seed_;
  job.warm_up = warm_up_of(count);
  job.count = count;
  job.flag = {0, kFlagOffset};
  job.source = kSource;
  job.end = end;
  return job;
}

template <class View>
void KernelPath<View>::round_trips(std::uint64_t count, RoundTripSamples& samples) {
  const auto ticks = allocate_of<std::uint64_t>(puts_, count);
  const auto end = allocate_of<KernelEnd>(puts_, 1);
  FlagJobOf<View> job = flag_job(count, end.get());
  job.round_trip = ticks.get();
  round_trips_.round_trips(arm_, job);
  check_end(*end, "the round trips of " + arm_);
  samples.round_trip = to_microseconds(ticks.get(), count, clock_);
  samples.verified = samples.verified && !end->wrong;
}

template <class View>
void KernelPath<View>::echo(std::uint64_t count) {
  const auto end = allocate_of<KernelEnd>(puts_, 1);
  round_trips_.echo(arm_, flag_job(count, end.get()));
  check_end(*end, "the answers of " + arm_);
}

template class KernelPath<device::EndpointView>;
template class KernelPath<device::proxy::ProxyView>;

}  // namespace belfry::bench
