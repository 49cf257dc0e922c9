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
#include "bench/op_gda.hpp"
#include "bench/op_kernel_path.hpp"
#include "bench/proxy_group.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kClockArm = "clock";

/// Two PEs, their windows by the names that both transports have here.
struct ProxyPair {
  explicit ProxyPair(const RunContext& run)
      : group(run, 2, kWindowBytes, [](std::size_t) { return proxy_options(false); }) {}

  std::vector<std::byte> read_window(int pe) const { return group.read_window(pe); }
  void edit_window(int pe, const std::function<void(std::span<std::byte>)>& edit) const {
    group.edit_window(pe, edit);
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
      : run_(run),
        near_(make_runner(run, false, 0)),
        far_(make_runner(run, false, 1)),
        clock_(near_->clock()) {
    for_each_op_arm([&](auto arm) {
      if (!is_chosen(arm.name)) return;
      const device::Requirements requirements = device::requirements_of<typename decltype(arm)::Policy>();
      if (arm.assisted) {
        by_assisted_arm_[arm.name] = requirements;
        return;
      }
      const auto kind = std::pair(requirements.doorbell_mode, requirements.completion_layout);
      if (!pairs_.contains(kind))
        pairs_.emplace(kind, std::make_unique<DeviceGroup>(run_, 2, options_for(requirements)));
      pairs_.at(kind)->pe(0).admit(requirements);
      by_arm_[arm.name] = pairs_.at(kind).get();
    });
    for_each_proxy_arm([&](auto arm) {
      if (is_chosen(arm.name)) proxy_arms_.insert(arm.name);
    });
    for (const char* bare : {kDoorbellArm, kFenceArm})
      if (is_chosen(bare) && !pairs_.empty()) by_arm_[bare] = pairs_.begin()->second.get();
    if (by_arm_.empty())
      throw std::invalid_argument(
          "with --lanes cuda choose an arm of mini-gda that rings itself too: it says what the NIC is");
  }

  const host::DeviceEndpoint& endpoint() const { return by_arm_.begin()->second->pe(0); }
  const Clock& clock() const { return clock_; }
  bool has(const std::string& arm) const {
    return by_arm_.contains(arm) || by_assisted_arm_.contains(arm) || is_proxy(arm);
  }
  bool is_proxy(const std::string& arm) const { return proxy_arms_.contains(arm); }

  /// One pass of an arm.
  void measure(const std::string& arm, std::uint64_t count, PutSamples& put, RoundTripSamples& trip) {
    // Workers and doorbell threads spin: only while their arm is measured.
    if (is_proxy(arm)) return measure_pair(ProxyPair(run_), arm, count, put, trip);
    std::unique_ptr<DeviceGroup> assisted;
    if (is_assisted(arm)) {
      auto options = options_for(by_assisted_arm_.at(arm));
      forward_by_cpu(options, false);
      assisted = std::make_unique<DeviceGroup>(run_, 2, options);
    }
    measure_pair(GdaPair{assisted ? *assisted : *by_arm_.at(arm)}, arm, count, put, trip);
  }

  std::vector<double> bare(const std::string& arm, std::uint64_t count) {
    const auto issue = allocate_of<std::uint64_t>(*near_, count);
    DoorbellJob job;
    job.view = by_arm_.at(arm)->pe(0).view();
    job.fence = arm == kFenceArm;
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
    return options;
  }

  template <class Pair>
  void measure_pair(const Pair& pair, const std::string& arm, std::uint64_t count, PutSamples& put,
                    RoundTripSamples& trip) {
    using Path = KernelPath<std::decay_t<decltype(pair.view(0))>>;
    const std::uint64_t seed = run_.options().seed;
    Path asks(pair.view(0), 1, seed, *near_, *near_, clock_, arm);
    Path answers(pair.view(1), 0, seed, *far_, *far_, clock_, arm);
    pair.edit_window(1, [](std::span<std::byte> window) { clear_target(window.first(kTargetBytes)); });
    asks.puts(count, put);
    put.verified = target_is_right(std::span<const std::byte>(pair.read_window(1)).first(kTargetBytes), seed,
                                   warm_up_of(count) + count);
    for (const int rank : {0, 1}) {
      pair.edit_window(rank, [](std::span<std::byte> window) {
        std::fill_n(window.begin() + kFlagOffset, kSlotBytes, std::byte{0});
      });
    }
    trip.verified = true;
    std::exception_ptr failure;
    {
      const std::jthread other([&] {
        try {
          answers.echo(count);
        } catch (...) {
          failure = std::current_exception();
        }
      });
      asks.round_trips(count, trip);
    }
    if (failure) std::rethrow_exception(failure);
  }

  RunContext& run_;
  std::unique_ptr<KernelRunner> near_;
  std::unique_ptr<KernelRunner> far_;
  Clock clock_;
  std::map<std::pair<device::DoorbellMode, device::CompletionLayout>, std::unique_ptr<DeviceGroup>> pairs_;
  std::map<std::string, const DeviceGroup*> by_arm_;
  std::map<std::string, device::Requirements> by_assisted_arm_;
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
    if (is_bare(arm)) return add(arm, "issue", op.bare(arm, count), true);
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
      if (!is_bare(arm)) {
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
