/// \file
/// Experiment `softnic`: the price of the software NIC itself. Its figures say what tests and CI pay, and
/// nothing about hardware.

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "bench/cores.hpp"
#include "bench/cross_core.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/process_usage.hpp"
#include "bench/softnic_streams.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kLatencyArm = "verbs-inline";
constexpr const char* kVerbsRateArm = "rate-verbs";
constexpr const char* kDevxRateArm = "rate-devx";
constexpr const char* kCopyArm = "copy-64k";
constexpr const char* kCoresArm = "cores";
constexpr const char* kIdleArm = "idle";

/// A stream is shorter than a latency sample by this much an operation.
constexpr std::uint64_t kMessagesPerIteration = 128;
static_assert(kMessagesPerIteration % kSignalEvery == 0);

std::uint64_t copies_of(const RunContext& run) {
  return std::max<std::uint64_t>(run.iterations() / 10, kCopySlots);
}

/// Collects one run's series, and what is known of their payload.
class Results {
 public:
  void figure(const std::string& arm, const std::string& metric, double value) {
    series_[{arm, metric}].add_figure(value);
  }
  void samples(const std::string& arm, const std::string& metric, std::vector<double> values) {
    series_[{arm, metric}].add_samples(std::move(values));
  }
  void payload(const std::string& arm, bool right) {
    const auto [entry, fresh] = verified_.emplace(arm, right);
    if (!fresh) entry->second = entry->second && right;
  }

  std::vector<Record> records(const RunContext& run) const {
    std::vector<Record> records;
    for (const std::string& arm : run.arms()) {
      for (const MetricInfo& metric : run.experiment().metrics) {
        const auto found = series_.find({arm, metric.name});
        if (found == series_.end()) continue;
        Record record = run.record(arm, metric.name, found->second);
        const auto payload = verified_.find(arm);
        if (payload != verified_.end()) record.verified = payload->second;
        if (arm == kCoresArm) record.nic = NicKind::none;
        add_setting(record, run);
        records.push_back(std::move(record));
      }
    }
    return records;
  }

 private:
  static void add_setting(Record& record, const RunContext& run) {
    if (record.arm == kCopyArm) {
      set(record.parameters, "bytes", static_cast<std::int64_t>(kCopyBytes));
      set(record.parameters, "copies", static_cast<std::int64_t>(copies_of(run)));
      set(record.parameters, "outstanding", std::int64_t{kCopiesInFlight});
    } else if (record.metric == "rate") {
      set(record.parameters, "bytes", static_cast<std::int64_t>(kSlotBytes));
      set(record.parameters, "messages", static_cast<std::int64_t>(run.iterations() * kMessagesPerIteration));
      set(record.parameters, "wqes_per_doorbell", std::int64_t{kBatch});
      set(record.parameters, "wqes_per_cqe", std::int64_t{kSignalEvery});
      set(record.parameters, "qps", std::int64_t{1});
    }
  }

  std::map<std::pair<std::string, std::string>, PassSeries> series_;
  std::map<std::string, bool> verified_;
};

/// The NIC's threads are all threads of this process but the one that measures. It sleeps meanwhile.
void measure_idle(const RunContext& run, Results& results, std::uint64_t resident_before,
                  std::size_t own_bytes) {
  using std::chrono::steady_clock;
  // The NIC reaches its longest sleep a while after the last doorbell.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const auto begin = steady_clock::now();
  const std::uint64_t used_before = other_threads_cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(run.parameter("idle-ms")));
  const std::uint64_t used = other_threads_cpu_ns() - used_before;
  const double passed = std::chrono::duration<double, std::nano>(steady_clock::now() - begin).count();
  results.figure(kIdleArm, "idle_cpu", 100.0 * static_cast<double>(used) / passed);
  const double added =
      static_cast<double>(resident_bytes()) - static_cast<double>(resident_before + own_bytes);
  results.figure(kIdleArm, "resident_added", std::max(added, 0.0) / (1024.0 * 1024.0));
}

