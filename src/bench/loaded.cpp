/// \file
/// Experiment `loaded`: the round trip of an 8 B probe while other blocks load both ends.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <thread>

#include "bench/clock.hpp"
#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/device_group.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/op_path.hpp"
#include "bench/proxy_group.hpp"
#include "bench/rate_shape.hpp"

namespace belfry::bench {
namespace {

enum class Load : std::uint8_t { none, shared, reserved };

struct LoadedArm {
  const char* name;
  const char* description;
  const char* reference;
  bool proxy;
  Load load;
};
constexpr LoadedArm kArms[] = {
    {"gda-idle", "mini-gda, nothing beside the probe", "", false, Load::none},
    {"gda-shared", "mini-gda, background on the probe's queue too", "loaded/gdaki-shared", false,
     Load::shared},
    {"gda-reserved", "mini-gda, the probe's queue is its own", "loaded/gdaki-reserved", false,
     Load::reserved},
    {"proxy-idle", "mini-proxy, nothing beside the probe", "", true, Load::none},
    {"proxy-shared", "mini-proxy, background in the probe's ring too", "loaded/mini-proxy-shared", true,
     Load::shared},
    {"proxy-reserved", "mini-proxy, the probe's ring is its own, the worker is not",
     "loaded/mini-proxy-reserved", true, Load::reserved},
};

constexpr int kEnds = 2;
constexpr std::uint32_t kSlotsABlock = 64;
constexpr std::size_t kFlagBytes = 128;  ///< the flag has lines of its own

struct Settings {
  explicit Settings(const RunContext& run)
      : background(static_cast<std::uint32_t>(run.parameter("background"))),
        queues(static_cast<std::uint32_t>(run.parameter("queues"))),
        workers(static_cast<std::uint32_t>(run.parameter("workers"))),
        chain(static_cast<std::uint32_t>(run.parameter("chain"))),
        slots(1u << run.parameter("log-slots")),
        pace(static_cast<std::uint64_t>(run.parameter("pace"))) {
    if (workers > queues) {
      throw std::invalid_argument(fmt::format(
          "{} workers for {} rings: a worker has a ring at least, so raise --queues", workers, queues));
    }
  }
  /// Between two messages of one background block; `pace` is thousands a second of an end's blocks together.
  std::uint64_t interval_ns() const { return pace == 0 ? 0 : background * 1000000ull / pace; }
  std::size_t window_bytes() const {
    return kFlagBytes + std::size_t{background} * kSlotsABlock * sizeof(std::uint64_t);
  }

