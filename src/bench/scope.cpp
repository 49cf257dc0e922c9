/// \file
/// Experiment `scope`: what it costs to complete more than the queue that was used.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>

#include "bench/clock.hpp"
#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/device_group.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/op_path.hpp"
#include "bench/rate_shape.hpp"

namespace belfry::bench {
namespace {

constexpr std::array<std::uint32_t, 5> kQueueCounts = {1, 2, 4, 8, 16};

struct ScopeName {
  CompletionScope scope;
  const char* name;
  const char* description;
  const char* reference;
};
constexpr std::array<ScopeName, 4> kScopes = {{
    {CompletionScope::queue, "queue", "flush of the queue used", ""},
    {CompletionScope::peer, "peer", "flush of all queues to the peer used", ""},
    {CompletionScope::quiet, "quiet", "quiet: all queues to all peers", "completion/all-qp-quiet"},
    {CompletionScope::signal, "signal", "a signal after the put, and its own completion", ""},
}};

constexpr std::uint32_t kSlots = 512;
constexpr std::size_t kSignalOffset = kSlots * sizeof(std::uint64_t);
constexpr std::size_t kScopeWindowBytes = kSignalOffset + 64;

std::string arm_name(const ScopeName& scope, std::uint32_t queues) {
  return std::string(scope.name) + "-q" + std::to_string(queues);
}

struct ScopeArm {
  ScopeName scope;
  std::uint32_t queues;
};

std::map<std::string, ScopeArm> scope_arms() {
  std::map<std::string, ScopeArm> arms;
  for (const ScopeName& scope : kScopes) {
    for (const std::uint32_t queues : kQueueCounts) arms[arm_name(scope, queues)] = {scope, queues};
  }
  return arms;
}

constexpr std::uint32_t kPeers = 2;

/// PE 0's queues, as many as any arm has, dealt to two peers.
DeviceGroup make_group(const RunContext& run) {
  host::DeviceEndpointOptions options = device_options(kScopeWindowBytes);
  options.queues_a_peer = kQueueCounts.back() / kPeers;
  options.blocks = 128;
  return {run, 1 + kPeers, options};
}

/// A view of `queues` of them: half of them to either peer, or one to one peer. All arms use the same queues
/// of the same device, which has the others' registers to look at all the time.
struct Part {
  device::EndpointView view;
  std::shared_ptr<device::SendQueue> queues;  ///< what the view points to
};
Part part_of(const DeviceGroup& group, KernelRunner& runner, std::uint32_t queues) {
  Part part;
  part.view = group.pe(0).view();
  const std::uint32_t peers = std::min(queues, kPeers);
  part.view.queues_a_peer = queues / peers;
  std::vector<device::SendQueue> table(std::size_t{part.view.pe_count} * part.view.queues_a_peer);
  for (std::uint32_t peer = 1; peer <= peers; ++peer) {
    for (std::uint32_t index = 0; index < part.view.queues_a_peer; ++index) {
      table[peer * part.view.queues_a_peer + index] = group.pe(0).send_queue(peer, index);
    }
  }
  part.queues = place_of<device::SendQueue>(runner, table);
  part.view.queues = part.queues.get();
  return part;
}

struct ScopeSamples {
  std::vector<double> put_completion;
  bool verified = false;
};

ScopeSamples measure_scope(const DeviceGroup& group, KernelRunner& runner, const Clock& clock,
                           const ScopeArm& arm, std::uint64_t count, std::uint64_t seed) {
  const CompletionScope scope = arm.scope.scope;
  const Part part = part_of(group, runner, arm.queues);
  const auto ticks = allocate_of<std::uint64_t>(runner, count);
  const auto end = allocate_of<KernelEnd>(runner, 1);
  RateJob target;  // the same target and check as that of one thread at full rate
  target.seed = seed;
  target.target = {{0, 0}, sizeof(std::uint64_t), kSlots};
  ScopeJob job;
  job.view = part.view;
  job.clock = clock.ticks();
  job.peer = 1;
  job.seed = seed;
  job.warm_up = warm_up_of(count);
  job.count = count;
  job.target = target.target;
  job.signal = {0, kSignalOffset};
  job.completion = ticks.get();
  job.end = end.get();
  target.messages_a_thread = job.warm_up + count;
  std::uint64_t signals = 0;
  group.edit_window(1, [&](std::span<std::byte> window) {
    clear_rate_target(window, target, 1);
    std::memcpy(window.data() + kSignalOffset, &signals, sizeof signals);
  });
  runner.scope(scope, job);
  check_end(*end, "a put and its completion");

  ScopeSamples samples;
  samples.put_completion = to_microseconds(ticks.get(), count, clock);
  const std::vector<std::byte> window = group.read_window(1);
  std::memcpy(&signals, window.data() + kSignalOffset, sizeof signals);
  const std::uint64_t expected = scope == CompletionScope::signal ? target.messages_a_thread : 0;
  samples.verified = signals == expected && rate_target_is_right(window, {}, target, 1);
  return samples;
}

struct Series {
  PassSeries put_completion;
  bool verified = true;
};

/// What 16 queues cost over one, for each scope of which both were measured.
void add_ratios(const RunContext& run, const std::map<std::string, Record>& medians,
                std::vector<Record>& records) {
  for (const ScopeName& scope : kScopes) {
    const auto one = medians.find(arm_name(scope, kQueueCounts.front()));
    const auto all = medians.find(arm_name(scope, kQueueCounts.back()));
    if (one == medians.end() || all == medians.end()) continue;
    Record record = run.record(all->first, "put_completion_ratio");
    record.p50 = *all->second.p50 / *one->second.p50;
    record.verified = *one->second.verified && *all->second.verified;
    record.parameters = all->second.parameters;
    set(record.parameters, "against_qps", std::int64_t{kQueueCounts.front()});
    records.push_back(std::move(record));
  }
}

std::vector<Record> records_of(const RunContext& run, const std::map<std::string, ScopeArm>& arms,
                               const std::map<std::string, Series>& all) {
  std::vector<Record> records;
  std::map<std::string, Record> medians;
  for (const std::string& arm : run.arms()) {
    const Series& series = all.at(arm);
    const ScopeArm& shape = arms.at(arm);
    Record record = run.record(arm, "put_completion", series.put_completion);
    record.verified = series.verified;
    set(record.parameters, "qps", std::int64_t{shape.queues});
    set(record.parameters, "peers", std::int64_t{std::min(shape.queues, kPeers)});
    set(record.parameters, "scope", std::string(shape.scope.name));
    set(record.parameters, "bytes", std::int64_t{8});
    set(record.parameters, "outstanding", std::int64_t{1});
    medians.emplace(arm, record);
    records.push_back(std::move(record));
  }
  add_ratios(run, medians, records);
  return records;
}

std::vector<Record> run_scope(RunContext& run) {
  const auto arms = scope_arms();
  const DeviceGroup group = make_group(run);
  const host::DeviceEndpoint& first = group.pe(0);
  run.use_nic(describe_nic_of_lanes(run, first.context()));
  for (const std::string& decision : first.decisions()) run.note(decision);
  const auto runner = make_runner(run, 1u + (first.context().is_software_nic() ? 1u : 0u) > usable_cores());
  const Clock clock = runner->clock();
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) {
    ScopeSamples samples =
        measure_scope(group, *runner, clock, arms.at(name), run.iterations(), run.options().seed);
    Series& series = all[name];
    series.put_completion.add_samples(std::move(samples.put_completion));
    series.verified = series.verified && samples.verified;
  });
  return records_of(run, arms, all);
}

}  // namespace

Experiment scope_experiment() {
  Experiment experiment;
  experiment.name = "scope";
  experiment.description = "what completing more than the queue used costs, by number of queues";
  for (const ScopeName& scope : kScopes) {
    for (const std::uint32_t queues : kQueueCounts) {
      experiment.arms.push_back({arm_name(scope, queues),
                                 std::string(scope.description) + "; " + std::to_string(queues) +
                                     (queues == 1 ? " queue" : " queues"),
                                 queues == kQueueCounts.back() ? scope.reference : ""});
    }
  }
  experiment.metrics = {
      {"put_completion", "us", "from before put_value() to the end of the completion"},
      {"put_completion_ratio", "ratio", "median with 16 queues over median with one, of the same scope"},
  };
  experiment.iterations = 5000;
  experiment.runs_on_gpu = true;
  experiment.run = run_scope;
  return experiment;
}

}  // namespace belfry::bench