void measure_arm(const RunContext& run, SoftnicStreams& streams, const Clock& clock, const std::string& arm,
                 Results& results) {
  PollPolicy policy;
  policy.yields = usable_cores() < 2;
  const std::uint64_t messages = run.iterations() * kMessagesPerIteration;
  if (arm == kLatencyArm) {
    Latencies latencies = streams.latencies(run.iterations(), policy, clock);
    results.samples(arm, "put_completion", std::move(latencies.put_completion));
    results.payload(arm, latencies.verified);
  } else if (arm == kVerbsRateArm || arm == kDevxRateArm) {
    const Stream stream = arm == kVerbsRateArm ? streams.verbs_stream(messages, policy, clock)
                                               : streams.devx_stream(messages, policy, clock);
    results.figure(arm, "rate", message_rate(messages, stream.seconds).value);
    results.payload(arm, stream.verified);
  } else if (arm == kCopyArm) {
    const std::uint64_t bytes = copies_of(run) * kCopyBytes;
    const Copies copies = streams.copies(copies_of(run), policy, clock);
    const GigabytesPerSecond nic = Bandwidth(bytes, copies.nic_seconds).gigabytes();
    const GigabytesPerSecond memcpy = Bandwidth(bytes, copies.memcpy_seconds).gigabytes();
    results.figure(arm, "goodput", nic.value);
    results.figure(arm, "memcpy", memcpy.value);
    results.figure(arm, "goodput_over_memcpy", nic.value / memcpy.value);
    results.payload(arm, copies.verified);
  }
}

std::vector<Record> run_softnic(RunContext& run) {
  const std::uint64_t resident_before = resident_bytes();
  host::ContextOptions options = host::ContextOptions::from(host::Environment::of_this_process());
  options.nic = run.options().nic;
  const host::Context context = host::Context::open(options);
  run.use_nic(describe_nic(context));
  for (const std::string& decision : context.decisions()) run.note(decision);
  SoftnicStreams streams(context, run.options().seed);
  const Clock clock;
  Results results;
  run.interleave([&](const std::string& arm, unsigned) {
    if (arm == kCoresArm) {
      // The NIC is asleep by then, and both cores are free.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      results.figure(arm, "cross_core", cross_core_round_trip_ns(run.iterations() * 10) / 1000.0);
    } else if (arm == kIdleArm) {
      measure_idle(run, results, resident_before, streams.window_bytes());
    } else {
      measure_arm(run, streams, clock, arm, results);
    }
  });
  return results.records(run);
}

}  // namespace

Experiment softnic_experiment() {
  Experiment experiment;
  experiment.name = "softnic";
  experiment.description = "what the software NIC itself costs";
  experiment.arms = {
      {kLatencyArm, "8 B inline writes by ibv_post_send, one outstanding", ""},
      {kVerbsRateArm, "8 B inline writes by ibv_post_send, chains of 16, one CQE in 64, one QP", ""},
      {kDevxRateArm, "the same with WQEs written straight into a DEVX queue", ""},
      {kCopyArm, "64 KiB writes by pointer, and memcpy of the same blocks by one core in turns", ""},
      {kCoresArm, "no NIC: a cache line from one core to another and back, the floor of put_completion", ""},
      {kIdleArm, "nothing to do", ""},
  };
  experiment.metrics = {
      {"put_completion", "us", "from before ibv_post_send to having polled the CQE"},
      {"cross_core", "us", "round trip of one cache line between two cores"},
      {"rate", "M msg/s", "from the first post to the last CQE"},
      {"goodput", "GB/s", "payload that the NIC moved"},
      {"memcpy", "GB/s", "the same payload moved by memcpy"},
      {"goodput_over_memcpy", "ratio", "the one over the other, within a pass"},
      {"idle_cpu", "%", "of one core, used by the NIC's threads"},
      {"resident_added", "MiB",
       "resident memory since before the device was opened, payload windows excepted"},
  };
  experiment.parameters = {{"idle-ms", 2000, 100, 600000, "how long the idle NIC is watched, ms a pass"}};
  experiment.software_nic_only = true;
  experiment.run = run_softnic;
  return experiment;
}

}  // namespace belfry::bench
