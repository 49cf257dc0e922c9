/// \file
/// Experiment `inline`: payload copied into the WQE against payload that the NIC fetches, by size.

#include <algorithm>
#include <array>
#include <map>

#include "bench/clock.hpp"
#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/inline_math.hpp"
#include "bench/op_path.hpp"
#include "bench/rate_run.hpp"

namespace belfry::bench {
namespace {

/// 8 B, and all that a first data segment and whole ones after it hold: 12 + 16 n, up to the limit of 220.
constexpr std::array<std::uint32_t, 16> kSizes = {0,   8,   12,  28,  44,  60,  76,  92,
                                                  108, 124, 140, 156, 172, 188, 204, 220};
constexpr const char* kDerivedArm = "break-even";
constexpr std::uint32_t kStride = 256;
constexpr std::uint32_t kQueueBlocks = 1024;
constexpr std::uint32_t kMostQueues = 64;

struct InlineArm {
  std::uint32_t bytes = 0;
  bool pointer = false;
};

std::string arm_name(InlineArm arm) {
  return (arm.pointer ? "pointer-" : "inline-") + std::to_string(arm.bytes);
}

std::map<std::string, InlineArm> inline_arms() {
  std::map<std::string, InlineArm> arms;
  for (const bool pointer : {false, true}) {
    for (const std::uint32_t bytes : kSizes) arms[arm_name({bytes, pointer})] = {bytes, pointer};
  }
  return arms;
}

RateShape shape_of(const RunContext& run) {
  const auto queues = static_cast<std::uint32_t>(run.parameter("qps"));
  return {queues, queues, 1, static_cast<std::uint32_t>(run.parameter("batch")), Cooperation::thread};
}

struct Series {
  PassSeries issue;
  PassSeries put_completion;
  PassSeries rate;
  std::uint64_t messages = 0;
  bool verified = true;
};

/// What all arms of a run share.
class InlineBench {
 public:
  explicit InlineBench(const RunContext& run)
      : shape_(shape_of(run)), group_(run, 2, options(shape_)), seed_(run.options().seed) {
    const bool software_nic = group_.pe(0).context().is_software_nic();
    const unsigned nic_threads = software_nic ? 1 : 0;
    put_runner_ = make_runner(run, 1 + nic_threads > usable_cores());
    rate_runner_ = make_runner(run, shape_.warps() + nic_threads > usable_cores());
    clock_ = put_runner_->clock();
    place_.target = {{0, 0}, kStride, kRateSlots};
    place_.source = {{0, source_offset(shape_)}, kStride, kRateSlots};
    place_.seed = seed_;
    fill_source();
  }

  const host::DeviceEndpoint& endpoint() const { return group_.pe(0); }
  const RateShape& shape() const { return shape_; }

  void measure(InlineArm arm, std::uint64_t count, std::uint64_t messages, Series& series) {
    measure_puts(arm, count, series);
    RateJob job = place_;
    job.bytes = arm.bytes;
    RateKind kind = shape_.kind();
    kind.from_memory = true;
    kind.pointer = arm.pointer;
    const RateFigure figure = measure_rate(group_, *rate_runner_, shape_, kind, job, messages, arm_name(arm));
    series.rate.add_figure(figure.rate);
    series.messages = figure.messages;
    series.verified = series.verified && figure.verified;
  }

 private:
  static std::size_t source_offset(const RateShape& shape) {
    return std::size_t{shape.threads} * kRateSlots * kStride;
  }
  static host::DeviceEndpointOptions options(const RateShape& shape) {
    host::DeviceEndpointOptions options = device_options(source_offset(shape) + kRateSlots * kStride);
    options.queues_a_peer = shape.queues;
    options.blocks = kQueueBlocks;
    return options;
  }