  std::uint32_t background;
  std::uint32_t queues;
  std::uint32_t workers;
  std::uint32_t chain;
  std::uint32_t slots;
  std::uint64_t pace;
};

/// One for each end: kernels of one GPU runner follow each other.
struct Runners {
  Runners(const RunContext& run, bool gives_way)
      : ends{make_runner(run, gives_way, 0), make_runner(run, gives_way, 1)}, clock(ends[0]->clock()) {}
  std::unique_ptr<KernelRunner> ends[kEnds];
  Clock clock;
};

struct LoadedPass {
  std::vector<double> round_trip;
  std::vector<double> ahead;
  double carried = 0;  ///< M msg/s of both ends' background
  bool verified = true;
};

/// What one end's kernel leaves, and the job that makes it.
template <class View>
struct End {
  End(KernelRunner& runner, std::uint64_t count, std::uint32_t blocks)
      : ticks(allocate_of<std::uint64_t>(runner, count)),
        ahead(allocate_of<std::uint64_t>(runner, count)),
        sent(allocate_of<std::uint64_t>(runner, std::max(blocks, 1u))),
        results(allocate_of<RateResult>(runner, std::max(blocks, 1u))),
        stop(allocate_of<std::uint32_t>(runner, 1)),
        end(allocate_of<KernelEnd>(runner, 1)) {
    job.round_trip = ticks.get();
    job.ahead = ahead.get();
    job.sent = sent.get();
    job.results = results.get();
    job.stop = stop.get();
    job.end = end.get();
  }
  std::shared_ptr<std::uint64_t> ticks, ahead, sent;
  std::shared_ptr<RateResult> results;
  std::shared_ptr<std::uint32_t> stop;
  std::shared_ptr<KernelEnd> end;
  LoadedJobOf<View> job;
};

/// What one background block has written, as a target to check.
template <class View>
RateWork work_of(const LoadedJobOf<View>& job, std::uint32_t block) {
  RateWork work;
  work.seed = job.seed + block;
  work.target = job.target;
  work.target.begin = job.target_of(block, 0);
  work.messages_a_thread = job.sent == nullptr ? 0 : job.sent[block];
  return work;
}

// Windows wherever they lie, of either group.
void edit_window(const DeviceGroup& group, int rank, const std::function<void(std::span<std::byte>)>& edit) {
  group.edit_window(rank, edit);
}
void edit_window(const ProxyGroup& group, int rank, const std::function<void(std::span<std::byte>)>& edit) {
  group.edit_window(rank, edit);
}
std::vector<std::byte> read_window(const DeviceGroup& group, int rank) { return group.read_window(rank); }
std::vector<std::byte> read_window(const ProxyGroup& group, int rank) { return group.read_window(rank); }

/// Both ends at once: end 0 asks. \tparam Group DeviceGroup or ProxyGroup
/// \param runners of each end
template <class View, class Group>
LoadedPass measure_pass(const RunContext& run, const Group& group, const Settings& settings,
                        const LoadedArm& arm, const Runners& runners) {
  const std::uint32_t blocks = arm.load == Load::none ? 0 : settings.background;
  const std::uint64_t count = run.iterations();
  std::vector<End<View>> ends;
  for (int rank = 0; rank < kEnds; ++rank) {
    LoadedJobOf<View>& job = ends.emplace_back(*runners.ends[rank], count, blocks).job;
    job.view = group.pe(rank).view();
    job.clock = runners.clock.ticks();
    job.peer = static_cast<std::uint32_t>(1 - rank);
    job.seed = run.options().seed;
    job.warm_up = warm_up_of(count);
    job.count = count;
    job.queues = settings.queues;
    job.workers = settings.workers;
    job.asks = rank == 0;
    job.interval_ns = settings.interval_ns();
    job.target = {{0, kFlagBytes}, sizeof(std::uint64_t), kSlotsABlock};
    edit_window(group, 1 - rank, [&](std::span<std::byte> window) {
      std::fill(window.begin(), window.end(), std::byte{0});
      for (std::uint32_t block = 0; block < blocks; ++block)
        clear_rate_target(window, work_of(job, block), 1);
    });
  }
  std::exception_ptr failure;
  const auto launch = [&](std::size_t rank) {
    try {
      runners.ends[rank]->loaded(arm.load == Load::shared, blocks, ends[rank].job);
    } catch (...) {
      if (rank == 1) failure = std::current_exception();
      if (rank == 0) throw;
    }
  };
  {
    const std::jthread other([&] { launch(1); });
    launch(0);
  }
  if (failure) std::rethrow_exception(failure);

  LoadedPass pass;
  pass.round_trip = to_microseconds(ends[0].ticks.get(), count, runners.clock);
  pass.ahead.assign(ends[0].ahead.get(), ends[0].ahead.get() + count);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const std::vector<std::byte> window = read_window(group, 1 - static_cast<int>(rank));
    check_end(*ends[rank].end, fmt::format("the probe of {} at end {}", arm.name, rank));
    pass.verified = pass.verified && !ends[rank].end->wrong;
    for (std::uint32_t block = 0; block < blocks; ++block) {
      const RateResult& result = ends[rank].results.get()[block];
      check_end(result.end, fmt::format("background block {} of {} at end {}", block, arm.name, rank));
      pass.carried += static_cast<double>(ends[rank].sent.get()[block]) * 1e3 /
                      static_cast<double>(std::max<std::uint64_t>(result.end_ns - result.begin_ns, 1));
      pass.verified = pass.verified && rate_target_is_right(window, {}, work_of(ends[rank].job, block), 1);
    }
  }
  return pass;
}

/// CPU threads: kernels' at both ends unless these run on a GPU, workers and the NIC's.
unsigned threads_of(const RunContext& run, const Settings& settings, const LoadedArm& arm,
                    bool software_nic) {
  const std::uint32_t blocks = on_gpu(run) ? 0 : 1 + (arm.load == Load::none ? 0 : settings.background);
  return kEnds * (blocks + (arm.proxy ? settings.workers : 0)) + (software_nic ? 1 : 0);
}

LoadedPass measure_gda(RunContext& run, const Settings& settings, const LoadedArm& arm) {
  host::DeviceEndpointOptions options = device_options(settings.window_bytes());
  options.queues_a_peer = settings.queues;
  options.blocks = settings.slots;
  const DeviceGroup group(run, kEnds, options);
  const host::Context& context = group.pe(0).context();
  run.use_nic(describe_nic_of_lanes(run, context));
  const bool crowded = threads_of(run, settings, arm, context.is_software_nic()) > usable_cores();
  return measure_pass<device::EndpointView>(run, group, settings, arm, Runners(run, crowded));
}

LoadedPass measure_proxy(RunContext& run, const Settings& settings, const LoadedArm& arm) {
  const bool crowded = threads_of(run, settings, arm, true) > usable_cores();
  proxy::EndpointOptions options = proxy_options(crowded);
  options.rings = settings.queues;
  options.workers = settings.workers;
  options.chain = settings.chain;
  options.slots = settings.slots;
  const ProxyGroup group(run, kEnds, settings.window_bytes(), [&](std::size_t) { return options; });
  run.use_nic(describe_nic(group.context()));
  return measure_pass<device::proxy::ProxyView>(run, group, settings, arm, Runners(run, crowded));
}

struct Series {
  PassSeries round_trip;
  PassSeries ahead;
  PassSeries carried;
  NicDescription nic;  ///< on a GPU mini-gda's is not mini-proxy's
  bool verified = true;
};

void add_records(const RunContext& run, const Settings& settings, const LoadedArm& arm, const Series& series,
                 std::vector<Record>& records) {
  const auto add = [&](const char* metric, const PassSeries& figures) {
    Record record = run.record(arm.name, metric, figures);
    record.verified = series.verified;
    set(record.parameters, "bytes", std::int64_t{8});
    set(record.parameters, "transport", std::string(arm.proxy ? "mini-proxy" : "mini-gda"));
    if (arm.load == Load::none) set(record.parameters, "background", std::int64_t{0});
    set(record.parameters, "slots", std::int64_t{settings.slots});
    records.push_back(std::move(record));
  };
  add("round_trip", series.round_trip);
  add("ahead", series.ahead);
  if (arm.load != Load::none) add("carried", series.carried);
}

std::vector<Record> run_loaded(RunContext& run) {
  const Settings settings(run);
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) {
    const LoadedArm& arm = find_arm(kArms, name);
    LoadedPass pass = arm.proxy ? measure_proxy(run, settings, arm) : measure_gda(run, settings, arm);
    Series& series = all[name];
    series.nic = run.nic();
    series.round_trip.add_samples(std::move(pass.round_trip));
    series.ahead.add_samples(std::move(pass.ahead));
    series.carried.add_figure(pass.carried);
    series.verified = series.verified && pass.verified;
  });
  std::vector<Record> records;
  std::string crowded;
  for (const std::string& name : run.arms()) {
    run.use_nic(all.at(name).nic);
    add_records(run, settings, find_arm(kArms, name), all.at(name), records);
    if (threads_of(run, settings, find_arm(kArms, name), run.nic().kind == NicKind::soft_cpu) >
        usable_cores())
      crowded += (crowded.empty() ? "" : ", ") + name;
  }
  if (!crowded.empty()) {
    run.note(fmt::format(
        "both ends' blocks, workers and the NIC are more threads than the {} cores: these arms measure "
        "the system's scheduler, and say which order the arms come in, not what they cost: {}",
        usable_cores(), crowded));
  }
  return records;
}

}  // namespace

