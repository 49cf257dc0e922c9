/// \file
/// Experiment `residency`: what having communication in a kernel costs what the kernel is there for.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "belfry/host/errors.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/kernels/target_value.hpp"
#include "bench/proxy_group.hpp"
#include "bench/residency_kernels.hpp"

namespace belfry::bench {
namespace {

using Transport = ResidencyShape::Transport;

/// What an arm does with the code that sends.
enum class Communication : std::uint8_t { absent, dormant, send, wait };

struct ResidencyArm {
  ResidencyShape shape;
  Communication communication = Communication::absent;
  std::uint32_t blocks_an_sm = 4;

  bool sends() const { return communication == Communication::send || communication == Communication::wait; }
};

const char* name_of(Caller caller) { return caller == Caller::compute ? "compute" : "streaming"; }
const char* name_of(Transport transport) { return transport == Transport::gda ? "gda" : "proxy"; }
const char* name_of(Call call) { return call == Call::inlined ? "inlined" : "separate"; }
const char* name_of(Communication communication) {
  constexpr const char* kNames[] = {"absent", "dormant", "send", "wait"};
  return kNames[static_cast<std::size_t>(communication)];
}

std::string base_name(const ResidencyArm& arm) {
  return fmt::format("{}-b{}", name_of(arm.shape.caller), arm.blocks_an_sm);
}
std::string arm_name(const ResidencyArm& arm) {
  if (arm.communication == Communication::absent) return base_name(arm) + "-absent";
  return fmt::format("{}-{}-{}-{}", base_name(arm), name_of(arm.shape.transport), name_of(arm.shape.call),
                     name_of(arm.communication));
}

std::vector<std::pair<std::string, ResidencyArm>> residency_arms() {
  std::vector<std::pair<std::string, ResidencyArm>> arms;
  const auto add = [&](const ResidencyArm& arm) { arms.emplace_back(arm_name(arm), arm); };
  for (const Caller caller : {Caller::compute, Caller::streaming}) {
    for (const std::uint32_t blocks : {4u, 8u}) {
      add({{.caller = caller}, Communication::absent, blocks});
      for (const Transport transport : {Transport::gda, Transport::proxy}) {
        for (const Call call : {Call::inlined, Call::separate}) {
          for (const Communication c : {Communication::dormant, Communication::send, Communication::wait})
            add({{caller, transport, call, c != Communication::send}, c, blocks});
        }
      }
    }
  }
  return arms;
}

std::string description_of(const ResidencyArm& arm) {
  const std::string where =
      fmt::format("{} caller, {} blocks an SM", name_of(arm.shape.caller), arm.blocks_an_sm);
  const std::string transport = arm.shape.transport == Transport::gda ? "mini-gda" : "mini-proxy";
  const std::string call =
      arm.shape.call == Call::inlined ? "inlined" : "called, values on the stack meanwhile";
  switch (arm.communication) {
    case Communication::absent:
      return where + ", no communication compiled in";
    case Communication::dormant:
      return fmt::format("{}, {}, {}, never executed", where, transport, call);
    case Communication::send:
      return fmt::format("{}, {}, {}: send, then compute", where, transport, call);
    case Communication::wait:
      return fmt::format("{}, {}, {}: send, wait, compute", where, transport, call);
  }
  return where;
}

/// Published rows beside an arm, which are of the compute caller at four blocks.
std::string reference_of(const ResidencyArm& arm, const std::string& metric) {
  if (arm.shape.caller != Caller::compute || arm.blocks_an_sm != 4) return "";
  const std::string transport = arm.shape.transport == Transport::proxy ? "mini-proxy" : "mini-gda";
  if (metric == "registers" && !arm.sends())
    return fmt::format("kernel/{}-{}", transport, name_of(arm.communication));
  if (metric == "dormant_loss") return fmt::format("kernel/{}-compute", transport);
  if (metric == "waiting_loss") return "kernel/" + transport;
  return "";
}

constexpr std::uint32_t kKnockSlots = 64;
constexpr std::uint32_t kMostBlocksAnSm = 8;
constexpr std::uint32_t kSlices = 32;
constexpr std::uint32_t kFirstRounds = 64;
constexpr const char* kIdleVariable = "BELFRY_SOFTNIC_GPU_IDLE_US";

/// A grid that fills the GPU keeps the engine out: it has to stay for as long as blocks work without sending.
constexpr const char* kIdleMicroseconds = "20000";

struct ResidencyPass {
  double time = 0;  ///< us
  NicDescription nic;
  bool verified = true;
};

class ResidencyBench {
 public:
  explicit ResidencyBench(const RunContext& run)
      : run_(run), runner_(make_residency_runner(gpu_of(run, 0))), idle_(run.options().engine.idle) {
    multiprocessors_ = static_cast<std::uint32_t>(footprint({}).multiprocessors);
    // An engine on the GPU itself needs one, in every arm.
    if (!engine_is_elsewhere(run)) multiprocessors_ = std::max(multiprocessors_ - 1, 1u);
    threads_ = blocks_of(kMostBlocksAnSm) * kResidencyThreads;
    output_ = runner_->allocate(threads_);
    failed_ = runner_->allocate_count();
  }

