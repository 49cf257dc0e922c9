/// \file
/// Experiment `goodput`: payload a second by message size, and the first size that nearly fills the NIC.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/goodput_math.hpp"
#include "bench/gpu_window.hpp"
#include "bench/kernels/target_value.hpp"
#include "bench/proxy_group.hpp"
#include "bench/rate_run.hpp"

namespace belfry::bench {
namespace {

/// Powers of two from 64 B to 1 MiB, and 7168 B: a token of DeepSeek-V3 in FP8.
constexpr std::array<std::uint32_t, 16> kSizes = {64,   128,   256,   512,   1024,   2048,   4096,   7168,
                                                  8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576};
constexpr std::uint32_t kMostBytes = kSizes.back();
constexpr std::uint32_t kQueueBlocks = 1024;
constexpr std::uint32_t kMostQueues = 64;

enum class Transport : std::uint8_t { gda, proxy };
constexpr std::array<const char*, 2> kTransports = {"gda", "proxy"};

struct GoodputArm {
  Transport transport = Transport::gda;
  std::uint32_t bytes = 0;
};

const char* name_of(Transport transport) { return kTransports[static_cast<std::size_t>(transport)]; }
std::string arm_name(Transport transport, std::uint32_t bytes) {
  return fmt::format("{}-{}", name_of(transport), bytes);
}
std::map<std::string, GoodputArm> goodput_arms() {
  std::map<std::string, GoodputArm> arms;
  for (const Transport transport : {Transport::gda, Transport::proxy})
    for (const std::uint32_t bytes : kSizes) arms[arm_name(transport, bytes)] = {transport, bytes};
  return arms;
}

/// Slots of one size in a thread's MiB of the target, or in the source's, which threads share.
std::uint32_t slots_of(std::uint32_t bytes) { return std::min(kMostBytes / bytes, kRateSlots); }

class GoodputBench {
 public:
  explicit GoodputBench(const RunContext& run)
      : run_(run),
        queues_(static_cast<std::uint32_t>(run.parameter("qps"))),
        batch_(static_cast<std::uint32_t>(run.parameter("batch"))) {}

  /// GB/s of one pass.
  double measure(const GoodputArm& arm, bool& verified, NicDescription& nic) {
    const RateFigure figure = arm.transport == Transport::gda ? by_gda(arm, nic) : by_proxy(arm, nic);
    verified = figure.verified;
    return figure.rate * arm.bytes / 1e3;
  }
  std::uint64_t messages(std::uint32_t bytes) const {
    const auto budget = static_cast<std::uint64_t>(run_.parameter("megabytes")) * 1000000;
    return std::clamp<std::uint64_t>(budget / bytes, std::uint64_t{2} * queues_, run_.iterations());
  }

 private:
  std::size_t source_offset() const { return std::size_t{queues_} * kMostBytes; }
  std::size_t window_bytes() const { return source_offset() + kMostBytes; }