  /// Different bytes everywhere, so that a chunk in the wrong place shows.
  void fill_source() {
    group_.edit_window(0, [&](std::span<std::byte> window) {
      const auto source = window.subspan(place_.source.begin.offset, kRateSlots * kStride);
      for (std::size_t at = 0; at < source.size(); ++at)
        source[at] = static_cast<std::byte>(target_value(seed_, at) >> 24);
    });
  }

  void measure_puts(InlineArm arm, std::uint64_t count, Series& series) {
    const auto issue = allocate_of<std::uint64_t>(*put_runner_, count);
    const auto completion = allocate_of<std::uint64_t>(*put_runner_, count);
    const auto end = allocate_of<KernelEnd>(*put_runner_, 1);
    PutJob job;
    job.view = endpoint().view();
    job.clock = clock_.ticks();
    job.peer = 1;
    job.bytes = arm.bytes;
    job.seed = seed_;
    job.warm_up = warm_up_of(count);
    job.count = count;
    job.target = place_.target;
    job.source = place_.source;
    job.issue = issue.get();
    job.completion = completion.get();
    job.end = end.get();
    RateJob check = place_;
    check.bytes = arm.bytes;
    check.messages_a_thread = job.warm_up + count;
    group_.edit_window(1, [&](std::span<std::byte> window) { clear_rate_target(window, check, 1); });
    put_runner_->puts(arm.pointer ? "gda-pointer" : "gda-inline", job);
    check_end(*end, "the puts of " + arm_name(arm));
    series.issue.add_samples(to_microseconds(issue.get(), count, clock_));
    series.put_completion.add_samples(to_microseconds(completion.get(), count, clock_));
    // Slot by slot the source still holds what went to the target last.
    series.verified =
        series.verified && rate_target_is_right(group_.read_window(1), group_.read_window(0), check, 1);
  }

  const RateShape shape_;
  const DeviceGroup group_;
  Clock clock_;
  std::uint64_t seed_;
  RateJob place_;
  std::unique_ptr<KernelRunner> put_runner_;
  std::unique_ptr<KernelRunner> rate_runner_;
};

using Medians = std::map<std::string, std::map<std::string, double>>;  ///< [metric][arm]

/// The sizes of which both forms were measured.
std::vector<SizeCost> costs_of(const Medians& medians, const std::string& metric) {
  std::vector<SizeCost> costs;
  const auto found = medians.find(metric);
  if (found == medians.end()) return costs;
  for (const std::uint32_t bytes : kSizes) {
    const auto inlined = found->second.find(arm_name({bytes, false}));
    const auto pointer = found->second.find(arm_name({bytes, true}));
    if (inlined == found->second.end() || pointer == found->second.end()) continue;
    costs.push_back({static_cast<double>(bytes), inlined->second, pointer->second});
  }
  return costs;
}

/// What the published section says of inline payload, from this run.
void add_derived(const RunContext& run, const Medians& medians, bool verified, std::vector<Record>& records) {
  const auto derived = [&](const char* metric) {
    Record record = run.record(kDerivedArm, metric);
    record.verified = verified;
    return record;
  };
  const auto add_break_even = [&](const char* metric, const std::vector<SizeCost>& costs) {
    if (costs.size() < 2) return;
    Record record = derived(metric);
    find_break_even(costs).fill(record);
    records.push_back(std::move(record));
  };
  const std::vector<SizeCost> completion = costs_of(medians, "put_completion");
  const std::vector<SizeCost> issue = costs_of(medians, "issue");
  std::vector<SizeCost> per_message = costs_of(medians, "rate");
  for (SizeCost& cost : per_message) cost = {cost.bytes, 1 / cost.inlined, 1 / cost.pointer};
  add_break_even("break_even", completion);
  add_break_even("issue_break_even", issue);
  add_break_even("rate_break_even", per_message);
  for (std::size_t i = 0; i < completion.size(); ++i) {
    if (completion[i].bytes != 8) continue;
    Record saved = derived("completion_saved");
    saved.p50 = completion[i].pointer - completion[i].inlined;
    records.push_back(std::move(saved));
    Record added = derived("issue_added");
    added.p50 = issue[i].inlined - issue[i].pointer;
    records.push_back(std::move(added));
  }
  if (issue.size() < 2) return;
  Record chunk = derived("issue_added_per_chunk");
  chunk.p50 = added_per_chunk(issue);
  records.push_back(std::move(chunk));
}

std::vector<Record> records_of(const RunContext& run, const std::map<std::string, InlineArm>& arms,
                               const std::map<std::string, Series>& all) {
  std::vector<Record> records;
  Medians medians;
  bool verified = true;
  for (const std::string& arm : run.arms()) {
    if (arm == kDerivedArm) continue;
    const Series& series = all.at(arm);
    verified = verified && series.verified;
    const auto add = [&](const char* metric, const PassSeries& values) {
      Record record = run.record(arm, metric, values);
      record.verified = series.verified;
      set(record.parameters, "bytes", std::int64_t{arms.at(arm).bytes});
      set(record.parameters, "payload", std::string(arms.at(arm).pointer ? "pointer" : "inline"));
      medians[metric][arm] = *record.p50;
      records.push_back(std::move(record));
    };
    add("issue", series.issue);
    add("put_completion", series.put_completion);
    add("rate", series.rate);
    set(records.back().parameters, "messages", static_cast<std::int64_t>(series.messages));
  }
  if (std::find(run.arms().begin(), run.arms().end(), kDerivedArm) != run.arms().end()) {
    add_derived(run, medians, verified, records);
  }
  return records;
}

std::vector<Record> run_inline(RunContext& run) {
  const auto arms = inline_arms();
  InlineBench bench(run);
  run.use_nic(describe_nic_of_lanes(run, bench.endpoint().context()));
  for (const std::string& decision : bench.endpoint().decisions()) run.note(decision);
  if (!on_gpu(run) &&
      bench.shape().warps() + (bench.endpoint().context().is_software_nic() ? 1 : 0) > usable_cores()) {
    run.note("more warps and NIC threads than cores: rates measure the system's scheduler too");
  }
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) {
    if (name == kDerivedArm) return;
    bench.measure(arms.at(name), run.iterations(), run.iterations() * 4, all[name]);
  });
  return records_of(run, arms, all);
}

}  // namespace

