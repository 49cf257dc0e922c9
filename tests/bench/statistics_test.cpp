#include "bench/statistics.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "bench/clock.hpp"

namespace belfry::bench {
namespace {

// Fault: a rank off by one, or rounded through floating point.
TEST(Statistics, PercentileIsTheNearestRank) {
  std::vector<double> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1.0);
  EXPECT_EQ(percentile(hundred, 0), 1);
  EXPECT_EQ(percentile(hundred, 1), 1);
  EXPECT_EQ(percentile(hundred, 7), 7);
  EXPECT_EQ(percentile(hundred, 50), 50);
  EXPECT_EQ(percentile(hundred, 99), 99);
  EXPECT_EQ(percentile(hundred, 100), 100);
  const std::vector<double> five = {15, 20, 35, 40, 50};
  EXPECT_EQ(percentile(five, 5), 15);
  EXPECT_EQ(percentile(five, 30), 20);
  EXPECT_EQ(percentile(five, 40), 20);
  EXPECT_EQ(percentile(five, 41), 35);
  EXPECT_EQ(percentile(five, 50), 35);
}

// Fault: one sample, or none, indexes outside the array.
TEST(Statistics, PercentileAtTheEdges) {
  const std::vector<double> one = {3};
  for (unsigned p : {0u, 1u, 50u, 99u, 100u}) EXPECT_EQ(percentile(one, p), 3);
  const std::vector<double> two = {1, 2};
  EXPECT_EQ(percentile(two, 50), 1);
  EXPECT_EQ(percentile(two, 51), 2);
  EXPECT_THROW((void)percentile({}, 50), std::invalid_argument);
  EXPECT_THROW((void)percentile(one, 101), std::invalid_argument);
}

// Fault: the median over an even number of passes takes one side.
TEST(Statistics, MedianOverPasses) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_TRUE(std::isfinite(median({1.5e308, 1.6e308})));
  EXPECT_THROW((void)median({}), std::invalid_argument);
}

// Fault: samples taken as sorted, or a NaN that makes sorting undefined.
TEST(Statistics, SummaryOfUnsortedSamples) {
  const Summary summary = summarise({3, 1, 2});
  EXPECT_EQ(summary.count, 3u);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.p10, 1);
  EXPECT_EQ(summary.p50, 2);
  EXPECT_EQ(summary.p99, 3);
  EXPECT_EQ(summary.max, 3);
  EXPECT_THROW((void)summarise({}), std::invalid_argument);
  EXPECT_THROW((void)summarise({1, std::numeric_limits<double>::quiet_NaN()}), std::invalid_argument);
}

// Fault: percentiles of all samples thrown together, which one slow pass moves.
TEST(Statistics, SeriesTakesMediansOverPasses) {
  PassSeries series;
  series.add_samples({1, 1, 1});
  series.add_samples({100, 100, 100, 100, 100, 100, 100, 100, 100, 100});
  series.add_samples({2, 2, 2});
  Record record;
  series.fill(record);
  EXPECT_EQ(record.passes, (std::vector<double>{1, 100, 2}));
  EXPECT_EQ(record.p50, 2);
  EXPECT_EQ(record.p99, 2);
  EXPECT_EQ(record.min, 1);
  EXPECT_EQ(record.max, 100);
  EXPECT_EQ(record.count, 16u);
}

// Fault: three rates are given a "p99", which is their maximum under another name.
TEST(Statistics, SeriesOfFiguresHasNoPercentilesButTheMedian) {
  PassSeries series;
  for (double rate : {20.0, 22.0, 21.0}) series.add_figure(rate);
  Record record;
  series.fill(record);
  EXPECT_EQ(record.p50, 21);
  EXPECT_EQ(record.min, 20);
  EXPECT_EQ(record.max, 22);
  EXPECT_FALSE(record.p10 || record.p90 || record.p99);
  EXPECT_THROW(PassSeries().fill(record), std::invalid_argument);
}

// Fault (field case 20): a rate that is off by the number of threads, by 1024, or by 1000.
TEST(Statistics, MessageRate) {
  const MillionMessagesPerSecond rate = message_rate(224958464, 60);
  EXPECT_NEAR(rate.value, 3.749, 0.0005);
  EXPECT_STREQ(rate.kUnit, "M msg/s");
  EXPECT_THROW((void)message_rate(1, 0), std::invalid_argument);
  EXPECT_THROW((void)message_rate(1, -1), std::invalid_argument);
  EXPECT_THROW((void)message_rate(1, std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
}

// Fault (field case 20): MB/s printed as MiB/s. The units are types, and do not convert into each other.
TEST(Statistics, BandwidthUnitsAreNeverConfused) {
  const Bandwidth bandwidth(std::uint64_t{1} << 30, 1.0);
  EXPECT_DOUBLE_EQ(bandwidth.mebibytes().value, 1024);
  EXPECT_DOUBLE_EQ(bandwidth.megabytes().value, 1073.741824);
  EXPECT_DOUBLE_EQ(bandwidth.gibibytes().value, 1);
  EXPECT_DOUBLE_EQ(bandwidth.gigabytes().value, 1.073741824);
  EXPECT_DOUBLE_EQ(bandwidth.gigabits().value, 8.589934592);
  EXPECT_STREQ(bandwidth.megabytes().kUnit, "MB/s");
  EXPECT_STREQ(bandwidth.mebibytes().kUnit, "MiB/s");
  static_assert(!std::is_convertible_v<MegabytesPerSecond, MebibytesPerSecond>);
  static_assert(!std::is_constructible_v<GibibytesPerSecond, GigabytesPerSecond>);
  static_assert(!std::is_convertible_v<Bandwidth, double>);
  EXPECT_THROW((void)Bandwidth(1, 0), std::invalid_argument);
}

// Fault: a unit that a rate prints and no record may carry.
TEST(Statistics, EveryQuantityHasAUnitOfTheSchema) {
  for (const char* unit :
       {MillionMessagesPerSecond::kUnit, MegabytesPerSecond::kUnit, MebibytesPerSecond::kUnit,
        GigabytesPerSecond::kUnit, GibibytesPerSecond::kUnit, GigabitsPerSecond::kUnit}) {
    EXPECT_THAT(known_units(), testing::Contains(std::string_view(unit)));
  }
}

// Fault: a clock whose calibration is wrong by a factor, or that runs backwards.
TEST(Clock, AgreesWithTheSystemsClock) {
  const Clock clock;
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t first = clock.now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(20)) {
  }
  const double ours = clock.seconds(clock.now() - first);
  const double theirs = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // No figure of speed: the thread may lose its core between the two readings, so the bound is wide.
  EXPECT_GT(ours, theirs / 3);
  EXPECT_LT(ours, theirs * 3);
  for (const double sample : clock.overhead_ns(100)) EXPECT_GE(sample, 0);
}

}  // namespace
}  // namespace belfry::bench
