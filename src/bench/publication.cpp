/// \file
/// Experiment `publication`: how the lanes of a warp publish what they have, together or apart, when they
/// come to it at the same time and when they do not.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "belfry/port/lane.hpp"
#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/rate_run.hpp"

namespace belfry::bench {
namespace {

constexpr std::uint32_t kQueueBlocks = 1024;

struct Form {
  const char* name;
  const char* description;
  PublicationKind kind;
  std::uint32_t batch;  ///< messages a doorbell
};
constexpr std::array<Form, 5> kPublicationForms = {{
    {"lane-rings", "each lane by itself, a doorbell each", PublicationKind::lane, 1},
    {"lane-rings-synced", "the same, and the warp's lanes wait for each other after each put",
     PublicationKind::lane_synced, 1},
    {"lane", "each lane by itself, every 32nd message rings", PublicationKind::lane, 32},
    {"lane-synced", "the same, and the warp's lanes wait for each other after each put",
     PublicationKind::lane_synced, 32},
    {"warp", "the warp reserves, publishes and rings once for its lanes", PublicationKind::warp, 32},
}};

struct PublicationArm {
  Form form;
  bool drifts = false;
};
std::vector<std::pair<std::string, PublicationArm>> publication_arms() {
  std::vector<std::pair<std::string, PublicationArm>> arms;
  for (const bool drifts : {false, true})
    for (const Form& form : kPublicationForms)
      arms.emplace_back(std::string(form.name) + (drifts ? "-drift" : ""), PublicationArm{form, drifts});
  return arms;
}

struct PublicationPass {
  double rate = 0;             ///< M msg/s
  std::vector<double> in_put;  ///< us a put, one sample a lane
  std::uint64_t messages = 0;
  bool verified = false;
};

class PublicationBench {
 public:
  explicit PublicationBench(const RunContext& run)
      : run_(run),
        threads_(static_cast<std::uint32_t>(run.parameter("warps")) * port::kWarpSize),
        group_(run, 2, options(threads_)),
        runner_(make_runner(run, is_crowded())),
        clock_(runner_->clock()) {}

  const host::DeviceEndpoint& endpoint() const { return group_.pe(0); }
  std::uint32_t threads() const { return threads_; }
  bool is_crowded() const {
    return !on_gpu(run_) &&
           threads_ / port::kWarpSize + (endpoint().context().is_software_nic() ? 1 : 0) > usable_cores();
  }

  PublicationPass measure(const std::string& name, const PublicationArm& arm) {
    const auto ticks = allocate_of<std::uint64_t>(*runner_, threads_);
    RateJob job;
    job.view = endpoint().view();
    job.posters = threads_;
    job.batch = arm.form.batch;
    job.seed = run_.options().seed;
    job.target = {{0, 0}, sizeof(std::uint64_t), kRateSlots};
    const RateGround ground{threads_, false, [&](int rank) { return group_.read_window(rank); },
                            [&](const auto& edit) { group_.edit_window(1, edit); }};
    const RateFigure figure = measure_threads<device::EndpointView>(
        *runner_, ground, job, run_.iterations(), name, [&](const RateJob& ready) {
          PublicationJob all;
          static_cast<RateJob&>(all) = ready;
          all.clock = clock_.ticks();
          all.spread_ticks =
              arm.drifts ? clock_.ticks_in(static_cast<double>(run_.parameter("drift-ns")) / 1e3) : 0;
          all.ticks = ticks.get();
          runner_->publication(arm.form.kind, {1, threads_}, all);
        });
    PublicationPass pass;
    pass.rate = figure.rate;
    pass.messages = figure.messages;
    pass.verified = figure.verified;
    for (double spent : to_microseconds(ticks.get(), threads_, clock_))
      pass.in_put.push_back(spent * threads_ / static_cast<double>(figure.messages));
    return pass;
  }

 private:
  static host::DeviceEndpointOptions options(std::uint32_t threads) {
    host::DeviceEndpointOptions options =
        device_options(std::size_t{threads} * kRateSlots * sizeof(std::uint64_t));
    options.blocks = kQueueBlocks;
    return options;
  }

  const RunContext& run_;
  std::uint32_t threads_;
  const DeviceGroup group_;
  std::unique_ptr<KernelRunner> runner_;
  const Clock clock_;
};

struct Series {
  PassSeries rate;
  PassSeries in_put;
  std::uint64_t messages = 0;
  bool verified = true;
};

std::vector<Record> run_publication(RunContext& run) {
  const auto listed = publication_arms();
  const std::map<std::string, PublicationArm> arms(listed.begin(), listed.end());
  PublicationBench bench(run);
  run.use_nic(describe_nic_of_lanes(run, bench.endpoint().context()));
  for (const std::string& decision : bench.endpoint().decisions()) run.note(decision);
  if (bench.is_crowded())
    run.note("more warps and NIC threads than cores: this measures the system's scheduler too");
  if (!on_gpu(run))
    run.note("on CPU lanes a warp's lanes take turns on one thread: lanes that work keep each other waiting");
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) {
    PublicationPass pass = bench.measure(name, arms.at(name));
    Series& series = all[name];
    series.rate.add_figure(pass.rate);
    series.in_put.add_samples(std::move(pass.in_put));
    series.messages = pass.messages;
    series.verified = series.verified && pass.verified;
  });
  std::vector<Record> records;
  for (const std::string& name : run.arms()) {
    const Series& series = all.at(name);
    const PublicationArm& arm = arms.at(name);
    const auto add = [&](const char* metric, const PassSeries& values) {
      Record record = run.record(name, metric, values);
      record.verified = series.verified;
      set(record.parameters, "bytes", std::int64_t{8});
      set(record.parameters, "batch", std::int64_t{arm.form.batch});
      if (!arm.drifts) set(record.parameters, "drift-ns", std::int64_t{0});
      set(record.parameters, "messages", static_cast<std::int64_t>(series.messages));
      records.push_back(std::move(record));
    };
    add("rate", series.rate);
    add("in_put", series.in_put);
  }
  return records;
}

}  // namespace

Experiment publication_experiment() {
  Experiment experiment;
  experiment.name = "publication";
  experiment.description =
      "the lanes of a warp on one queue: each for itself or the warp at once, with lane drift";
  for (const auto& [name, arm] : publication_arms()) {
    experiment.arms.push_back(
        {name,
         std::string(arm.form.description) + (arm.drifts ? "; lanes arrive up to --drift-ns apart" : ""),
         ""});
  }
  experiment.metrics = {
      {"rate", "M msg/s", "8 B inline, from the first lane's start to the last one's last completion"},
      {"in_put", "us", "in a put and in waiting for the other lanes, a message; percentiles over the lanes"},
  };
  experiment.parameters = {
      {"warps", 1, 1, 32, "warps, all on one queue"},
      {"drift-ns", 1000, 0, 1000000, "before each put a lane works for up to so long, another time each"},
  };
  experiment.iterations = 50000;
  experiment.quick_iterations = 2000;
  experiment.passes = 3;
  experiment.quick_passes = 1;
  experiment.runs_on_gpu = true;
  experiment.run = run_publication;
  return experiment;
}

}  // namespace belfry::bench
