/// \file
/// Experiment `handoff`: how fast descriptors go from a kernel to a CPU thread, with no NIC.

#include <algorithm>
#include <array>
#include <map>

#include "bench/clock.hpp"
#include "bench/cores.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/handoff_rings.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kBareArm = "bare";

struct HandoffArm {
  const char* name;
  const char* description;
  HandoffPutKind kind;
  std::uint32_t rings = 1;  ///< 0: as many as --rings says
};
constexpr std::array<HandoffArm, 10> kArms = {{
    {"tuned", "one producer a ring: one posted 16 B store; payload visible already", HandoffPutKind::tuned},
    {"tuned-published", "the same behind a fence.sys", HandoffPutKind::tuned_published},
    {"tuned-r2", "as tuned, 2 rings, each of one producer", HandoffPutKind::tuned, 2},
    {"tuned-r4", "as tuned, 4 rings", HandoffPutKind::tuned, 4},
    {"tuned-r16", "as tuned, 16 rings", HandoffPutKind::tuned, 16},
    {"tuned-rings", "as tuned, with --rings rings", HandoffPutKind::tuned, 0},
    {"shared-tuned", "many producers may share the ring (here one does): reservation by an atomic",
     HandoffPutKind::shared_tuned},
    {"baseline", "atomic, read of the reader's progress, release of system scope", HandoffPutKind::baseline},
    {"baseline-published", "the same behind a fence.sys", HandoffPutKind::baseline_published},
    {kBareArm, "a 16 B store of a ready descriptor: no check, no room looked for", HandoffPutKind::bare},
}};

struct Metric {
  PassSeries series;
  bool verified = true;
};
using Metrics = std::map<std::pair<std::string, std::string>, Metric>;

/// What all arms of a run share.
class Handoff {
 public:
  explicit Handoff(const RunContext& run)
      : run_(run),
        runner_(make_runner(run, true)),
        clock_(runner_->clock()),
        slots_(std::uint32_t{1} << run.parameter("log-slots")),
        burst_(slots_ / 2) {}

  std::uint32_t rings(const HandoffArm& arm) const {
    return arm.rings == 0 ? static_cast<std::uint32_t>(run_.parameter("rings")) : arm.rings;
  }
  std::uint32_t slots() const { return slots_; }
  std::uint32_t readers(const HandoffArm& arm) const {
    return std::min(static_cast<std::uint32_t>(run_.parameter("readers")), rings(arm));
  }
  std::uint32_t burst() const { return burst_; }

  /// A GPU's atomics, fences and reads over PCIe take a microsecond each and more: fewer of them do.
  std::uint64_t descriptors(const HandoffArm& arm) const {
    const bool slow = arm.kind != HandoffPutKind::tuned && arm.kind != HandoffPutKind::bare;
    return on_gpu(run_) && slow ? std::max<std::uint64_t>(run_.iterations() / 32, 1) : run_.iterations();
  }

  /// M descriptors/s through the arm's rings together.
  double stream(const HandoffArm& arm, bool& verified) {
    const std::uint32_t rings = this->rings(arm);
    const std::uint64_t count = std::max<std::uint64_t>(descriptors(arm) / rings, 1);
    const auto results = fill(arm, rings, count, 0, nullptr, verified);
    std::uint64_t begin = UINT64_MAX;
    std::uint64_t end = 0;
    for (std::uint32_t r = 0; r < rings; ++r) {
      begin = std::min(begin, results.get()[r].begin_ns);
      end = std::max(end, results.get()[r].end_ns);
    }
    return message_rate(count * rings, static_cast<double>(end - begin) / 1e9).value;
  }

  /// ns an enqueue, a sample a burst.
  std::vector<double> bursts(const HandoffArm& arm, bool& verified) {
    const std::uint64_t bursts = std::max<std::uint64_t>(descriptors(arm) / burst_, 1);
    const auto ticks = allocate_of<std::uint64_t>(*runner_, bursts);
    fill(arm, 1, bursts * burst_, burst_, ticks.get(), verified);
    std::vector<double> samples = to_microseconds(ticks.get(), bursts, clock_);
    for (double& sample : samples) sample *= 1000.0 / burst_;
    return samples;
  }

 private:
  std::shared_ptr<RateResult> fill(const HandoffArm& arm, std::uint32_t rings, std::uint64_t count,
                                   std::uint32_t burst, std::uint64_t* ticks, bool& verified) {
    const HandoffRings filled(*runner_, rings, slots_, on_gpu(run_) ? pinned_memory() : nullptr);
    const auto results = allocate_of<RateResult>(*runner_, rings);
    HandoffJob job;
    job.view = filled.view();
    job.clock = clock_.ticks();
    job.count = count;
    job.burst = burst;
    job.ticks = ticks;
    job.results = results.get();
    Drain drain(filled, count, readers(arm));
    runner_->handoff(arm.kind, spread(run_, rings), job);
    for (std::uint32_t r = 0; r < rings; ++r) check_end(results.get()[r].end, std::string("arm ") + arm.name);
    verified = drain.is_right();
    return results;
  }

