#include "bench/op_gpu.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "bench/describe_nic.hpp"
#include "bench/gpu_window.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/op_path.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kClockArm = "clock";
constexpr const char* kDoorbellArm = "doorbell";
constexpr Slots kTarget{{0, kGuardBytes}, kSlotBytes, kTargetSlots};
constexpr Slots kSource{{0, kSourceOffset}, kSlotBytes, kSources};

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
    if (is_chosen(kDoorbellArm) && !pairs_.empty()) by_arm_[kDoorbellArm] = pairs_.begin()->second.get();
    if (by_arm_.empty())
      throw std::invalid_argument("no arm that runs on a GPU was chosen: those of mini-gda do");
  }

  const host::DeviceEndpoint& endpoint() const { return by_arm_.begin()->second->pe(0); }
  const Clock& clock() const { return clock_; }
  bool has(const std::string& arm) const { return by_arm_.contains(arm); }

  PutSamples puts(const std::string& arm, std::uint64_t count) {
    const DeviceGroup& group = *by_arm_.at(arm);
    group.edit_window(1, [](std::span<std::byte> window) { clear_target(window.first(kTargetBytes)); });
    const auto issue = allocate_of<std::uint64_t>(*near_, count);
    const auto completion = allocate_of<std::uint64_t>(*near_, count);
    const auto end = allocate_of<KernelEnd>(*near_, 1);
    PutJob job;
    job.view = group.pe(0).view();
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
    samples.verified = target_is_right(std::span<const std::byte>(group.read_window(1)).first(kTargetBytes),
                                       job.seed, job.warm_up + count);
    return samples;
  }

  RoundTripSamples round_trips(const std::string& arm, std::uint64_t count) {
    const DeviceGroup& group = *by_arm_.at(arm);
    for (const int rank : {0, 1}) {
      group.edit_window(rank, [](std::span<std::byte> window) {
        std::fill_n(window.begin() + kFlagOffset, kSlotBytes, std::byte{0});
      });
    }
    const auto ticks = allocate_of<std::uint64_t>(*near_, count);
    const auto end = allocate_of<KernelEnd>(*near_, 1);
    const auto far_end = allocate_of<KernelEnd>(*far_, 1);
    FlagJob answer = flag_job(group, 1, count, far_end.get());
    FlagJob ask = flag_job(group, 0, count, end.get());
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

  FlagJob flag_job(const DeviceGroup& group, int rank, std::uint64_t count, KernelEnd* end) const {
    FlagJob job;
    job.view = group.pe(rank).view();
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
};

struct Metric {
  PassSeries series;
  bool verified = true;
};

}  // namespace

std::vector<Record> run_op_on_gpu(RunContext& run) {
  GpuOp op(run);
  run.use_nic(describe_nic(op.endpoint().context()));
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
    PutSamples put = op.puts(arm, count);
    add(arm, "issue", std::move(put.issue), put.verified);
    add(arm, "put_completion", std::move(put.put_completion), put.verified);
    RoundTripSamples trip = op.round_trips(arm, count);
    add(arm, "round_trip", std::move(trip.round_trip), trip.verified);
  });
  run.note(std::string("clock: ") + op.clock().name() +
           "; mini-gda's kernels run on the GPU, one thread each");
  std::vector<Record> records;
  for (const std::string& arm : run.arms()) {
    for (const MetricInfo& info : run.experiment().metrics) {
      const auto found = metrics.find({arm, info.name});
      if (found == metrics.end()) continue;
      Record record = run.record(arm, info.name, found->second.series);
      if (arm != kDoorbellArm) {
        record.verified = found->second.verified;
        set(record.parameters, "bytes", std::int64_t{kSlotBytes});
        set(record.parameters, "outstanding", std::int64_t{1});
      }
      set(record.parameters, "lanes", std::string("cuda"));
      records.push_back(std::move(record));
    }
  }
  return records;
}

}  // namespace belfry::bench
