#include "bench/rate_run.hpp"

#include <algorithm>

#include "bench/statistics.hpp"

namespace belfry::bench {

RateFigure measure_rate(const DeviceGroup& group, KernelRunner& runner, const RateShape& shape,
                        const RateKind& kind, RateJob job, std::uint64_t messages, const std::string& what) {
  const auto results = allocate_of<RateResult>(runner, shape.threads);
  job.view = group.pe(0).view();
  job.peer = 1;
  job.queues = shape.queues;
  job.posters = shape.posters();
  job.queues_a_thread = shape.cooperation == Cooperation::thread ? shape.queues / shape.threads : 1;
  job.batch = shape.batch;
  job.messages_a_thread =
      std::max<std::uint64_t>((messages + shape.threads - 1) / shape.threads, shape.batch);
  job.results = results.get();
  clear_rate_target(group.window(1), job, shape.threads);
  runner.rate(kind, shape.grid(), job);

  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  for (std::uint32_t thread = 0; thread < shape.threads; ++thread) {
    const RateResult& result = results.get()[thread];
    check_end(result.end, "thread " + std::to_string(thread) + " of " + what);
    begin = std::min(begin, result.begin_ns);
    end = std::max(end, result.end_ns);
  }
  RateFigure figure;
  figure.messages = job.messages_a_thread * shape.threads;
  figure.rate = message_rate(figure.messages, static_cast<double>(end - begin) / 1e9).value;
  const auto source =
      kind.from_memory ? std::span<const std::byte>(group.window(0)) : std::span<const std::byte>();
  figure.verified = rate_target_is_right(group.window(1), source, job, shape.threads);
  return figure;
}

}  // namespace belfry::bench