  ResidencyFootprint footprint(const ResidencyShape& shape) { return runner_->footprint(shape); }
  std::uint32_t blocks_of(std::uint32_t an_sm) const { return an_sm * multiprocessors_; }

  /// Values a thread adds up or computes in one launch.
  double useful(const ResidencyArm& arm) {
    const ResidencyWork work = work_of(arm.shape.caller);
    const double rounds = static_cast<double>(work.rounds) * work.messages;
    return rounds * live(arm.shape.caller) * blocks_of(arm.blocks_an_sm) * kResidencyThreads;
  }

  ResidencyPass measure(const ResidencyArm& arm) {
    if (!arm.sends()) return alone(arm);
    return arm.shape.transport == Transport::gda ? with_gda(arm) : with_proxy(arm);
  }

 private:
  static std::uint32_t live(Caller caller) {
    return caller == Caller::compute ? kComputeLive : kStreamingLive;
  }

  ResidencyWork work_of(Caller caller) {
    ResidencyWork work;
    work.messages = static_cast<std::uint32_t>(run_.parameter("messages"));
    work.output = output_.get();
    work.factor = 0.999f;
    work.addend = 0.001f;
    if (caller == Caller::streaming) {
      if (input_ == nullptr) input_ = runner_->allocate(std::uint64_t{kSlices} * kStreamingLive * threads_);
      work.input = reinterpret_cast<const FourFloats*>(input_.get());
      work.slices = kSlices;
    }
    std::uint32_t& rounds = rounds_[caller];
    if (rounds == 0) {
      // So many that the caller alone works for --work-us, at four blocks a multiprocessor.
      work.rounds = kFirstRounds;
      const auto once = [&] { return runner_->run({.caller = caller}, blocks_of(4), work, {}, {}); };
      once();
      const double wanted = static_cast<double>(run_.parameter("work-us"));
      rounds = static_cast<std::uint32_t>(std::clamp(kFirstRounds * wanted / once(), 1.0, 1e7));
    }
    work.rounds = rounds;
    return work;
  }

  /// Nothing beside the kernel: an engine that was there for another arm has left.
  ResidencyPass alone(const ResidencyArm& arm) {
    if (gda_) std::this_thread::sleep_for(2 * idle_);
    GdaTalk gda;
    ProxyTalk proxy;
    gda.failed = proxy.failed = failed_.get();
    ResidencyPass pass;
    pass.time = runner_->run(arm.shape, blocks_of(arm.blocks_an_sm), work_of(arm.shape.caller), gda, proxy);
    pass.verified = output_is_right(arm);
    return pass;
  }

  ResidencyPass with_gda(const ResidencyArm& arm) {
    if (!gda_) {
      host::DeviceEndpointOptions options = device_options(window_bytes());
      options.queues_a_peer = queues();
      options.blocks = 1024;
      gda_.emplace(run_, 2, options);
    }
    ResidencyPass pass = talking<GdaTalk>(
        arm, gda_->pe(0).view(), [&](const auto& edit) { gda_->edit_window(1, edit); },
        [&] { return gda_->read_window(1); });
    pass.nic = describe_nic_of_lanes(run_, gda_->pe(0).context());
    return pass;
  }

  ResidencyPass with_proxy(const ResidencyArm& arm) {
    proxy::EndpointOptions options = proxy_options(false);
    options.rings = queues();
    options.workers = std::min(static_cast<std::uint32_t>(run_.parameter("workers")), options.rings);
    const ProxyGroup group(run_, 2, window_bytes(),
                           [&](std::size_t rank) { return rank == 0 ? options : resting_options(options); });
    ResidencyPass pass = talking<ProxyTalk>(
        arm, group.pe(0).view(), [&](const auto& edit) { group.edit_window(1, edit); },
        [&] { return group.read_window(1); });
    pass.nic = describe_nic(group.context());
    return pass;
  }