Experiment loaded_experiment() {
  Experiment experiment;
  experiment.name = "loaded";
  experiment.description = "the round trip of an 8 B probe while background blocks load both ends";
  for (const LoadedArm& arm : kArms) experiment.arms.push_back({arm.name, arm.description, arm.reference});
  experiment.metrics = {
      {"round_trip", "us", "a write to the peer's memory until its answer is seen in ours"},
      {"ahead", "count",
       "what the probe found before it: WQEs of its queue, or descriptors that its worker took first"},
      {"carried", "M msg/s", "background messages of both ends meanwhile"},
  };
  experiment.parameters = {
      {"background", 4, 1, 1000, "blocks that load, at each end"},
      {"pace", 0, 0, 1000000,
       "thousands of messages a second of an end's background together; 0: all it can"},
      {"queues", 2, 2, 1024, "queues to the peer, or rings; number 0 is the probe's"},
      {"workers", 1, 1, 64, "of mini-proxy: worker threads (T) at each end"},
      {"chain", 16, 1, 64, "of mini-proxy: work requests of one post at most (B)"},
      {"log-slots", 10, 6, 15, "depth of a queue or ring, as a power of two"},
  };
  experiment.passes = 3;
  experiment.iterations = 500;
  experiment.quick_passes = 1;
  experiment.quick_iterations = 20;
  experiment.runs_on_gpu = true;
  experiment.run = run_loaded;
  return experiment;
}

}  // namespace belfry::bench
