/// \file
/// Experiment `op`: what one operation costs, by libmlx5's own ibv_post_send, by mini-gda (its doorbells
/// rung by the kernel, or forwarded by a CPU) and by mini-proxy.

#include <algorithm>
#include <map>
#include <memory>

#include "belfry/proxy/endpoint.hpp"
#include "bench/clock.hpp"
#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/op_end.hpp"
#include "bench/op_gda.hpp"
#include "bench/op_gpu.hpp"
#include "bench/op_kernel_path.hpp"
#include "bench/op_proxy.hpp"
#include "bench/op_verbs.hpp"
#include "bench/two_ranks.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kVerbsInlineArm = "verbs-inline";
constexpr const char* kVerbsPointerArm = "verbs-pointer";
constexpr const char* kClockArm = "clock";
/// Whose queue the bare doorbells are of.
constexpr const char* kDoorbellQueue = "gda-inline";

bool is_verbs(const std::string& arm) { return arm == kVerbsInlineArm || arm == kVerbsPointerArm; }

/// \param pollers threads of ours that poll at the same time, workers included
PollPolicy policy_of(const RunContext& run, const OpEnd& end, unsigned pollers) {
  PollPolicy policy;
  // A software NIC has a thread in each process; a hardware NIC needs no core.
  const unsigned threads =
      pollers + (end.endpoint().context().is_software_nic() ? run.options().processes : 0);
  policy.yields = threads > usable_cores();
  return policy;
}

bool is_proxy(const std::string& arm) {
  bool found = false;
  for_each_proxy_arm([&](auto a) { found = found || arm == a.name; });
  return found;
}

/// One metric of one arm over all passes.
struct Metric {
  PassSeries series;
  bool verified = true;
};
using Metrics = std::map<std::pair<std::string, std::string>, Metric>;

void add(Metrics& metrics, const std::string& arm, const std::string& name, std::vector<double> samples,
         bool verified) {
  Metric& metric = metrics[{arm, name}];
  metric.series.add_samples(std::move(samples));
  metric.verified = metric.verified && verified;
}

/// The arms of mini-gda that this device has the queues for.
std::vector<std::string> possible_gda_arms(RunContext& run, const host::DevxCapabilities& devx) {
  std::vector<std::string> wanted = run.arms();
  if (std::any_of(wanted.begin(), wanted.end(), is_bare)) wanted.push_back(kDoorbellQueue);
  std::vector<std::string> arms;
  bool left_out = false;
  for_each_op_arm([&](auto arm) {
    if (std::find(wanted.begin(), wanted.end(), arm.name) == wanted.end()) return;
    using Policy = typename decltype(arm)::Policy;
    if (!devx.available || (Policy::doorbell_mode == device::DoorbellMode::no_record && !devx.no_record)) {
      left_out = true;
      return;
    }
    arms.emplace_back(arm.name);
  });
  if (left_out) {
    run.note(devx.available
                 ? "arms without a doorbell record are left out: the device does not offer that mode"
                 : "mini-gda's arms are left out: they need DEVX");
  }
  return arms;
}

/// One rank: the verbs queue, mini-gda's queues on the same window, and what posts to them.
class Rank {
 public:
  Rank(RunContext& run, host::Bootstrap& group)
      : end_(run.options().nic, group, run.options().seed),
        gda_arms_(possible_gda_arms(run, end_.endpoint().context().devx())),
        windows_(kernel_windows(end_)),
        gda_(group, windows_, gda_arms_),
        puts_(policy_of(run, end_, 1)),
        round_trips_(policy_of(run, end_, 2)),
        put_runner_(make_lane_runner(puts_.yields)),
        round_trip_runner_(make_lane_runner(round_trips_.yields)),
        helped_crowded_(policy_of(run, end_, 4).yields),
        helped_runner_(make_lane_runner(helped_crowded_)) {}

  OpEnd& end() { return end_; }
  const Clock& clock() const { return clock_; }
  const char* runner_name() const { return put_runner_->name(); }
  bool helped_crowded() const { return helped_crowded_; }
  bool yields() const { return round_trips_.yields; }

  /// Whether mini-gda's arm can be measured here. Both ranks say the same.
  bool has(const std::string& arm) const {
    const std::string& needed = is_bare(arm) ? kDoorbellQueue : arm;
    return std::find(gda_arms_.begin(), gda_arms_.end(), needed) != gda_arms_.end();
  }

  /// nullptr for an arm that exchanges no messages, or cannot.
  std::unique_ptr<OpPath> path(const std::string& arm) {
    if (is_proxy(arm))
      return std::make_unique<ProxyPath>(end_, windows_, helped_crowded_, *helped_runner_, clock_, arm);
    if (is_verbs(arm)) {
      const auto payload = arm == kVerbsPointerArm ? VerbsPayload::pointer : VerbsPayload::inlined;
      return std::make_unique<VerbsPath>(end_, clock_, payload, puts_, round_trips_);
    }
    if (arm == kClockArm || is_bare(arm) || !has(arm)) return nullptr;
    if (is_assisted(arm))
      return std::make_unique<AssistedPath>(end_, windows_, helped_crowded_, *helped_runner_, clock_, arm);
    return std::make_unique<KernelPath<device::EndpointView>>(
        gda_.endpoint(arm).view(), end_.peer(), end_.seed(), *put_runner_, *round_trip_runner_, clock_, arm);
  }