  std::uint32_t queues() const { return static_cast<std::uint32_t>(run_.parameter("qps")); }
  std::uint64_t messages(const ResidencyArm& arm) const {
    return std::uint64_t{blocks_of(arm.blocks_an_sm)} *
           static_cast<std::uint64_t>(run_.parameter("messages"));
  }
  std::size_t window_bytes() const {
    return (kKnockSlots + std::uint64_t{blocks_of(kMostBlocksAnSm)} *
                              static_cast<std::uint64_t>(run_.parameter("messages"))) *
           8;
  }

  template <class Talk, class View, class Edit, class Read>
  ResidencyPass talking(const ResidencyArm& arm, const View& view, const Edit& edit, const Read& read) {
    edit([](std::span<std::byte> window) { std::fill(window.begin(), window.end(), std::byte{0}); });
    const ResidencyWork work = work_of(arm.shape.caller);
    Talk talk;
    talk.view = view;
    talk.peer = 1;
    talk.queues = queues();
    talk.messages = work.messages;
    talk.seed = run_.options().seed;
    talk.failed = failed_.get();
    talk.target = {0, 0};
    runner_->knock(talk);
    talk.target = {0, kKnockSlots * 8};
    std::optional<GdaTalk> gda;
    std::optional<ProxyTalk> proxy;
    if constexpr (std::is_same_v<Talk, GdaTalk>) {
      gda = talk;
    } else {
      proxy = talk;
    }
    ResidencyPass pass;
    pass.time = runner_->run(arm.shape, blocks_of(arm.blocks_an_sm), work, gda, proxy);
    talk.target = {0, 0};
    runner_->knock(talk);
    if (*failed_ != 0) {
      throw host::Error(
          host::ErrorKind::timed_out,
          fmt::format("{} messages of {} did not complete in time", *failed_, arm_name(arm)),
          fmt::format("Where blocks work for longer than the engine idles, a full GPU keeps it out: "
                      "raise {}, or lower --work-us",
                      kIdleVariable));
    }
    pass.verified = output_is_right(arm) && messages_are_right(read(), messages(arm));
    return pass;
  }

  bool messages_are_right(std::span<const std::byte> window, std::uint64_t count) const {
    for (std::uint64_t n = 0; n < count; ++n) {
      std::uint64_t value = 0;
      std::memcpy(&value, window.data() + (kKnockSlots + n) * 8, 8);
      if (value != target_value(run_.options().seed, n)) return false;
    }
    return true;
  }

  /// Communication changes nothing of what the caller computes.
  bool output_is_right(const ResidencyArm& arm) {
    std::vector<float> output(std::size_t{blocks_of(arm.blocks_an_sm)} * kResidencyThreads);
    runner_->read(output.data(), output_.get(), output.size());
    const auto [known, is_first] = outputs_.try_emplace({arm.shape.caller, arm.blocks_an_sm}, output);
    return is_first || std::memcmp(known->second.data(), output.data(), output.size() * sizeof(float)) == 0;
  }

  const RunContext& run_;
  std::unique_ptr<ResidencyRunner> runner_;
  std::chrono::microseconds idle_;
  std::uint32_t multiprocessors_ = 0;  ///< that the callers fill
  std::uint32_t threads_ = 0;
  std::shared_ptr<float> input_;
  std::shared_ptr<float> output_;
  std::shared_ptr<std::uint32_t> failed_;
  std::map<Caller, std::uint32_t> rounds_;
  std::map<std::pair<Caller, std::uint32_t>, std::vector<float>> outputs_;
  std::optional<DeviceGroup> gda_;
};

struct Series {
  std::vector<double> times;  ///< us, of each pass
  NicDescription nic;
  bool verified = true;
};

/// The metric of an arm's loss, or nullptr for the caller alone.
const char* loss_of(Communication communication) {
  constexpr const char* kMetrics[] = {nullptr, "dormant_loss", "send_loss", "waiting_loss"};
  return kMetrics[static_cast<std::size_t>(communication)];
}

class Report {
 public:
  Report(RunContext& run, ResidencyBench& bench) : run_(run), bench_(bench) {}

