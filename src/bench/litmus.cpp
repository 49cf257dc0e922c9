/// \file
/// Experiment `litmus`: whether a NIC on the GPU ever sees a doorbell before what it announces, by ordering.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "bench/describe_nic.hpp"
#include "bench/device_group.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/litmus_kernels.hpp"

namespace belfry::bench {
namespace {

constexpr std::uint32_t kMostPosters = 112;
constexpr std::uint32_t kMostBatch = 64;
constexpr std::uint32_t kBlocks = 112;  // leaves some multiprocessors to the NIC

/// What the user may choose.
struct Shape {
  std::uint32_t posters = 1;
  bool by_warp = false;
  std::uint32_t batch = 1;
  bool from_memory = false;
  std::uint32_t traffic_mib = 1;
  std::uint32_t traffic_threads = 1;  ///< in a block

  Grid grid() const { return {kBlocks, port::kWarpSize + traffic_threads}; }
  std::size_t traffic_bytes() const { return std::size_t{traffic_mib} << 20; }
  std::uint32_t lanes() const { return by_warp ? port::kWarpSize : 1; }
  std::uint32_t threads() const { return posters * lanes(); }  ///< that post
  std::size_t payload_bytes() const { return std::size_t{threads()} * batch * kLitmusBytes; }
};

Shape shape_of(const RunContext& run) {
  const auto number = [&](const char* name) { return static_cast<std::uint32_t>(run.parameter(name)); };
  Shape shape{number("posters"),     run.parameter("post-as") != 0,
              number("batch"),       run.parameter("payload") != 0,
              number("traffic-mib"), number("traffic-threads")};
  if (shape.by_warp && shape.batch > kMostBatch / port::kWarpSize)
    throw std::invalid_argument(
        fmt::format("--batch {} of a whole warp is more than a doorbell's {} WQEs: at most {}", shape.batch,
                    kMostBatch, kMostBatch / port::kWarpSize));
  return shape;
}

struct Arm {
  device::Ordering ordering;
  device::DoorbellMode mode;
  bool safe;
};

std::string name_of(device::Ordering ordering, device::DoorbellMode mode) {
  std::string name = device::ordering_name(ordering);
  std::replace(name.begin(), name.end(), '_', '-');
  return name + (mode == device::DoorbellMode::no_record ? "-no-record" : "");
}

/// \param polls_record whether the NIC looks at records without a doorbell, so that A2 does not hold
std::map<std::string, Arm> arms_of(bool polls_record) {
  std::map<std::string, Arm> arms;
  for_each_litmus_policy([&](auto policy) {
    using Policy = decltype(policy);
    const bool needs_a2 = device::needs_doorbell_only(Policy::ordering, Policy::doorbell_mode);
    const bool safe =
        device::safety_of(Policy::ordering) != device::Safety::unsafe && !(needs_a2 && polls_record);
    arms[name_of(Policy::ordering, Policy::doorbell_mode)] = {Policy::ordering, Policy::doorbell_mode, safe};
  });
  return arms;
}

std::unique_ptr<DeviceGroup> make_group(const RunContext& run, const Shape& shape,
                                        device::DoorbellMode mode) {
  auto options = device_options(2 * shape.payload_bytes());
  options.doorbell = mode;
  options.queues_a_peer = shape.posters;
  options.blocks = 256;
  // Payloads need no order among themselves, and go faster without.
  options.windows.front().access = host::kAllAccess | host::Access::relaxed_ordering;
  options.windows.push_back({.bytes = 2 * shape.traffic_bytes()});
  return std::make_unique<DeviceGroup>(run, 2, options);
}

/// Counts of one arm over all passes.
struct Tally {
  std::uint64_t writes = 0;
  std::uint64_t stale = 0;
  std::uint64_t torn = 0;
  std::uint64_t refused = 0;
  std::uint64_t violations() const { return stale + torn + refused; }
};

void add(Tally& tally, const LitmusResult& result, const std::string& arm) {
  check_end(result.end, "the writes of " + arm);
  tally.writes += result.writes;
  tally.stale += result.stale;
  tally.torn += result.torn;
  tally.refused += result.refused;
}

void measure(const RunContext& run, const Shape& shape, const DeviceGroup& group, LitmusRunner& runner,
             const Arm& arm, const std::string& name, Tally& tally) {
  for (const int pe : {0, 1})
    group.edit_window(
        pe, [](std::span<std::byte> window) { std::fill(window.begin(), window.end(), std::byte{}); });
  const auto results =
      std::static_pointer_cast<LitmusResult>(runner.allocate(shape.threads() * sizeof(LitmusResult)));
  const auto traffic = group.pe(0).windows().memory(1).span();
  group.clear_start(0, 1, 128);
  LitmusJob job;
  job.view = group.pe(0).view();
  job.peer = 1;
  job.posters = shape.posters;
  job.is_control = !arm.safe;
  job.lanes = shape.lanes();
  job.batch = shape.batch;
  job.from_memory = shape.from_memory;
  job.rounds = std::max<std::uint64_t>(run.iterations() / (shape.threads() * shape.batch), 1);
  job.source = {0, 0};
  job.target = {0, shape.payload_bytes()};
  job.landed = reinterpret_cast<const std::uint64_t*>(group.window(1).data() + shape.payload_bytes());
  job.traffic = reinterpret_cast<std::uint64_t*>(traffic.data());
  job.traffic_words = traffic.size() / sizeof(std::uint64_t);
  job.results = results.get();
  runner.run(arm.ordering, arm.mode, shape.grid(), job);
  for (std::uint32_t i = 0; i < shape.threads(); ++i) add(tally, results.get()[i], name);
}

Record record_of(const RunContext& run, const Shape& shape, const std::string& name, const Arm& arm,
                 const Tally& tally) {
  Record record = run.record(name, "violations");
  record.p50 = static_cast<double>(tally.violations());
  record.count = tally.writes;
  // Without any in n writes, their share is below 3/n with 95 % confidence.
  if (tally.violations() == 0) record.upper = 3.0;
  record.verified = !arm.safe || tally.violations() == 0;
  set(record.parameters, "writes", static_cast<std::int64_t>(tally.writes));
  set(record.parameters, "stale", static_cast<std::int64_t>(tally.stale));
  set(record.parameters, "torn", static_cast<std::int64_t>(tally.torn));
  set(record.parameters, "refused", static_cast<std::int64_t>(tally.refused));
  set(record.parameters, "traffic_mib", std::int64_t{shape.traffic_mib});
  set(record.parameters, "traffic_threads", std::int64_t{shape.traffic_threads});
  set(record.parameters, "posters", std::int64_t{shape.posters});
  set(record.parameters, "post_as", std::string(shape.by_warp ? "warp" : "thread"));
  set(record.parameters, "batch", std::int64_t{shape.batch});
  set(record.parameters, "payload", std::string(shape.from_memory ? "pointer" : "inline"));
  set(record.parameters, "claimed", std::string(arm.safe ? "safe" : "unsafe"));
  return record;
}

void note_bounds(RunContext& run, const std::map<std::string, Arm>& arms,
                 const std::map<std::string, Tally>& tallies) {
  std::string blind;
  for (const auto& [name, tally] : tallies) {
    const Arm& arm = arms.at(name);
    const auto writes = static_cast<double>(tally.writes);
    if (tally.violations() == 0) {
      run.note(
          fmt::format("{}: none in {:.3g} writes: fewer than 1 in {:.2g}, 95 % confidence (rule of three)",
                      name, writes, writes / 3));
    } else {
      run.note(fmt::format("{}: {} stale, {} torn and {} refused by the NIC in {:.3g} writes", name,
                           tally.stale, tally.torn, tally.refused, writes));
    }
    if (!arm.safe && tally.violations() == 0) blind += (blind.empty() ? "" : ", ") + name;
  }
  if (!blind.empty())
    run.note("BLIND: the unsafe control " + blind +
             " saw no violation; a zero of this run proves nothing there");
}

std::vector<Record> run_litmus(RunContext& run) {
  if (!on_gpu(run))
    throw std::invalid_argument("litmus needs --lanes cuda: a CPU's lanes keep their stores in order");
  const auto arms = arms_of(run.options().engine.polls_records);
  const Shape shape = shape_of(run);
  const auto runner = make_litmus_runner(gpu_of(run, 0));
  // Posters look at what has landed.
  let_kernels_reach_peers(run);
  // One at a time: queues that nobody posts to keep the NIC from those that race.
  device::DoorbellMode mode = arms.at(run.arms().front()).mode;
  std::unique_ptr<DeviceGroup> group = make_group(run, shape, mode);
  run.use_nic(describe_nic_of_lanes(run, group->pe(0).context()));
  for (const std::string& decision : group->pe(0).decisions()) run.note(decision);
  std::map<std::string, Tally> tallies;
  run.interleave([&](const std::string& name, unsigned) {
    const Arm& arm = arms.at(name);
    if (arm.mode != mode) {
      group.reset();
      mode = arm.mode;
      group = make_group(run, shape, mode);
    }
    measure(run, shape, *group, *runner, arm, name, tallies[name]);
  });
  note_bounds(run, arms, tallies);
  std::vector<Record> records;
  for (const std::string& name : run.arms())
    records.push_back(record_of(run, shape, name, arms.at(name), tallies.at(name)));
  return records;
}

}  // namespace

Experiment litmus_experiment() {
  Experiment experiment;
  experiment.name = "litmus";
  experiment.description = "whether a NIC on the GPU sees a doorbell before what it announces, by ordering";
  for (const auto& [name, arm] : arms_of(false))
    experiment.arms.push_back(
        {name, arm.safe ? "claimed safe: no violation" : "the control: must be seen to fail", ""});
  experiment.metrics = {{"violations", "count",
                         "whose payload was an older one's (stale) or parts of two (torn), or that the NIC "
                         "refused, under traffic"}};
  experiment.parameters = {
      {"posters", 64, 1, kMostPosters,
       "threads or warps that post, each on a queue and in a block of its own"},
      {"post-as",
       0,
       0,
       1,
       "a thread alone, or a warp with one doorbell for all its lanes",
       {"thread", "warp"}},
      {"batch", 1, 1, kMostBatch, "WQEs of a thread for each doorbell; of a warp's lanes 2 at most"},
      {"traffic-mib", 32, 1, 4096, "MiB that the other threads write to; an H200's L2 holds 50"},
      {"traffic-threads", 128, 0, 992, "of each block: they write as fast as they can"},
      {"payload", 0, 0, 1, "8 B in the WQE, or 32 B that the NIC fetches", {"inline", "pointer"}},
  };
  experiment.runs_on_gpu = true;
  experiment.passes = 2;
  experiment.iterations = 20'000'000;
  experiment.quick_iterations = 500'000;
  experiment.run = run_litmus;
  return experiment;
}

}  // namespace belfry::bench
