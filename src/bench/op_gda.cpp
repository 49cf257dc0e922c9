#include "bench/op_gda.hpp"

#include <algorithm>
#include <stdexcept>

#include "bench/device_group.hpp"
#include "bench/kernels/policies.hpp"

namespace belfry::bench {
namespace {

/// The NIC has seen a doorbell after so long, and its line of the register is the NIC's again.
constexpr double kDoorbellPauseUs = 1.0;

constexpr Slots kTarget{{0, kGuardBytes}, kSlotBytes, kTargetSlots};
constexpr Slots kSource{{0, kSourceOffset}, kSlotBytes, kSources};

bool is_kind(const host::DeviceEndpointOptions& options, const device::Requirements& requirements) {
  return options.doorbell == requirements.doorbell_mode &&
         options.completions == requirements.completion_layout;
}

}  // namespace

GdaEnd::GdaEnd(const OpEnd& end, const std::vector<std::string>& arms) {
  const host::Memory& memory = end.endpoint().memory();
  const host::WindowOptions window{.bytes = memory.bytes(), .adopt = memory.data()};
  host::Bootstrap& group = end.group();
  const host::Windows windows(group, end.endpoint().domain(), {&window, 1});
  std::vector<host::DeviceEndpointOptions> made;
  for_each_op_arm([&](auto arm) {
    if (std::find(arms.begin(), arms.end(), arm.name) == arms.end()) return;
    using Policy = typename decltype(arm)::Policy;
    const device::Requirements requirements = device::requirements_of<Policy>();
    const auto known = std::find_if(made.begin(), made.end(),
                                    [&](const auto& options) { return is_kind(options, requirements); });
    const auto index = static_cast<std::size_t>(known - made.begin());
    if (known == made.end()) {
      auto options = host::DeviceEndpointOptions::from(host::Environment::of_this_process());
      options.meet(requirements);
      options.blocks = 128;
      be_patient(options.connection);
      made.push_back(options);
      endpoints_.push_back(std::make_unique<host::DeviceEndpoint>(group, windows, options));
    }
    endpoints_[index]->admit(requirements);
    by_arm_[arm.name] = endpoints_[index].get();
  });
}

const host::DeviceEndpoint& GdaEnd::endpoint(const std::string& arm) const { return *by_arm_.at(arm); }

GdaPath::GdaPath(const OpEnd& end, const GdaEnd& gda, KernelRunner& puts, KernelRunner& round_trips,
                 const Clock& clock, std::string arm)
    : endpoint_(gda.endpoint(arm)),
      puts_(puts),
      round_trips_(round_trips),
      clock_(clock),
      arm_(std::move(arm)),
      peer_(static_cast<std::uint32_t>(end.peer())),
      seed_(end.seed()) {}

void GdaPath::puts(std::uint64_t count, PutSamples& samples) {
  const auto issue = allocate_of<std::uint64_t>(puts_, count);
  const auto completion = allocate_of<std::uint64_t>(puts_, count);
  const auto end = allocate_of<KernelEnd>(puts_, 1);
  PutJob job;
  job.view = endpoint_.view();
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

FlagJob GdaPath::flag_job(std::uint64_t count, KernelEnd* end) const {
  FlagJob job;
  job.view = endpoint_.view();
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

void GdaPath::round_trips(std::uint64_t count, RoundTripSamples& samples) {
  const auto ticks = allocate_of<std::uint64_t>(puts_, count);
  const auto end = allocate_of<KernelEnd>(puts_, 1);
  FlagJob job = flag_job(count, end.get());
  job.round_trip = ticks.get();
  round_trips_.round_trips(arm_, job);
  check_end(*end, "the round trips of " + arm_);
  samples.round_trip = to_microseconds(ticks.get(), count, clock_);
  samples.verified = samples.verified && !end->wrong;
}

void GdaPath::echo(std::uint64_t count) {
  const auto end = allocate_of<KernelEnd>(puts_, 1);
  round_trips_.echo(arm_, flag_job(count, end.get()));
  check_end(*end, "the answers of " + arm_);
}

std::vector<double> measure_doorbells(const OpEnd& end, const device::EndpointView& view,
                                      KernelRunner& runner, const Clock& clock, std::uint64_t count) {
  const auto issue = allocate_of<std::uint64_t>(runner, count);
  DoorbellJob job;
  job.view = view;
  job.clock = clock.ticks();
  job.peer = static_cast<std::uint32_t>(end.peer());
  job.count = count;
  job.pause_ticks = clock.ticks_in(kDoorbellPauseUs);
  job.issue = issue.get();
  runner.doorbells(job);
  return to_microseconds(issue.get(), count, clock);
}

}  // namespace belfry::bench
