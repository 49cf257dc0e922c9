#pragma once
/// \file
/// Percentiles, medians over passes, and rates with their units in the type.
///
/// Definition of a percentile here: the nearest rank. The p-th percentile of n ascending samples is the
/// sample at position ceil(p * n / 100), counted from 1: always a value that was really measured, and the
/// smallest one that at least p percent of the samples do not exceed. There is no interpolation.

#include <cstdint>
#include <span>
#include <vector>

#include "bench/record.hpp"

namespace belfry::bench {

/// \param ascending sorted samples, at least one; throws std::invalid_argument for none
/// \param percent   0..100; 0 gives the smallest sample
double percentile(std::span<const double> ascending, unsigned percent);

/// The middle value; of an even number of values, the mean of the two in the middle. This is how values of
/// passes are joined. Throws std::invalid_argument for none.
double median(std::vector<double> values);

struct Summary {
  std::uint64_t count = 0;
  double p10 = 0, p50 = 0, p90 = 0, p99 = 0, min = 0, max = 0;
};

/// Throws std::invalid_argument for no sample, or one that is not finite.
Summary summarise(std::vector<double> samples);

/// What several passes of one arm gave for one metric.
class PassSeries {
 public:
  /// A pass of many samples: its percentiles are taken within the pass.
  void add_samples(std::vector<double> samples);
  /// A pass that is one figure, a rate for instance.
  void add_figure(double value);

  std::size_t passes() const { return summaries_.size(); }

  /// Fills passes, count, percentiles, min and max: each percentile is the median over passes of that
  /// percentile within a pass; min and max are those of all samples. A series of single figures gets p50
  /// (their median), min and max alone. Throws std::invalid_argument for no pass.
  void fill(Record& record) const;

 private:
  std::vector<Summary> summaries_;
  bool figures_ = false;
};

/// A number whose unit is its type; quantities of different units do not mix.
template <class Unit>
struct Quantity {
  double value = 0;
  static constexpr const char* kUnit = Unit::kName;
};
struct MessagesUnit {
  static constexpr const char* kName = "M msg/s";
};
struct MegabytesUnit {
  static constexpr const char* kName = "MB/s";
};
struct MebibytesUnit {
  static constexpr const char* kName = "MiB/s";
};
struct GigabytesUnit {
  static constexpr const char* kName = "GB/s";
};
struct GibibytesUnit {
  static constexpr const char* kName = "GiB/s";
};
struct GigabitsUnit {
  static constexpr const char* kName = "Gb/s";
};

using MillionMessagesPerSecond = Quantity<MessagesUnit>;
using MegabytesPerSecond = Quantity<MegabytesUnit>;  ///< 10^6 B
using MebibytesPerSecond = Quantity<MebibytesUnit>;  ///< 2^20 B
using GigabytesPerSecond = Quantity<GigabytesUnit>;  ///< 10^9 B
using GibibytesPerSecond = Quantity<GibibytesUnit>;  ///< 2^30 B
using GigabitsPerSecond = Quantity<GigabitsUnit>;    ///< 10^9 bit

/// Throws std::invalid_argument unless seconds is finite and above 0.
MillionMessagesPerSecond message_rate(std::uint64_t messages, double seconds);

/// Bytes over time; a number comes out only together with the unit that was asked for.
class Bandwidth {
 public:
  /// Throws std::invalid_argument unless seconds is finite and above 0.
  Bandwidth(std::uint64_t bytes, double seconds);

  MegabytesPerSecond megabytes() const { return {bytes_per_second_ / 1e6}; }
  MebibytesPerSecond mebibytes() const { return {bytes_per_second_ / (1024.0 * 1024.0)}; }
  GigabytesPerSecond gigabytes() const { return {bytes_per_second_ / 1e9}; }
  GibibytesPerSecond gibibytes() const { return {bytes_per_second_ / (1024.0 * 1024.0 * 1024.0)}; }
  GigabitsPerSecond gigabits() const { return {bytes_per_second_ * 8 / 1e9}; }

 private:
  double bytes_per_second_;
};

}  // namespace belfry::bench
