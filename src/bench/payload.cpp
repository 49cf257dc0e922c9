/// \file
/// Experiment `payload`: what a payload costs from registers to the peer, by the form in which it is put.

#include "bench/kernels/payload.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/gpu_window.hpp"
#include "bench/op_path.hpp"
#include "bench/proxy_group.hpp"

namespace belfry::bench {
namespace {

constexpr std::uint32_t kSlots = 64;
constexpr std::uint32_t kStride = 4096;
constexpr std::size_t kSourceBegin = std::size_t{kSlots} * kStride;
constexpr std::size_t kPayloadWindowBytes = 2 * kSourceBegin;
constexpr std::byte kUntouched{0xb5};

struct FormInfo {
  const char* name;
  const char* description;
  bool proxy;
  PayloadForm form;
};
constexpr std::array<FormInfo, 5> kForms = {{
    {"value", "mini-gda: from registers into the WQE", false, PayloadForm::value},
    {"inline", "mini-gda: stored in the window, and copied into the WQE", false, PayloadForm::inlined},
    {"pointer", "mini-gda: stored in registered memory, which the NIC reads", false, PayloadForm::pointer},
    {"proxy-value", "mini-proxy: from registers into the descriptor", true, PayloadForm::value},
    {"proxy-pointer", "mini-proxy: stored in registered memory and published, which the NIC reads", true,
     PayloadForm::pointer},
}};

struct PayloadArm {
  FormInfo form;
  std::uint32_t bytes = 0;
};

std::vector<std::uint32_t> sizes_of(PayloadForm form) {
  if (form == PayloadForm::value) return {4, 8};
  // The last is what a WQE takes here.
  if (form == PayloadForm::inlined) return {4, 8, 28, 60, 124, 220};
  return {4, 8, 28, 60, 124, 220, 1024, 4096};
}

std::vector<std::pair<std::string, PayloadArm>> payload_arms() {
  std::vector<std::pair<std::string, PayloadArm>> arms;
  for (const FormInfo& form : kForms)
    for (const std::uint32_t bytes : sizes_of(form.form))
      arms.emplace_back(fmt::format("{}-{}", form.name, bytes), PayloadArm{form, bytes});
  return arms;
}

/// Whether each slot holds its last write, and nothing beyond that.
bool target_is_right(std::span<const std::byte> window, std::uint64_t seed, std::uint32_t bytes,
                     std::uint64_t writes) {
  for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
    std::array<std::byte, kStride> expected;
    expected.fill(kUntouched);
    if (slot < writes) {
      const std::uint64_t i = last_write(slot, kSlots, writes);
      for (std::uint32_t at = 0; at < bytes; at += 8) {
        const std::uint64_t word = payload_word(seed, i, at / 8);
        std::memcpy(expected.data() + at, &word, std::min<std::size_t>(8, bytes - at));
      }
    }
    if (std::memcmp(window.data() + slot * kStride, expected.data(), kStride) != 0) return false;
  }
  return true;
}

struct PayloadPass {
  std::vector<double> issue;
  std::vector<double> put_completion;
  NicDescription nic;
  bool verified = false;
};

class PayloadBench {
 public:
  explicit PayloadBench(const RunContext& run)
      : run_(run), runner_(make_runner(run, usable_cores() < 2)), clock_(runner_->clock()) {}

  PayloadPass measure(const PayloadArm& arm) { return arm.form.proxy ? by_proxy(arm) : by_gda(arm); }

 private:
  /// \param edit, read of the target window
  template <class View, class Edit, class Read>
  PayloadPass run(const PayloadArm& arm, const View& view, const Edit& edit, const Read& read) {
    const std::uint64_t count = run_.iterations();
    const auto issue = allocate_of<std::uint64_t>(*runner_, count);
    const auto completion = allocate_of<std::uint64_t>(*runner_, count);
    const auto end = allocate_of<KernelEnd>(*runner_, 1);
    PutJobOf<View> job;
    job.view = view;
    job.clock = clock_.ticks();
    job.peer = 1;
    job.bytes = arm.bytes;
    job.seed = run_.options().seed;
    job.warm_up = warm_up_of(count);
    job.count = count;
    job.target = {{0, 0}, kStride, kSlots};
    job.source = {{0, kSourceBegin}, kStride, kSlots};
    job.issue = issue.get();
    job.completion = completion.get();
    job.end = end.get();
    edit([](std::span<std::byte> window) { std::fill_n(window.begin(), kSourceBegin, kUntouched); });
    runner_->payload(arm.form.form, job);
    check_end(*end, fmt::format("the puts of {}-{}", arm.form.name, arm.bytes));
    PayloadPass pass;
    pass.issue = to_microseconds(issue.get(), count, clock_);
    pass.put_completion = to_microseconds(completion.get(), count, clock_);
    pass.verified = target_is_right(read(), job.seed, arm.bytes, job.warm_up + count);
    return pass;
  }

