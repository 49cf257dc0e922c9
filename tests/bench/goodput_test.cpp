/// \file
/// The first size that nearly reaches a reference.

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

#include "bench/goodput_math.hpp"

namespace belfry::bench {
namespace {

constexpr std::array<SizeGoodput, 3> kSizes = {{{64, 1.0}, {512, 8.9}, {4096, 9.0}}};

// Fault: a size just below the share counts, or one at it does not.
TEST(FirstAt, IsTheFirstThatReachesTheShare) {
  Record record;
  fill_first_at(kSizes, 10, 0.9, record);
  EXPECT_EQ(record.p50, 4096);
  EXPECT_FALSE(record.lower.has_value());
}

// Fault: a reference that no size reaches gives a size all the same.
TEST(FirstAt, BeyondTheLargestSizeItIsABound) {
  Record record;
  fill_first_at(kSizes, 20, 0.9, record);
  EXPECT_FALSE(record.p50.has_value());
  EXPECT_EQ(record.lower, 4096);
}

TEST(FirstAt, NeedsASize) {
  Record record;
  EXPECT_THROW(fill_first_at({}, 1, 0.9, record), std::invalid_argument);
}

}  // namespace
}  // namespace belfry::bench
