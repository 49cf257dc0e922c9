#include "bench/op_gpu.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "bench/describe_nic.hpp"
#include "bench/device_group.hpp"
#include "bench/gpu_window.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/op_path.hpp"
#include "bench/proxy_group.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kClockArm = "clock";
constexpr const char* kDoorbellArm = "doorbell";
constexpr Slots kTarget{{0, kGuardBytes}, kSlotBytes, kTargetSlots};
constexpr Slots kSource{{0, kSourceOffset}, kSlotBytes, kSources};

/// Two PEs, their windows by the names that both transports have here.
struct ProxyPair {
  explicit ProxyPair(const RunContext& run)
      : group(run, 2, kWindowBytes, [](std::size_t) { return proxy_options(false); }) {}

  std::vector<std::byte> read_window(int pe) const {
    const auto window = group.window(pe);
    return {window.begin(), window.end()};
  }
  void edit_window(int pe, const std::function<void(std::span<std::byte>)>& edit) const {
    edit(group.window(pe));
  }
  const device::proxy::ProxyView& view(int pe) const { return group.pe(pe).view(); }

  ProxyGroup group;
};

/// The same names for mini-gda's.
struct GdaPair {
  const DeviceGroup& group;
  std::vector<std::byte> read_window(int pe) const { return group.read_window(pe); }
  void edit_window(int pe, const std::function<void(std::span<std::byte>)>& edit) const {
    group.edit_window(pe, edit);
  }
  const device::EndpointView& view(int pe) const { return group.pe(pe).view(); }
};

class GpuOp {
 public:
  explicit GpuOp(RunContext& run)
      : run_(run), near_(make_cuda_runner()), far_(make_cuda_runner()), clock_(near_->clock()) {
    for_each_op_arm([&](auto arm) {
      if (!is_chosen(arm.name)) return;
      const device::Requirements requirements = device::requirements_of<typename decltype(arm)::Policy>();
      const auto kind = std::pair(requirements.doorbell_mode, requirements.completion_layout);
      if (!pairs_.contains(kind))
        pairs_.emplace(kind, std::make_unique<DeviceGroup>(run_.options().nic, 2, options_for(requirements)));
      pairs_.at(kind)->pe(0).admit(requirements);
      by_arm_[arm.name] = pairs_.at(kind).get();
    });
    for_each_proxy_arm([&](auto arm) {
      if (is_chosen(arm.name)) proxy_arms_.insert(arm.name);
    });
    if (is_chosen(kDoorbellArm) && !pairs_.empty()) by_arm_[kDoorbellArm] = pairs_.begin()->second.get();
    if (by_arm_.empty())
      throw std::invalid_argument("with --lanes cuda choose an arm of mini-gda too: it says what the NIC is");
  }

  const host::DeviceEndpoint& endpoint() const { return by_arm_.begin()->second->pe(0); }
  const Clock& clock() const { return clock_; }
  bool has(const std::string& arm) const { return by_arm_.contains(arm) || is_proxy(arm); }
  bool is_proxy(const std::string& arm) const { return proxy_arms_.contains(arm); }

  /// One pass of an arm.
  void measure(const std::string& arm, std::uint64_t count, PutSamples& put, RoundTripSamples& trip) {
    if (is_proxy(arm)) {
      // Workers spin: only while their arm is measured.
      const ProxyPair pair(run_);
      put = puts(pair, arm, count);
      trip = round_trips(pair, arm, count);
    } else {
      const GdaPair pair{*by_arm_.at(arm)};
      put = puts(pair, arm, count);
      trip = round_trips(pair, arm, count);
    }
  }

  template <class Pair>
  PutSamples puts(const Pair& pair, const std::string& arm, std::uint64_t count) {
    pair.edit_window(1, [](std::span<std::byte> window) { clear_target(window.first(kTargetBytes)); });
    const auto issue = allocate_of<std::uint64_t>(*near_, count);
    const auto completion = allocate_of<std::uint64_t>(*near_, count);
    const auto end = allocate_of<KernelEnd>(*near_, 1);
    PutJobOf<std::decay_t<decltype(pair.view(0))>> job;
    job.view = pair.view(0);
    job.peer = 1;
    job.seed = run_.options().seed;
    job.warm_up = warm_up_of(count);
    job.count = count;
    job.target = kTarget;
    job.source = kSource;
    job.issue = issue.get();
    job.completion = completion.get();
    job.end = end.get();
    near_->puts(arm, job);
    check_end(*end, "the puts of " + arm);
    PutSamples samples;
    samples.issue = to_microseconds(issue.get(), count, clock_);
    samples.put_completion = to_microseconds(completion.get(), count, clock_);
    samples.verified = target_is_right(std::span<const std::byte>(pair.read_window(1)).first(kTargetBytes),
                                       job.seed, job.warm_up + count);
    return samples;
  }

