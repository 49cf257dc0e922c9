/// \file
/// Experiment `rate`: how many messages a second mini-gda posts, by threads, queues, WQEs a doorbell and who
/// shares a queue in which way.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/rate_run.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kCustomArm = "custom";
constexpr std::uint32_t kQueueBlocks = 1024;

RateShape custom_shape(const RunContext& run) {
  const auto number = [&](const char* name) { return static_cast<std::uint32_t>(run.parameter(name)); };
  return {number("threads"), number("qps"), number("blocks"), number("batch"),
          static_cast<Cooperation>(run.parameter("sharing"))};
}

/// The chosen arms that are measured: `custom` only where it was asked for.
std::map<std::string, RateShape> shapes_of(const RunContext& run) {
  std::map<std::string, RateShape> shapes;
  for (const std::string& arm : run.arms()) {
    if (arm == kCustomArm) {
      if (wants_arm(run, kCustomArm)) shapes.emplace(arm, custom_shape(run));
      continue;
    }
    const auto& arms = rate_arms();
    const auto known =
        std::find_if(arms.begin(), arms.end(), [&](const RateArm& a) { return arm == a.name; });
    shapes.emplace(arm, known->shape);
  }
  for (const auto& [name, shape] : shapes) check(shape);
  return shapes;
}

std::uint32_t most(const std::map<std::string, RateShape>& shapes, std::uint32_t RateShape::*member) {
  std::uint32_t value = 1;
  for (const auto& [name, shape] : shapes) value = std::max(value, shape.*member);
  return value;
}

/// Queues of one doorbell mode that the largest arm uses.
std::uint32_t most_queues(const std::map<std::string, RateShape>& shapes, bool no_record) {
  std::uint32_t queues = 0;
  for (const auto& [name, shape] : shapes) {
    if (shape.no_record == no_record) queues = std::max(queues, shape.queues);
  }
  return queues;
}

/// Warps and the software NIC's thread, where there are more of them than cores.
bool is_crowded(const RateShape& shape, bool software_nic) {
  return shape.warps() + (software_nic ? 1 : 0) > usable_cores();
}

void note_crowded(RunContext& run, const std::map<std::string, RateShape>& shapes, bool software_nic) {
  std::string names;
  for (const auto& [name, shape] : shapes) {
    if (is_crowded(shape, software_nic)) names += (names.empty() ? "" : ", ") + name;
  }
  if (names.empty()) return;
  run.note(fmt::format("more warps{} than the {} cores: these arms measure the system's scheduler too: {}",
                       software_nic ? " and NIC threads" : "", usable_cores(), names));
}

struct Series {
  PassSeries rate;
  std::uint64_t messages = 0;
  bool verified = true;
};

Record record_of(const RunContext& run, const std::string& arm, const RateShape& shape,
                 const Series& series) {
  Record record = run.record(arm, "rate", series.rate);
  record.verified = series.verified;
  set(record.parameters, "threads", std::int64_t{shape.threads});
  set(record.parameters, "qps", std::int64_t{shape.queues});
  set(record.parameters, "blocks", std::int64_t{shape.blocks});
  set(record.parameters, "record", std::int64_t{shape.no_record ? 0 : 1});
  set(record.parameters, "batch", std::int64_t{shape.batch});
  set(record.parameters, "sharing", cooperation_names()[static_cast<std::size_t>(shape.cooperation)]);
  set(record.parameters, "bytes", std::int64_t{8});
  set(record.parameters, "payload", std::string("inline"));
  set(record.parameters, "messages", static_cast<std::int64_t>(series.messages));
  set(record.parameters, "queue_blocks", std::int64_t{kQueueBlocks});
  return record;
}

std::vector<Record> run_rate(RunContext& run) {
  const auto shapes = shapes_of(run);
  if (shapes.empty()) throw std::invalid_argument("no arm to measure");
  const std::uint32_t threads = most(shapes, &RateShape::threads);
  host::DeviceEndpointOptions options =
      device_options(std::size_t{threads} * kRateSlots * sizeof(std::uint64_t));
  options.queues_a_peer = std::max(most_queues(shapes, false), 1u);
  options.blocks = kQueueBlocks;
  const DeviceGroup group(run, 2, options);
  const host::Context& context = group.pe(0).context();
  // A queue has its doorbell mode from its creation.
  std::unique_ptr<DeviceGroup> without_record;
  if (const std::uint32_t queues = most_queues(shapes, true); queues != 0) {
    options.doorbell = device::DoorbellMode::no_record;
    options.queues_a_peer = queues;
    if (context.devx().no_record)
      without_record = std::make_unique<DeviceGroup>(run, 2, options);
    else
      run.note("arms without a doorbell record are left out: the device does not offer that mode");
  }
  run.use_nic(describe_nic_of_lanes(run, context));
  for (const std::string& decision : group.pe(0).decisions()) run.note(decision);
  if (!on_gpu(run)) note_crowded(run, shapes, context.is_software_nic());

  RateJob job;
  job.seed = run.options().seed;
  job.target = {{0, 0}, sizeof(std::uint64_t), kRateSlots};
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& arm, unsigned) {
    const auto found = shapes.find(arm);
    if (found == shapes.end()) return;
    const RateShape& shape = found->second;
    const auto runner = make_runner(run, is_crowded(shape, context.is_software_nic()));
    if (shape.no_record && without_record == nullptr) return;
    const DeviceGroup& used = shape.no_record ? *without_record : group;
    const RateFigure figure = measure_rate(used, *runner, shape, shape.kind(), job, run.iterations(), arm);
    Series& series = all[arm];
    series.rate.add_figure(figure.rate);
    series.messages = figure.messages;
    series.verified = series.verified && figure.verified;
  });
  std::vector<Record> records;
  for (const std::string& arm : run.arms()) {
    const auto found = all.find(arm);
    if (found == all.end()) continue;
    records.push_back(record_of(run, arm, shapes.at(arm), found->second));
  }
  return records;
}

}  // namespace

Experiment rate_experiment() {
  Experiment experiment;
  experiment.name = "rate";
  experiment.description = "how many 8 B messages a second mini-gda posts, and who shares a queue how";
  for (const RateArm& arm : rate_arms()) {
    experiment.arms.push_back({arm.name, arm.description, arm.reference});
  }
  experiment.arms.push_back(
      {kCustomArm, "--threads, --qps, --blocks, --batch and --sharing; measured if one of them is given",
       ""});
  experiment.metrics = {
      {"rate", "M msg/s", "from the first thread's start to the last one's last completion"}};
  experiment.parameters = {
      {"threads", 1, 1, kMostRateThreads, "of the arm custom: threads of the whole grid"},
      {"qps", 1, 1, kMostRateQueues, "of the arm custom: queues"},
      {"blocks", 1, 1, kMostRateThreads, "of the arm custom: blocks, the threads dealt to them"},
      {"batch", 1, 1, kMostRateBatch, "of the arm custom: WQEs a doorbell"},
      {"sharing", 0, 0, static_cast<std::int64_t>(cooperation_names().size()) - 1,
       "of the arm custom: who posts to a queue", cooperation_names()},
  };
  experiment.iterations = 100000;
  experiment.quick_iterations = 3000;
  experiment.runs_on_gpu = true;
  experiment.run = run_rate;
  return experiment;
}

}  // namespace belfry::bench