  PayloadPass by_gda(const PayloadArm& arm) {
    if (!gda_) {
      host::DeviceEndpointOptions options = device_options(kPayloadWindowBytes);
      options.blocks = 128;
      gda_.emplace(run_, 2, options);
    }
    PayloadPass pass = run(
        arm, gda_->pe(0).view(), [&](const auto& edit) { gda_->edit_window(1, edit); },
        [&] { return gda_->read_window(1); });
    pass.nic = describe_nic_of_lanes(run_, gda_->pe(0).context());
    return pass;
  }

  /// Workers exist only while their arm is measured.
  PayloadPass by_proxy(const PayloadArm& arm) {
    const proxy::EndpointOptions options = proxy_options((on_gpu(run_) ? 0 : 1) + 2 > usable_cores());
    const ProxyGroup group(run_, 2, kPayloadWindowBytes,
                           [&](std::size_t rank) { return rank == 0 ? options : resting_options(options); });
    PayloadPass pass = run(
        arm, group.pe(0).view(), [&](const auto& edit) { group.edit_window(1, edit); },
        [&] { return group.read_window(1); });
    pass.nic = describe_nic(group.context());
    return pass;
  }

  const RunContext& run_;
  std::unique_ptr<KernelRunner> runner_;
  const Clock clock_;
  std::optional<DeviceGroup> gda_;
};

struct Series {
  PassSeries issue;
  PassSeries put_completion;
  NicDescription nic;
  bool verified = true;
};

std::vector<Record> run_payload(RunContext& run) {
  const auto listed = payload_arms();
  const std::map<std::string, PayloadArm> arms(listed.begin(), listed.end());
  PayloadBench bench(run);
  std::map<std::string, Series> all;
  run.interleave([&](const std::string& name, unsigned) {
    PayloadPass pass = bench.measure(arms.at(name));
    Series& series = all[name];
    series.issue.add_samples(std::move(pass.issue));
    series.put_completion.add_samples(std::move(pass.put_completion));
    series.nic = pass.nic;
    series.verified = series.verified && pass.verified;
  });
  std::vector<Record> records;
  for (const std::string& name : run.arms()) {
    const Series& series = all.at(name);
    const PayloadArm& arm = arms.at(name);
    run.use_nic(series.nic);
    const auto add = [&](const char* metric, const PassSeries& values) {
      Record record = run.record(name, metric, values);
      record.verified = series.verified;
      set(record.parameters, "bytes", std::int64_t{arm.bytes});
      set(record.parameters, "payload", std::string(arm.form.name));
      set(record.parameters, "outstanding", std::int64_t{1});
      records.push_back(std::move(record));
    };
    add("issue", series.issue);
    add("put_completion", series.put_completion);
  }
  return records;
}

}  // namespace

Experiment payload_experiment() {
  Experiment experiment;
  experiment.name = "payload";
  experiment.description = "a payload from registers to the peer: as a value, inline, or by pointer";
  for (const auto& [name, arm] : payload_arms())
    experiment.arms.push_back({name, fmt::format("{} B. {}", arm.bytes, arm.form.description), ""});
  experiment.metrics = {
      {"issue", "us", "from the payload in registers until the put returns: storing it is part of it"},
      {"put_completion", "us", "from there until the completion is seen"},
  };
  experiment.iterations = 3000;
  experiment.quick_iterations = 100;
  experiment.quick_passes = 1;
  experiment.runs_on_gpu = true;
  experiment.run = run_payload;
  return experiment;
}

}  // namespace belfry::bench