  std::vector<double> bare(const std::string& arm, std::uint64_t count) {
    return measure_bare(arm, end_, gda_.endpoint(kDoorbellQueue).view(), *put_runner_, clock_, count);
  }

 private:
  const Clock clock_;
  OpEnd end_;
  std::vector<std::string> gda_arms_;
  host::Windows windows_;
  GdaEnd gda_;
  PollPolicy puts_;
  PollPolicy round_trips_;
  std::unique_ptr<KernelRunner> put_runner_;
  std::unique_ptr<KernelRunner> round_trip_runner_;
  bool helped_crowded_;  ///< with a worker or a doorbell thread at either end
  std::unique_ptr<KernelRunner> helped_runner_;
};

/// Rank 0.
Metrics measure_all(RunContext& run, Rank& rank) {
  Metrics metrics;
  run.interleave([&](const std::string& arm, unsigned) {
    const std::uint64_t count = run.iterations();
    if (arm == kClockArm) {
      add(metrics, arm, "clock_overhead", rank.clock().overhead_ns(static_cast<unsigned>(count)), true);
      return;
    }
    if (is_bare(arm) && rank.has(arm)) {
      add(metrics, arm, "issue", rank.bare(arm, count), true);
      return;
    }
    const auto path = rank.path(arm);
    if (path == nullptr) return;
    PutSamples put = rank.end().measure_puts(*path, count);
    add(metrics, arm, "issue", std::move(put.issue), put.verified);
    add(metrics, arm, "put_completion", std::move(put.put_completion), put.verified);
    RoundTripSamples trip = rank.end().measure_round_trips(*path, count);
    add(metrics, arm, "round_trip", std::move(trip.round_trip), trip.verified);
  });
  run.note(std::string("clock: ") + rank.clock().name() +
           "; every figure contains one clock reading (arm clock); polling " +
           (rank.yields() ? "gives its core away, for want of cores" : "spins"));
  run.note(std::string("the kernels run on ") + rank.runner_name() + ", one thread each");
  if (rank.helped_crowded()) {
    run.note(
        "mini-proxy has a worker at either end, and a CPU-assisted arm a thread for the doorbells: with "
        "kernels "
        "and NIC there are more threads than cores, and these arms measure the system's scheduler too");
  }
  return metrics;
}

std::vector<Record> records_of(const RunContext& run, const Metrics& metrics) {
  std::vector<Record> records;
  for (const std::string& arm : run.arms()) {
    for (const MetricInfo& info : run.experiment().metrics) {
      const auto found = metrics.find({arm, info.name});
      if (found == metrics.end()) continue;
      Record record = run.record(arm, info.name, found->second.series);
      if (arm != kClockArm && !is_bare(arm)) {
        record.verified = found->second.verified;
        set(record.parameters, "bytes", std::int64_t{kSlotBytes});
        set(record.parameters, "outstanding", std::int64_t{1});
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

/// Rank 0 of a group of two, whichever way the group came about.
std::vector<Record> measure(RunContext& run, host::Bootstrap& group) {
  Rank rank(run, group);
  const host::Endpoint& endpoint = rank.end().endpoint();
  run.use_nic(describe_nic(endpoint.context()));
  for (const std::string& decision : endpoint.decisions()) run.note(decision);
  return records_of(run, measure_all(run, rank));
}

/// Rank 1.
void serve(RunContext& run, host::Bootstrap& group) {
  Rank rank(run, group);
  run.interleave([&](const std::string& arm, unsigned) {
    const auto path = rank.path(arm);
    if (path == nullptr) return;
    rank.end().serve_puts(run.iterations());
    rank.end().serve_round_trips(*path, run.iterations());
  });
}

const TwoRanks kRanks = {measure, serve};

}  // namespace

Experiment op_experiment() {
  Experiment experiment;
  experiment.name = "op";
  experiment.description = "what one operation costs: 8 B RDMA WRITE, one outstanding";
  experiment.arms = {
      {kVerbsInlineArm, "ibv_post_send, payload copied into the WQE", "op/mini-gda-inline"},
      {kVerbsPointerArm, "ibv_post_send, payload fetched by the NIC", "op/mini-gda-pointer"},
  };
  const auto add = [&](auto arm) { experiment.arms.push_back({arm.name, arm.description, arm.reference}); };
  for_each_op_arm(add);
  for_each_proxy_arm(add);
  experiment.arms.push_back({kDoorbellArm, "the doorbell store alone: no WQE, no record", ""});
  experiment.arms.push_back(
      {kFenceArm, "8 B stored to this PE's memory, and a fence of GPU scope behind", ""});
  experiment.arms.push_back({kClockArm, "the clock itself: what reading it twice measures", ""});
  experiment.metrics = {
      {"issue", "us", "time in the call that posts: ibv_post_send, put()"},
      {"put_completion", "us", "from before that call to having polled the CQE"},
      {"round_trip", "us", "write to the peer's memory until its answer is seen in ours"},
      {"clock_overhead", "ns", "two clock readings in a row"},
  };
  experiment.most_processes = 2;
  experiment.runs_on_gpu = true;
  experiment.run = [](RunContext& run) {
    return on_gpu(run) ? run_op_on_gpu(run) : run_two_ranks(run, kRanks);
  };
  experiment.peer = [](RunContext& run, const std::string& address) { serve_peer(run, address, kRanks); };
  return experiment;
}

}  // namespace belfry::bench