Experiment inline_experiment() {
  Experiment experiment;
  experiment.name = "inline";
  experiment.description = "payload copied into the WQE against payload that the NIC fetches, by size";
  for (const bool pointer : {false, true}) {
    for (const std::uint32_t bytes : kSizes) {
      experiment.arms.push_back(
          {arm_name({bytes, pointer}),
           std::to_string(bytes) + (pointer ? " B, fetched by the NIC" : " B, copied into the WQE"), ""});
    }
  }
  experiment.arms.push_back({kDerivedArm, "what follows from the arms of both kinds", "inline/inline"});
  experiment.metrics = {
      {"issue", "us", "time in put()"},
      {"put_completion", "us", "from before put() to having polled the CQE"},
      {"rate", "M msg/s", "batched: each thread on a queue of its own (--qps, --batch)"},
      {"break_even", "B", "size from which put_completion is no higher by pointer"},
      {"issue_break_even", "B", "the same of issue"},
      {"rate_break_even", "B", "the same of rate"},
      {"completion_saved", "us", "put_completion of 8 B, pointer minus inline"},
      {"issue_added", "us", "issue of 8 B, inline minus pointer"},
      {"issue_added_per_chunk", "us", "issue added by 16 more bytes inline: slope over all sizes"},
  };
  experiment.parameters = {
      {"qps", 1, 1, kMostQueues, "queues, and threads, of the rate (published: 16)"},
      {"batch", 16, 1, kMostRateBatch, "WQEs a doorbell of the rate"},
  };
  experiment.iterations = 3000;
  experiment.runs_on_gpu = true;
  experiment.run = run_inline;
  return experiment;
}

}  // namespace belfry::bench
