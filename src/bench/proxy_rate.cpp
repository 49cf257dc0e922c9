/// \file
/// Experiment `proxy-rate`: how many messages a second mini-proxy's workers post, by workers, rings and the
/// length of a chain.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/proxy_group.hpp"
#include "bench/rate_run.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kCustomArm = "custom";

struct ProxyRateShape {
  std::uint32_t workers = 1;
  std::uint32_t rings = 1;
  std::uint32_t chain = 1;
};
struct ProxyRateArm {
  const char* name;
  const char* reference;
  ProxyRateShape shape;
};
constexpr ProxyRateArm kArms[] = {
    {"t1-r1-b1", "proxy/capacity-mini-proxy-b1-t1-warm", {1, 1, 1}},
    {"t1-r1-b16", "", {1, 1, 16}},
    {"t1-r32-b1", "", {1, 32, 1}},
    {"t1-r32-b16", "proxy/capacity-mini-proxy-b16-t1-r32-warm", {1, 32, 16}},
    {"t8-r32-b16", "proxy/capacity-mini-proxy-b16-t8", {8, 32, 16}},
};

std::string description_of(const ProxyRateShape& s) {
  return fmt::format(
      "{} worker{}, {} ring{} of one producer, {}", s.workers, s.workers == 1 ? "" : "s", s.rings,
      s.rings == 1 ? "" : "s",
      s.chain == 1 ? std::string("one work request a post") : fmt::format("chains of up to {}", s.chain));
}

/// The chosen arms that are measured: `custom` only where it was asked for.
std::map<std::string, ProxyRateShape> shapes_of(const RunContext& run) {
  std::map<std::string, ProxyRateShape> shapes;
  for (const std::string& name : run.arms()) {
    const auto arm =
        std::find_if(std::begin(kArms), std::end(kArms), [&](const auto& a) { return name == a.name; });
    if (arm != std::end(kArms)) {
      shapes.emplace(name, arm->shape);
    } else if (wants_arm(run, kCustomArm)) {
      const auto number = [&](const char* of) { return static_cast<std::uint32_t>(run.parameter(of)); };
      shapes.emplace(name, ProxyRateShape{number("workers"), number("rings"), number("chain")});
    }
  }
  for (const auto& [name, shape] : shapes) {
    if (shape.workers > shape.rings)
      throw std::invalid_argument(
          fmt::format("{} workers for {} rings: a worker has a ring at least, so raise --rings",
                      shape.workers, shape.rings));
  }
  if (shapes.empty()) throw std::invalid_argument("no arm to measure");
  return shapes;
}

/// The kernel's thread (its lanes are the producers), where it runs on a CPU, the workers and the NIC's
/// thread.
bool is_crowded(const RunContext& run, const ProxyRateShape& shape, bool software_nic) {
  return (on_gpu(run) ? 0 : 1) + shape.workers + (software_nic ? 1 : 0) > usable_cores();
}

ProxyGroup make_group(const RunContext& run, const ProxyRateShape& shape, bool crowded) {
  proxy::EndpointOptions options = proxy_options(crowded);
  options.workers = shape.workers;
  options.rings = shape.rings;
  options.chain = shape.chain;
  return {run, 2, std::size_t{shape.rings} * kRateSlots * sizeof(std::uint64_t),
          [&](std::size_t rank) { return rank == 0 ? options : resting_options(options); }};
}

struct Series {
  PassSeries rate;
  std::uint64_t messages = 0;
  bool verified = true;
};

void measure_pass(RunContext& run, const std::string& arm, const ProxyRateShape& shape, Series& series) {
  // What the NIC is shows only once it is open; the most it can add is a thread.
  const bool crowded = is_crowded(run, shape, true);
  const ProxyGroup group = make_group(run, shape, crowded);
  run.use_nic(describe_nic(group.context()));
  ProxyRateJob job;
  job.view = group.pe(0).view();
  job.seed = run.options().seed;
  job.target = {{0, 0}, sizeof(std::uint64_t), kRateSlots};
  job.queues = job.posters = shape.rings;
  const auto runner = make_runner(run, crowded);
  const RateGround ground{shape.rings, false, [&](int rank) { return group.read_window(rank); },
                          [&](const auto& edit) { group.edit_window(1, edit); }};
  const RateFigure figure = measure_threads<device::proxy::ProxyView>(
      *runner, ground, job, run.iterations(), arm,
      [&](const ProxyRateJob& ready) { runner->rate(false, spread(run, shape.rings), ready); });
  series.rate.add_figure(figure.rate);
  series.messages = figure.messages;
  series.verified = series.verified && figure.verified;
}