  const RunContext& run_;
  std::unique_ptr<KernelRunner> runner_;
  const Clock clock_;
  std::uint32_t slots_;
  std::uint32_t burst_;
};

void add(Metrics& metrics, const std::string& arm, const char* name, std::vector<double> samples,
         bool verified) {
  Metric& metric = metrics[{arm, name}];
  metric.series.add_samples(std::move(samples));
  metric.verified = metric.verified && verified;
}

/// An enqueue against the bare store, of this run's medians.
void add_ratios(const RunContext& run, std::vector<Record>& records) {
  const auto is_enqueue = [](const Record& record) { return record.metric == "enqueue"; };
  const auto bare = std::find_if(records.begin(), records.end(), [&](const Record& record) {
    return is_enqueue(record) && record.arm == kBareArm;
  });
  if (bare == records.end()) return;
  const double store = *bare->p50;
  const std::vector<Record> measured = records;
  for (const Record& enqueue : measured) {
    if (!is_enqueue(enqueue) || enqueue.arm == kBareArm) continue;
    Record record = run.record(enqueue.arm, "enqueue_over_bare");
    record.parameters = enqueue.parameters;
    record.p50 = *enqueue.p50 / store;
    record.verified = enqueue.verified;
    records.push_back(std::move(record));
  }
}

std::vector<Record> records_of(const RunContext& run, const Handoff& handoff, const Metrics& metrics) {
  std::vector<Record> records;
  for (const std::string& name : run.arms()) {
    for (const char* metric : {"rate", "enqueue"}) {
      const auto found = metrics.find({name, metric});
      if (found == metrics.end()) continue;
      Record record = run.record(name, metric, found->second.series);
      record.verified = found->second.verified;
      set(record.parameters, "rings", std::int64_t{handoff.rings(find_arm(kArms, name))});
      set(record.parameters, "descriptors",
          static_cast<std::int64_t>(handoff.descriptors(find_arm(kArms, name))));
      set(record.parameters, "readers", std::int64_t{handoff.readers(find_arm(kArms, name))});
      set(record.parameters, "slots", std::int64_t{handoff.slots()});
      if (record.metric == "enqueue") set(record.parameters, "burst", std::int64_t{handoff.burst()});
      records.push_back(std::move(record));
    }
  }
  add_ratios(run, records);
  return records;
}

std::vector<Record> run_handoff(RunContext& run) {
  Handoff handoff(run);
  Metrics metrics;
  run.interleave([&](const std::string& name, unsigned) {
    const HandoffArm& arm = find_arm(kArms, name);
    bool verified = false;
    if (arm.kind != HandoffPutKind::bare) {
      Metric& rate = metrics[{name, "rate"}];
      rate.series.add_figure(handoff.stream(arm, verified));
      rate.verified = rate.verified && verified;
    }
    if (arm.rings != 1) return;
    std::vector<double> samples = handoff.bursts(arm, verified);
    add(metrics, name, "enqueue", std::move(samples), verified);
  });
  if (on_gpu(run)) run.note("the rings lie in pinned host memory, what producers keep of them in GPU memory");
  if (usable_cores() < 2) run.note("one core for producer and reader: this measures the system's scheduler");
  return records_of(run, handoff, metrics);
}

}  // namespace

Experiment handoff_experiment() {
  Experiment experiment;
  experiment.name = "handoff";
  experiment.description = "descriptors from a kernel to a CPU thread, through mini-proxy's rings and no NIC";
  for (const HandoffArm& arm : kArms) experiment.arms.push_back({arm.name, arm.description, ""});
  experiment.metrics = {
      {"rate", "M msg/s", "descriptors, from the first put to the last one drained"},
      {"enqueue", "ns",
       "one put of a burst, half a ring long, into a ring that another core drains; it is empty before"},
      {"enqueue_over_bare", "ratio", "median of enqueue over that of the arm bare, in this run"},
  };
  experiment.parameters = {
      {"rings", 8, 1, 1024, "rings of the arm tuned-rings"},
      {"readers", 1, 1, 64, "CPU threads that drain the rings, which are dealt to them"},
      {"log-slots", 10, 6, 15, "slots of a ring, as a power of two"},
  };
  experiment.needs_nic = false;
  experiment.runs_on_gpu = true;
  experiment.iterations = 4000000;
  experiment.quick_iterations = 20000;
  experiment.run = run_handoff;
  return experiment;
}

}  // namespace belfry::bench
