#include "bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace belfry::bench {
namespace {

double checked_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) {
    throw std::invalid_argument("a rate needs a time above 0 s, not " + std::to_string(seconds));
  }
  return seconds;
}

}  // namespace

double percentile(std::span<const double> ascending, unsigned percent) {
  if (ascending.empty()) throw std::invalid_argument("a percentile needs at least one sample");
  if (percent > 100)
    throw std::invalid_argument("a percentile lies in 0..100, not " + std::to_string(percent));
  // Whole numbers: 0.07 * 100 in floating point is above 7, and its ceiling would be one rank too high.
  const std::size_t rank = (ascending.size() * percent + 99) / 100;
  return ascending[rank == 0 ? 0 : rank - 1];
}

double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("a median needs at least one value");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1) return values[half];
  return values[half - 1] + (values[half] - values[half - 1]) / 2;
}

Summary summarise(std::vector<double> samples) {
  for (const double sample : samples) {
    if (!std::isfinite(sample)) throw std::invalid_argument("a sample is not a finite number");
  }
  std::sort(samples.begin(), samples.end());
  Summary summary;
  summary.count = samples.size();
  summary.p10 = percentile(samples, 10);
  summary.p50 = percentile(samples, 50);
  summary.p90 = percentile(samples, 90);
  summary.p99 = percentile(samples, 99);
  summary.min = samples.front();
  summary.max = samples.back();
  return summary;
}

void PassSeries::add_samples(std::vector<double> samples) {
  summaries_.push_back(summarise(std::move(samples)));
}

void PassSeries::add_figure(double value) {
  summaries_.push_back(summarise({value}));
  figures_ = true;
}

void PassSeries::fill(Record& record) const {
  const auto over_passes = [&](double Summary::*member) {
    std::vector<double> values;
    for (const Summary& summary : summaries_) values.push_back(summary.*member);
    return median(std::move(values));
  };
  record.p50 = over_passes(&Summary::p50);
  record.min = summaries_.front().min;
  record.max = summaries_.front().max;
  record.passes.clear();
  record.count = 0;
  for (const Summary& summary : summaries_) {
    record.passes.push_back(summary.p50);
    record.count += summary.count;
    record.min = std::min(*record.min, summary.min);
    record.max = std::max(*record.max, summary.max);
  }
  if (figures_) return;
  record.p10 = over_passes(&Summary::p10);
  record.p90 = over_passes(&Summary::p90);
  record.p99 = over_passes(&Summary::p99);
}

MillionMessagesPerSecond message_rate(std::uint64_t messages, double seconds) {
  return {static_cast<double>(messages) / checked_seconds(seconds) / 1e6};
}

Bandwidth::Bandwidth(std::uint64_t bytes, double seconds)
    : bytes_per_second_(static_cast<double>(bytes) / checked_seconds(seconds)) {}

}  // namespace belfry::bench