  template <class Pair>
  RoundTripSamples round_trips(const Pair& pair, const std::string& arm, std::uint64_t count) {
    for (const int rank : {0, 1}) {
      pair.edit_window(rank, [](std::span<std::byte> window) {
        std::fill_n(window.begin() + kFlagOffset, kSlotBytes, std::byte{0});
      });
    }
    const auto ticks = allocate_of<std::uint64_t>(*near_, count);
    const auto end = allocate_of<KernelEnd>(*near_, 1);
    const auto far_end = allocate_of<KernelEnd>(*far_, 1);
    auto answer = flag_job(pair, 1, count, far_end.get());
    auto ask = flag_job(pair, 0, count, end.get());
    ask.round_trip = ticks.get();
    std::exception_ptr failure;
    std::thread other([&] {
      try {
        far_->echo(arm, answer);
      } catch (...) {
        failure = std::current_exception();
      }
    });
    try {
      near_->round_trips(arm, ask);
    } catch (...) {
      other.join();
      throw;
    }
    other.join();
    if (failure) std::rethrow_exception(failure);
    check_end(*end, "the round trips of " + arm);
    check_end(*far_end, "the answers of " + arm);
    RoundTripSamples samples;
    samples.round_trip = to_microseconds(ticks.get(), count, clock_);
    samples.verified = !end->wrong;
    return samples;
  }

  std::vector<double> doorbells(std::uint64_t count) {
    const auto issue = allocate_of<std::uint64_t>(*near_, count);
    DoorbellJob job;
    job.view = by_arm_.at(kDoorbellArm)->pe(0).view();
    job.peer = 1;
    job.count = count;
    job.pause_ticks = clock_.ticks_in(1.0);
    job.issue = issue.get();
    near_->doorbells(job);
    return to_microseconds(issue.get(), count, clock_);
  }

 private:
  bool is_chosen(const std::string& arm) const {
    return std::find(run_.arms().begin(), run_.arms().end(), arm) != run_.arms().end();
  }

  host::DeviceEndpointOptions options_for(const device::Requirements& requirements) const {
    auto options = device_options(kWindowBytes);
    options.doorbell = requirements.doorbell_mode;
    options.completions = requirements.completion_layout;
    options.blocks = 128;
    place_for_lanes(run_, options);
    return options;
  }

  template <class Pair>
  auto flag_job(const Pair& pair, int rank, std::uint64_t count, KernelEnd* end) const {
    FlagJobOf<std::decay_t<decltype(pair.view(0))>> job;
    job.view = pair.view(rank);
    job.peer = static_cast<std::uint32_t>(1 - rank);
    job.seed = run_.options().seed;
    job.warm_up = warm_up_of(count);
    job.count = count;
    job.flag = {0, kFlagOffset};
    job.source = kSource;
    job.end = end;
    return job;
  }

  RunContext& run_;
  std::unique_ptr<KernelRunner> near_;
  std::unique_ptr<KernelRunner> far_;
  Clock clock_;
  std::map<std::pair<device::DoorbellMode, device::CompletionLayout>, std::unique_ptr<DeviceGroup>> pairs_;
  std::map<std::string, const DeviceGroup*> by_arm_;
  std::set<std::string> proxy_arms_;
};

struct Metric {
  PassSeries series;
  bool verified = true;
};

}  // namespace

std::vector<Record> run_op_on_gpu(RunContext& run) {
  GpuOp op(run);
  const NicDescription engine = describe_nic_of_lanes(run, op.endpoint().context());
  const NicDescription workers = describe_nic(op.endpoint().context());
  for (const std::string& decision : op.endpoint().decisions()) run.note(decision);
  std::map<std::pair<std::string, std::string>, Metric> metrics;
  const auto add = [&](const std::string& arm, const char* name, std::vector<double> samples, bool verified) {
    Metric& metric = metrics[{arm, name}];
    metric.series.add_samples(std::move(samples));
    metric.verified = metric.verified && verified;
  };
  run.interleave([&](const std::string& arm, unsigned) {
    const std::uint64_t count = run.iterations();
    if (!op.has(arm)) return;
    if (arm == kDoorbellArm) return add(arm, "issue", op.doorbells(count), true);
    PutSamples put;
    RoundTripSamples trip;
    op.measure(arm, count, put, trip);
    add(arm, "issue", std::move(put.issue), put.verified);
    add(arm, "put_completion", std::move(put.put_completion), put.verified);
    add(arm, "round_trip", std::move(trip.round_trip), trip.verified);
  });
  run.note(std::string("clock: ") + op.clock().name() +
           "; mini-gda's kernels run on the GPU, one thread each");
  std::vector<Record> records;
  for (const std::string& arm : run.arms()) {
    run.use_nic(op.is_proxy(arm) ? workers : engine);
    for (const MetricInfo& info : run.experiment().metrics) {
      const auto found = metrics.find({arm, info.name});
      if (found == metrics.end()) continue;
      Record record = run.record(arm, info.name, found->second.series);
      if (arm != kDoorbellArm) {
        record.verified = found->second.verified;
        set(record.parameters, "bytes", std::int64_t{kSlotBytes});
        set(record.parameters, "outstanding", std::int64_t{1});
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

}  // namespace belfry::bench
