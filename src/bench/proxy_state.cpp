/// \file
/// Experiment `proxy-state`: what the state of its worker's core does to mini-proxy.

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "bench/clock.hpp"
#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/op_kernel_path.hpp"
#include "bench/proxy_group.hpp"
#include "bench/two_ranks.hpp"
#include "host/cpu_choice.hpp"

namespace belfry::bench {
namespace {

/// Of the other arms' operations, contended ones do so many: all arms take about as long.
constexpr std::uint64_t kContendedShare = 10;

constexpr const char* kKernelArm = "proxy-tuned";  ///< of for_each_proxy_arm()

enum class State : std::uint8_t { cold, warm, contended };

struct StateArm {
  const char* name;
  const char* description;
  const char* reference;
  State state;
  bool pinned;
};
constexpr StateArm kArms[] = {
    {"cold-pinned", "worker pinned, after --idle-ms without work", "proxy/tuned-cold", State::cold, true},
    {"warm-pinned", "worker pinned, after --load-ms of work", "proxy/tuned-warm", State::warm, true},
    {"contended-pinned", "warm, and another thread spins on the worker's CPU", "", State::contended, true},
    {"cold", "worker not pinned, after --idle-ms without work", "", State::cold, false},
    {"warm", "worker not pinned, after --load-ms of work", "", State::warm, false},
    {"contended", "warm, and a thread for every core spins", "", State::contended, false},
};

/// Threads that do nothing but want a core.
class Contenders {
 public:
  /// \param cpu that the one is pinned to; -1: a thread for every core, wherever the system puts them
  explicit Contenders(int cpu) {
    const unsigned count = cpu >= 0 ? 1 : usable_cores();
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this, cpu] {
        host::settle_thread("belfry-contend", cpu);
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~Contenders() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Contenders(const Contenders&) = delete;
  Contenders& operator=(const Contenders&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Writes as fast as the ring takes them: the same writes as one at a time, so that the same check holds.
class CapacityPath final : public OpPath {
 public:
  CapacityPath(const OpEnd& end, const device::proxy::ProxyView& view, KernelRunner& runner)
      : runner_(runner) {
    job_.view = view;
    job_.peer = static_cast<std::uint32_t>(end.peer());
    job_.seed = end.seed();
  }

  void puts(std::uint64_t count, PutSamples&) override {
    job_.target = {{0, kGuardBytes}, kSlotBytes, kTargetSlots};
    rate_ = run(warm_up_of(count) + count);
  }
  void round_trips(std::uint64_t, RoundTripSamples&) override {}
  void echo(std::uint64_t) override {}

  /// M msg/s of the latest puts.
  double rate() const { return rate_; }

  /// Keeps the worker at it, beside the target.
  void load(std::chrono::milliseconds time) {
    constexpr std::uint64_t kMessages = 2000;
    job_.target = {{0, kSourceOffset}, kSlotBytes, kSources};
    for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;)
      run(kMessages);
  }

 private:
  double run(std::uint64_t messages) {
    const auto result = allocate_of<RateResult>(runner_, 1);
    job_.messages_a_thread = messages;
    job_.results = result.get();
    runner_.rate(false, Grid{1, 1}, job_);
    check_end(result->end, "the writes at full rate");
    return message_rate(messages, static_cast<double>(result->end_ns - result->begin_ns) / 1e9).value;
  }

  KernelRunner& runner_;
  ProxyRateJob job_;
  double rate_ = 0;
};

/// One end of a pass: endpoint and paths, for as long as the arm is measured.
class StateEnd {
 public:
  StateEnd(const RunContext& run, const OpEnd& end, const host::Windows& windows, const Clock& clock,
           KernelRunner& runner, bool pin)
      : endpoint_(end.group(), windows, options(run, pin)),
        path_(endpoint_.view(), end.peer(), end.seed(), runner, runner, clock, kKernelArm),
        capacity_(end, endpoint_.view(), runner) {}

  KernelPath<device::proxy::ProxyView>& path() { return path_; }
  CapacityPath& capacity() { return capacity_; }
  int worker_cpu() const { return endpoint_.worker_cpu(0); }

 private:
  static proxy::EndpointOptions options(const RunContext& run, bool pin) {
    proxy::EndpointOptions o = proxy_options(true);
    o.pin = pin;
    o.chain = static_cast<std::uint32_t>(run.parameter("chain"));
    place_for_lanes(run, 0, o);
    o.idle = {.kind = static_cast<proxy::IdlePolicy::Kind>(run.parameter("idle-policy"))};
    return o;
  }

  proxy::Endpoint endpoint_;
  KernelPath<device::proxy::ProxyView> path_;
  CapacityPath capacity_;
};

struct Series {
  PassSeries put_completion, round_trip, rate, frequency;
  bool verified = true;
};

/// What both ranks have.
class StateRank {
 public:
  StateRank(RunContext& run, host::Bootstrap& group)
      : run_(run),
        end_(run.options().nic, group, run.options().seed),
        pinned_(pin_for_lanes(run, end_.endpoint().memory().span())),
        windows_(kernel_windows(end_, on_gpu(run) ? device::MemoryKind::host : device::MemoryKind::own)),
        runner_(make_runner(run, is_crowded())),
        clock_(runner_->clock()) {}

  const OpEnd& end() const { return end_; }
  /// A round trip has a kernel and a worker at either end.
  bool is_crowded() const { return (on_gpu(run_) ? 2 : 4) + run_.options().processes > usable_cores(); }

  void measure(const StateArm& arm, Series& series) {
    StateEnd mine(run_, end_, windows_, clock_, *runner_, arm.pinned);
    const std::uint64_t count = iterations(arm);
    std::optional<Contenders> contenders;
    if (arm.state == State::contended) contenders.emplace(mine.worker_cpu());
    prepare(arm.state, mine);
    if (const auto mhz = frequency_mhz("/", mine.worker_cpu())) series.frequency.add_figure(*mhz);
    PutSamples put = end_.measure_puts(mine.path(), count);
    prepare(arm.state, mine);
    RoundTripSamples trip = end_.measure_round_trips(mine.path(), count);
    prepare(arm.state, mine);
    const PutSamples full = end_.measure_puts(mine.capacity(), capacity_count(arm));
    series.put_completion.add_samples(std::move(put.put_completion));
    series.round_trip.add_samples(std::move(trip.round_trip));
    series.rate.add_figure(mine.capacity().rate());
    series.verified = series.verified && put.verified && trip.verified && full.verified;
  }

  /// Its worker is neither pinned nor looked at.
  void serve(const StateArm& arm) {
    StateEnd mine(run_, end_, windows_, clock_, *runner_, false);
    end_.serve_puts(iterations(arm));
    end_.serve_round_trips(mine.path(), iterations(arm));
    end_.serve_puts(capacity_count(arm));
  }
  /// A contended operation may take a slice of the scheduler, ms long.
  std::uint64_t iterations(const StateArm& arm) const {
    if (arm.state != State::contended) return run_.iterations();
    return std::max<std::uint64_t>(run_.iterations() / kContendedShare, 1);
  }

 private:
  std::uint64_t capacity_count(const StateArm& arm) const { return iterations(arm) * 20; }

  void prepare(State state, StateEnd& mine) const {
    if (state == State::cold) {
      std::this_thread::sleep_for(std::chrono::milliseconds(run_.parameter("idle-ms")));
    } else {
      mine.capacity().load(std::chrono::milliseconds(run_.parameter("load-ms")));
    }
  }

  RunContext& run_;
  OpEnd end_;
  std::shared_ptr<void> pinned_;
  host::Windows windows_;
  std::unique_ptr<KernelRunner> runner_;
  const Clock clock_;
};

void add_records(const RunContext& run, const StateArm& arm, std::uint64_t iterations, const Series& series,
                 std::vector<Record>& records) {
  const auto add = [&](const char* metric, const PassSeries& figures) {
    if (figures.passes() == 0) return;
    Record record = run.record(arm.name, metric, figures);
    if (figures.passes() != 0 && record.metric != "frequency") record.verified = series.verified;
    set(record.parameters, "iterations", static_cast<std::int64_t>(iterations));
    set(record.parameters, "pinned", arm.pinned);
    set(record.parameters, "bytes", std::int64_t{8});
    records.push_back(std::move(record));
  };
  add("put_completion", series.put_completion);
  add("round_trip", series.round_trip);
  add("rate", series.rate);
  add("frequency", series.frequency);
}

std::vector<Record> measure(RunContext& run, host::Bootstrap& group) {
  StateRank rank(run, group);
  run.use_nic(describe_nic(rank.end().endpoint().context()));
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) { rank.measure(find_arm(kArms, name), all[name]); });
  if (rank.is_crowded()) {
    run.note(
        "kernels, workers and NIC are more threads than the cores: every arm is contended, and measures the "
        "system's scheduler");
  }
  std::vector<Record> records;
  for (const std::string& name : run.arms())
    add_records(run, find_arm(kArms, name), rank.iterations(find_arm(kArms, name)), all.at(name), records);
  return records;
}

void serve(RunContext& run, host::Bootstrap& group) {
  StateRank rank(run, group);
  run.interleave([&](const std::string& name, unsigned) { rank.serve(find_arm(kArms, name)); });
}

const TwoRanks kRanks = {measure, serve};

}  // namespace

Experiment proxy_state_experiment() {
  Experiment experiment;
  experiment.name = "proxy-state";
  experiment.description = "mini-proxy with its worker's core cold, warm, or shared with another thread";
  for (const StateArm& arm : kArms) experiment.arms.push_back({arm.name, arm.description, arm.reference});
  experiment.metrics = {
      {"put_completion", "us",
       "from before put() to knowing that the write is complete, tuned, payload visible"},
      {"round_trip", "us", "write to the peer's memory until its answer is seen in ours"},
      {"rate", "M msg/s", "8 B messages of one ring, as fast as they go"},
      {"frequency", "MHz",
       "of the worker's core, as the system tells it, before the first put; pinned workers only"},
  };
  experiment.parameters = {
      {"idle-ms", 100, 1, 45000, "idle time before each measurement of a cold arm"},
      {"load-ms", 100, 1, 45000, "time at full load before each measurement of the others"},
      {"chain", 16, 1, 64, "work requests of one post at most (B)"},
      {"idle-policy", 2, 0, 2, "what a worker does while its ring is empty", {"spin", "yield", "sleep"}},
  };
  experiment.most_processes = 2;
  experiment.runs_on_gpu = true;
  experiment.passes = 3;
  experiment.iterations = 400;
  experiment.quick_passes = 1;
  experiment.quick_iterations = 20;
  experiment.run = [](RunContext& run) { return run_two_ranks(run, kRanks); };
  experiment.peer = [](RunContext& run, const std::string& address) { serve_peer(run, address, kRanks); };
  return experiment;
}

}  // namespace belfry::bench
