#include "bench/op_gda.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "bench/device_group.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/proxy_group.hpp"

namespace belfry::bench {
namespace {

/// The NIC has seen a doorbell after so long, and its line of the register is the NIC's again.
constexpr double kDoorbellPauseUs = 1.0;

/// What an arm's queues are made with.
host::DeviceEndpointOptions options_for(const device::Requirements& requirements) {
  auto options = host::DeviceEndpointOptions::from(host::Environment::of_this_process());
  options.meet(requirements);
  options.blocks = 128;
  be_patient(options.connection);
  return options;
}

bool is_kind(const host::DeviceEndpointOptions& options, const device::Requirements& requirements) {
  return options.doorbell == requirements.doorbell_mode &&
         options.completions == requirements.completion_layout;
}

}  // namespace

GdaEnd::GdaEnd(host::Bootstrap& group, const host::Windows& windows, const std::vector<std::string>& arms) {
  std::vector<host::DeviceEndpointOptions> made;
  for_each_op_arm([&](auto arm) {
    if (arm.assisted || std::find(arms.begin(), arms.end(), arm.name) == arms.end()) return;
    using Policy = typename decltype(arm)::Policy;
    const device::Requirements requirements = device::requirements_of<Policy>();
    const auto known = std::find_if(made.begin(), made.end(),
                                    [&](const auto& options) { return is_kind(options, requirements); });
    const auto index = static_cast<std::size_t>(known - made.begin());
    if (known == made.end()) {
      made.push_back(options_for(requirements));
      endpoints_.push_back(std::make_unique<host::DeviceEndpoint>(group, windows, made.back()));
    }
    endpoints_[index]->admit(requirements);
    by_arm_[arm.name] = endpoints_[index].get();
  });
}

const host::DeviceEndpoint& GdaEnd::endpoint(const std::string& arm) const { return *by_arm_.at(arm); }

bool is_assisted(const std::string& arm) {
  bool found = false;
  for_each_op_arm([&](auto a) { found = found || (a.assisted && arm == a.name); });
  return found;
}

void forward_by_cpu(host::DeviceEndpointOptions& options, bool crowded) {
  options.doorbell_path = host::DoorbellPath::cpu_assisted;
  options.forwarder.idle = proxy_options(crowded).idle;
  options.forwarder.pin = false;
  // A thread that waits for a core is not lost.
  options.forwarder.stall = std::chrono::seconds(kKernelWaitSeconds);
}

namespace {

host::DeviceEndpointOptions assisted_options(const std::string& name, bool crowded) {
  host::DeviceEndpointOptions options;
  for_each_op_arm([&](auto arm) {
    if (name == arm.name) options = options_for(device::requirements_of<typename decltype(arm)::Policy>());
  });
  forward_by_cpu(options, crowded);
  return options;
}

}  // namespace

AssistedPath::AssistedPath(const OpEnd& end, const host::Windows& windows, bool crowded, KernelRunner& runner,
                           const Clock& clock, const std::string& arm)
    : endpoint_(end.group(), windows, assisted_options(arm, crowded)),
      path_(endpoint_.view(), end.peer(), end.seed(), runner, runner, clock, arm) {}

std::vector<double> measure_bare(const std::string& arm, const OpEnd& end, const device::EndpointView& view,
                                 KernelRunner& runner, const Clock& clock, std::uint64_t count) {
  const auto issue = allocate_of<std::uint64_t>(runner, count);
  DoorbellJob job;
  job.view = view;
  job.clock = clock.ticks();
  job.peer = static_cast<std::uint32_t>(end.peer());
  job.fence = arm == kFenceArm;
  job.count = count;
  job.pause_ticks = clock.ticks_in(kDoorbellPauseUs);
  job.issue = issue.get();
  runner.doorbells(job);
  return to_microseconds(issue.get(), count, clock);
}

}  // namespace belfry::bench