  template <class View>
  RateJobOf<View> job_of(const GoodputArm& arm) const {
    RateJobOf<View> job;
    job.queues = job.posters = queues_;
    job.batch = batch_;
    job.bytes = arm.bytes;
    job.seed = run_.options().seed;
    job.target = {{0, 0}, arm.bytes, slots_of(arm.bytes)};
    job.source = {{0, source_offset()}, arm.bytes, slots_of(arm.bytes)};
    return job;
  }
  /// Other bytes in every word of 8 B.
  void fill_source(std::span<std::byte> window) const {
    const auto source = window.subspan(source_offset(), kMostBytes);
    for (std::size_t at = 0; at < source.size(); at += 8) {
      const std::uint64_t word = target_value(run_.options().seed, at);
      std::copy_n(reinterpret_cast<const std::byte*>(&word), 8,
                  source.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  RateFigure by_gda(const GoodputArm& arm, NicDescription& nic) {
    if (!gda_) {
      host::DeviceEndpointOptions options = device_options(window_bytes());
      options.queues_a_peer = queues_;
      options.blocks = kQueueBlocks;
      gda_.emplace(run_, 2, options);
      gda_->edit_window(0, [&](std::span<std::byte> window) { fill_source(window); });
    }
    const host::Context& context = gda_->pe(0).context();
    nic = describe_nic_of_lanes(run_, context);
    const auto runner = make_runner(run_, queues_ > usable_cores());
    const RateShape shape{queues_, queues_, 1, batch_, Cooperation::thread};
    RateKind kind = shape.kind();
    kind.from_memory = kind.pointer = true;
    return measure_rate(*gda_, *runner, shape, kind, job_of<device::EndpointView>(arm), messages(arm.bytes),
                        arm_name(arm.transport, arm.bytes));
  }

  /// Workers exist only while their arm is measured.
  RateFigure by_proxy(const GoodputArm& arm, NicDescription& nic) {
    const bool crowded = (on_gpu(run_) ? 0 : 1) + 2 > usable_cores();
    proxy::EndpointOptions options = proxy_options(crowded);
    options.rings = queues_;
    options.chain = batch_;
    const ProxyGroup group(run_, 2, window_bytes(),
                           [&](std::size_t rank) { return rank == 0 ? options : resting_options(options); });
    nic = describe_nic(group.context());
    group.edit_window(0, [&](std::span<std::byte> window) { fill_source(window); });
    ProxyRateJob job = job_of<device::proxy::ProxyView>(arm);
    job.view = group.pe(0).view();
    const auto runner = make_runner(run_, crowded);
    const RateGround ground{queues_, true, [&](int rank) { return group.read_window(rank); },
                            [&](const auto& edit) { group.edit_window(1, edit); }};
    return measure_threads<device::proxy::ProxyView>(
        *runner, ground, job, messages(arm.bytes), arm_name(arm.transport, arm.bytes),
        [&](const ProxyRateJob& ready) { runner->rate(true, spread(run_, queues_), ready); });
  }

  const RunContext& run_;
  std::uint32_t queues_;
  std::uint32_t batch_;
  std::optional<DeviceGroup> gda_;
};

struct Series {
  PassSeries goodput;
  NicDescription nic;
  bool verified = true;
};

/// Reference and first size of each transport.
void add_derived(RunContext& run, const std::map<std::string, GoodputArm>& arms,
                 const std::map<std::string, Series>& all, std::vector<Record>& records) {
  const std::vector<Record> measured = records;
  for (const Transport transport : {Transport::gda, Transport::proxy}) {
    if (std::find(run.arms().begin(), run.arms().end(), name_of(transport)) == run.arms().end()) continue;
    std::vector<SizeGoodput> sizes;
    const Series* series = nullptr;
    bool verified = true;
    double highest = 0;
    const auto nic_of = [&](const std::string& arm) { return all.at(arm).nic.kind; };
    for (const Record& record : measured) {
      if (arms.at(record.arm).transport != transport) continue;
      series = &all.at(record.arm);
      sizes.push_back({arms.at(record.arm).bytes, *record.p50});
      verified = verified && *record.verified;
    }
    if (series == nullptr) continue;
    // What the NIC carries at best is what this run has seen of it, by whatever transport.
    for (const Record& record : measured)
      if (nic_of(record.arm) == series->nic.kind) highest = std::max(highest, *record.p50);
    const double given = static_cast<double>(run.parameter("reference")) / 1e3;
    const double reference = given > 0 ? given : highest;
    run.use_nic(series->nic);
    const auto derived = [&](const char* metric) {
      Record record = run.record(name_of(transport), metric);
      record.verified = verified;
      set(record.parameters, "reference_is",
          std::string(given > 0 ? "given" : "the highest goodput of this run on the same NIC"));
      return record;
    };
    Record stated = derived("reference");
    stated.p50 = reference;
    records.push_back(std::move(stated));
    Record first = derived("size_at_90_percent");
    fill_first_at(sizes, reference, 0.9, first);
    set(first.parameters, "of_gb_per_s", reference);
    records.push_back(std::move(first));
  }
}

std::vector<Record> run_goodput(RunContext& run) {
  const auto arms = goodput_arms();
  GoodputBench bench(run);
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) {
    const auto arm = arms.find(name);
    if (arm == arms.end()) return;
    Series& series = all[name];
    bool verified = false;
    series.goodput.add_figure(bench.measure(arm->second, verified, series.nic));
    series.verified = series.verified && verified;
  });
  std::vector<Record> records;
  for (const std::string& name : run.arms()) {
    const auto found = all.find(name);
    if (found == all.end()) continue;
    const GoodputArm& arm = arms.at(name);
    run.use_nic(found->second.nic);
    Record record = run.record(name, "goodput", found->second.goodput);
    record.verified = found->second.verified;
    set(record.parameters, "bytes", std::int64_t{arm.bytes});
    set(record.parameters, "transport",
        std::string(arm.transport == Transport::gda ? "mini-gda" : "mini-proxy"));
    set(record.parameters, "payload", std::string("pointer"));
    set(record.parameters, "messages", static_cast<std::int64_t>(bench.messages(arm.bytes)));
    records.push_back(std::move(record));
  }
  if (records.empty()) throw std::invalid_argument("choose an arm that moves payload, gda-4096 for one");
  add_derived(run, arms, all, records);
  if (!on_gpu(run) && usable_cores() < 3)
    run.note("kernel, worker and NIC are more threads than the cores: mini-proxy's arms share them");
  return records;
}

}  // namespace

Experiment goodput_experiment() {
  Experiment experiment;
  experiment.name = "goodput";
  experiment.description = "payload a second by message size, and the first size at 90 % of the reference";
  for (const Transport transport : {Transport::gda, Transport::proxy}) {
    const std::string name = transport == Transport::gda ? "mini-gda" : "mini-proxy";
    for (const std::uint32_t bytes : kSizes) {
      experiment.arms.push_back({arm_name(transport, bytes),
                                 fmt::format("{}, {} B a message, fetched by the NIC", name, bytes), ""});
    }
    experiment.arms.push_back({name_of(transport), "what follows from " + name + "'s arms",
                               transport == Transport::gda ? "goodput/mini-gda" : "goodput/mini-proxy"});
  }
  experiment.metrics = {
      {"goodput", "GB/s", "payload, from the first thread's start to the last one's last completion"},
      {"reference", "GB/s", "what 90 % are taken of"},
      {"size_at_90_percent", "B", "the smallest size measured with at least 90 % of the reference"},
  };
  experiment.parameters = {
      {"qps", 1, 1, kMostQueues, "queues, or rings of one worker, each with a thread of its own"},
      {"batch", 16, 1, 64, "WQEs a doorbell, or work requests of a chain"},
      {"megabytes", 64, 1, 100000, "payload of one arm and pass at most, 10^6 B"},
      {"reference", 0, 0, 1000000,
       "of size_at_90_percent, in MB/s (a link's goodput); 0: the highest of this run on the same NIC"},
  };
  experiment.iterations = 20000;
  experiment.quick_iterations = 200;
  experiment.passes = 3;
  experiment.quick_passes = 1;
  experiment.runs_on_gpu = true;
  experiment.run = run_goodput;
  return experiment;
}

}  // namespace belfry::bench
