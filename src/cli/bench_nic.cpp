#include "cli/bench_nic.hpp"

#include <algorithm>
#include <string>

#include "belfry/host/device_list.hpp"
#include "belfry/host/environment.hpp"
#include "cli/commands.hpp"
#include "cli/reexec.hpp"
#include "softnic/config.hpp"

namespace belfry::cli {
namespace {

using Kind = host::DeviceRequest::Kind;

/// The peer process of `--processes 2` is told the fabric's name.
softnic::Config softnic_config(const std::string& fabric, const std::string& group) {
  softnic::Config config = config_with_own_fabric("bench", group);
  if (!fabric.empty()) config.fabric = fabric;
  return config;
}

bench::EngineSettings engine_settings(const softnic::GpuConfig& config) {
  bench::EngineSettings settings;
  if (config.gpu) settings.gpu = static_cast<int>(*config.gpu);
  settings.polls_records = config.poll == softnic::GpuPoll::record;
  settings.doorbells_on_gpu = config.doorbells == softnic::GpuDoorbells::gpu;
  settings.unordered_writes = config.unordered_writes;
  settings.idle = config.idle;
  return settings;
}

bool software_nic_needed(Kind request) {
  const host::DeviceList devices;
  if (request == Kind::automatic) return devices.size() == 0;
  const auto infos = devices.infos();
  return std::none_of(infos.begin(), infos.end(), [](const auto& info) { return info.software_nic; });
}

}  // namespace

void choose_nic(const bench::Experiment& experiment, bench::Options& options, const std::string& group) {
  if (!experiment.needs_nic) return;
  // Now: a process that runs under the software NIC takes its settings out of the environment below.
  if (options.lanes == "cuda") options.engine = engine_settings(softnic::Config::from_environment().gpu);
  if (options.nic.empty()) options.nic = host::Environment::of_this_process().nic;
  Kind request = host::DeviceRequest::parse(options.nic).kind;
  if (experiment.software_nic_only) {
    if (request == Kind::named) {
      throw CLI::ValidationError("--nic", "experiment " + experiment.name +
                                              " measures the software NIC; leave --nic " + options.nic +
                                              " out");
    }
    request = Kind::software;
    options.nic = "soft";
  }
  if (is_under_softnic()) {
    options.fabric = softnic::Config::from_environment().fabric;
    options.nic = "soft";
    restore_environment();
    return;
  }
  if (request == Kind::named || !software_nic_needed(request)) return;
  reexec_under_softnic(invocation().argc, invocation().argv, softnic_config(options.fabric, group));
}

}  // namespace belfry::cli
