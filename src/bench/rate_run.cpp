#include "bench/rate_run.hpp"

#include <algorithm>

#include "bench/statistics.hpp"

namespace belfry::bench {

template <class View>
RateFigure measure_threads(KernelRunner& runner, const RateGround& ground, RateJobOf<View> job,
                           std::uint64_t messages, const std::string& what,
                           const std::function<void(const RateJobOf<View>&)>& launch) {
  const std::uint32_t threads = ground.threads;
  const auto results = allocate_of<RateResult>(runner, threads);
  job.peer = 1;
  job.messages_a_thread = std::max<std::uint64_t>((messages + threads - 1) / threads, job.batch);
  job.results = results.get();
  ground.edit_target([&](std::span<std::byte> target) { clear_rate_target(target, job, threads); });
  launch(job);

  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const RateResult& result = results.get()[thread];
    check_end(result.end, "thread " + std::to_string(thread) + " of " + what);
    begin = std::min(begin, result.begin_ns);
    end = std::max(end, result.end_ns);
  }
  RateFigure figure;
  figure.messages = job.messages_a_thread * threads;
  figure.rate = message_rate(figure.messages, static_cast<double>(end - begin) / 1e9).value;
  const std::vector<std::byte> source = ground.from_memory ? ground.read_window(0) : std::vector<std::byte>();
  figure.verified = rate_target_is_right(ground.read_window(1), source, job, threads);
  return figure;
}

template RateFigure measure_threads(KernelRunner&, const RateGround&, RateJob, std::uint64_t,
                                    const std::string&, const std::function<void(const RateJob&)>&);
template RateFigure measure_threads(KernelRunner&, const RateGround&, RateJobOf<device::proxy::ProxyView>,
                                    std::uint64_t, const std::string&,
                                    const std::function<void(const ProxyRateJob&)>&);

RateFigure measure_rate(const DeviceGroup& group, KernelRunner& runner, const RateShape& shape,
                        const RateKind& kind, RateJob job, std::uint64_t messages, const std::string& what) {
  job.view = group.pe(0).view();
  job.queues = shape.queues;
  job.posters = shape.posters();
  job.queues_a_thread = shape.cooperation == Cooperation::thread ? shape.queues / shape.threads : 1;
  job.batch = shape.batch;
  const RateGround ground{shape.threads, kind.from_memory, [&](int rank) { return group.read_window(rank); },
                          [&](const auto& edit) { group.edit_window(1, edit); }};
  return measure_threads<device::EndpointView>(
      runner, ground, job, messages, what,
      [&](const RateJob& ready) { runner.rate(kind, shape.grid(), ready); });
}

}  // namespace belfry::bench