  void add(const ResidencyArm& arm, const Series& series, const Series* absent) {
    run_.use_nic(series.nic);
    const ResidencyFootprint footprint = bench_.footprint(arm.shape);
    const auto figure = [&](const char* metric, double value) {
      Record record = blank(arm, metric, series.verified);
      record.p50 = value;
      records.push_back(std::move(record));
    };
    figure("registers", footprint.registers);
    figure("local", static_cast<double>(footprint.local));
    figure("blocks_an_sm", footprint.blocks_an_sm);
    const bool computes = arm.shape.caller == Caller::compute;
    // A multiplication and an addition a value and step, or 4 B of it; 1e3 from us to G a second.
    const double scale = bench_.useful(arm) * (computes ? 2 * kStepsARound : 4) / 1e3;
    PassSeries throughput;
    for (const double time : series.times) throughput.add_figure(scale / time);
    Record useful = blank(arm, computes ? "computed" : "streamed", series.verified);
    throughput.fill(useful);
    records.push_back(std::move(useful));
    const char* loss = loss_of(arm.communication);
    if (loss != nullptr && absent != nullptr)
      figure(loss, 100 * (1 - median(absent->times) / median(series.times)));
  }

  std::vector<Record> records;

 private:
  Record blank(const ResidencyArm& arm, const char* metric, bool verified) const {
    Record record = run_.record(arm_name(arm), metric);
    record.verified = verified;
    record.reference = reference_of(arm, metric);
    set(record.parameters, "caller", std::string(name_of(arm.shape.caller)));
    set(record.parameters, "live_values",
        std::int64_t{arm.shape.caller == Caller::compute ? kComputeLive : kStreamingLive});
    set(record.parameters, "communication", std::string(name_of(arm.communication)));
    set(record.parameters, "blocks", std::int64_t{bench_.blocks_of(arm.blocks_an_sm)});
    set(record.parameters, "threads_per_block", std::int64_t{kResidencyThreads});
    if (arm.communication == Communication::absent) return record;
    set(record.parameters, "transport",
        std::string(arm.shape.transport == Transport::gda ? "mini-gda" : "mini-proxy"));
    set(record.parameters, "call", std::string(name_of(arm.shape.call)));
    return record;
  }

  RunContext& run_;
  ResidencyBench& bench_;
};

std::vector<Record> run_residency(RunContext& run) {
  if (!on_gpu(run)) {
    throw std::invalid_argument(
        "residency needs --lanes cuda: registers and resident blocks are a GPU's, a CPU's lanes have none");
  }
  const auto listed = residency_arms();
  const std::map<std::string, ResidencyArm> arms(listed.begin(), listed.end());
  ResidencyBench bench(run);
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) {
    const ResidencyPass pass = bench.measure(arms.at(name));
    Series& series = all[name];
    series.times.push_back(pass.time);
    series.nic = pass.nic;
    series.verified = series.verified && pass.verified;
  });
  run.note(engine_is_elsewhere(run)
               ? "the NIC's engine is on another GPU (BELFRY_SOFTNIC_GPU): the grids fill the callers'"
               : "one multiprocessor's worth of blocks is left out of every grid: the NIC's engine has room "
                 "there");
  Report report(run, bench);
  for (const std::string& name : run.arms()) {
    const auto absent = all.find(base_name(arms.at(name)) + "-absent");
    report.add(arms.at(name), all.at(name), absent == all.end() ? nullptr : &absent->second);
  }
  return std::move(report.records);
}

}  // namespace

Experiment residency_experiment() {
  Experiment experiment;
  experiment.name = "residency";
  experiment.description =
      "registers, resident blocks and throughput of a kernel that has communication in it";
  for (const auto& [name, arm] : residency_arms()) experiment.arms.push_back({name, description_of(arm), ""});
  experiment.metrics = {
      {"registers", "registers", "of a thread"},
      {"local", "B", "local memory of a thread: stack and spills"},
      {"blocks_an_sm", "count", "blocks that a multiprocessor holds at the same time"},
      {"computed", "GFLOP/s", "of the compute caller: what it is there for"},
      {"streamed", "GB/s", "of the streaming caller, read from memory"},
      {"dormant_loss", "%", "of that, beside the caller alone: compiled in and never executed"},
      {"send_loss", "%", "likewise: send, then compute"},
      {"waiting_loss", "%", "likewise: send, wait for the completion, compute"},
  };
  experiment.parameters = {
      {"messages", 16, 1, 1024, "messages a block, spread over its work"},
      {"work-us", 10000, 100, 1000000, "how long the caller alone works, at four blocks an SM"},
      {"qps", 16, 1, kKnockSlots, "queues or rings that all blocks share"},
      {"workers", 2, 1, 64, "of mini-proxy: worker threads"},
  };
  experiment.passes = 5;
  experiment.iterations = 1;
  experiment.quick_passes = 1;
  experiment.quick_iterations = 1;
  experiment.runs_on_gpu = true;
  experiment.gpu_environment = {{kIdleVariable, kIdleMicroseconds}};
  experiment.run = run_residency;
  return experiment;
}

}  // namespace belfry::bench