Record record_of(const RunContext& run, const std::string& arm, const ProxyRateShape& shape,
                 const Series& series) {
  Record record = run.record(arm, "rate", series.rate);
  record.verified = series.verified;
  set(record.parameters, "workers", std::int64_t{shape.workers});
  set(record.parameters, "rings", std::int64_t{shape.rings});
  set(record.parameters, "chain", std::int64_t{shape.chain});
  set(record.parameters, "bytes", std::int64_t{8});
  set(record.parameters, "messages", static_cast<std::int64_t>(series.messages));
  return record;
}

/// Chains against single posts, of this run's medians, where both were measured with as many workers and
/// rings.
void add_ratios(const RunContext& run, const std::map<std::string, ProxyRateShape>& shapes,
                std::vector<Record>& records) {
  const std::vector<Record> rates = records;
  for (const Record& chained : rates) {
    const ProxyRateShape& shape = shapes.at(chained.arm);
    if (shape.chain == 1) continue;
    const auto single = std::find_if(rates.begin(), rates.end(), [&](const Record& record) {
      const ProxyRateShape& other = shapes.at(record.arm);
      return other.chain == 1 && other.workers == shape.workers && other.rings == shape.rings;
    });
    if (single == rates.end()) continue;
    Record record = run.record(chained.arm, "rate_over_b1");
    record.parameters = chained.parameters;
    record.p50 = *chained.p50 / *single->p50;
    record.verified = *chained.verified && *single->verified;
    records.push_back(std::move(record));
  }
}

std::vector<Record> run_proxy_rate(RunContext& run) {
  const auto shapes = shapes_of(run);
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& arm, unsigned) {
    const auto found = shapes.find(arm);
    if (found != shapes.end()) measure_pass(run, arm, found->second, all[arm]);
  });
  std::vector<Record> records;
  std::string crowded;
  for (const std::string& arm : run.arms()) {
    const auto found = all.find(arm);
    if (found == all.end()) continue;
    records.push_back(record_of(run, arm, shapes.at(arm), found->second));
    if (is_crowded(run, shapes.at(arm), run.nic().kind == NicKind::soft_cpu))
      crowded += (crowded.empty() ? "" : ", ") + arm;
  }
  if (!crowded.empty()) {
    run.note(fmt::format(
        "kernel, workers and NIC are more threads than the {} cores: these arms measure the system's "
        "scheduler too: {}",
        usable_cores(), crowded));
  }
  add_ratios(run, shapes, records);
  return records;
}

}  // namespace

Experiment proxy_rate_experiment() {
  Experiment experiment;
  experiment.name = "proxy-rate";
  experiment.description = "how many 8 B messages a second mini-proxy's workers post";
  for (const ProxyRateArm& arm : kArms)
    experiment.arms.push_back({arm.name, description_of(arm.shape), arm.reference});
  experiment.arms.push_back(
      {kCustomArm, "--workers, --rings and --chain; measured if one of them is given", ""});
  experiment.metrics = {
      {"rate", "M msg/s", "from the first producer's start to the last one's last completion"},
      {"rate_over_b1", "ratio", "median rate over that without chains, of as many workers and rings"},
  };
  experiment.parameters = {
      {"workers", 1, 1, 64, "of the arm custom: worker threads (T)"},
      {"rings", 1, 1, 1024, "of the arm custom: rings, each with a producer of its own (R)"},
      {"chain", 1, 1, 64, "of the arm custom: work requests of one post at most (B)"},
  };
  experiment.iterations = 200000;
  experiment.quick_iterations = 3000;
  experiment.runs_on_gpu = true;
  experiment.run = run_proxy_rate;
  return experiment;
}

}  // namespace belfry::bench
