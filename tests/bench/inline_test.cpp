#include <gmock/gmock.h>

#include <stdexcept>
#include <vector>

#include "bench/inline_math.hpp"

namespace belfry::bench {
namespace {

// Fault: the first size at which noise favours the pointer is taken for the break-even.
TEST(BreakEven, IsWhereThePointerStaysCheaper) {
  const std::vector<SizeCost> costs = {{8, 1, 2}, {12, 3, 2}, {28, 1, 2}, {44, 4, 2}, {60, 5, 2}};
  const BreakEven found = find_break_even(costs);
  ASSERT_TRUE(found.at.has_value());
  // Between 28 (inline ahead by 1) and 44 (behind by 2): a third of the way.
  EXPECT_DOUBLE_EQ(*found.at, 28 + 16.0 / 3);
  EXPECT_FALSE(found.lower || found.upper);
}

// Fault: a figure is made up where the lines do not cross.
TEST(BreakEven, OutsideTheSizesIsABound) {
  const std::vector<SizeCost> inline_wins = {{8, 1, 2}, {220, 1, 2}};
  EXPECT_EQ(find_break_even(inline_wins).lower, 220);
  EXPECT_FALSE(find_break_even(inline_wins).at);
  const std::vector<SizeCost> pointer_wins = {{8, 2, 1}, {220, 2, 2}};
  EXPECT_EQ(find_break_even(pointer_wins).upper, 8);
  EXPECT_FALSE(find_break_even(pointer_wins).at);
  EXPECT_THROW((void)find_break_even({}), std::invalid_argument);
}

// Fault: the slope is that of a byte, or of the pointer's line.
TEST(BreakEven, SlopeOfAChunk) {
  const std::vector<SizeCost> costs = {{12, 1.0, 9}, {28, 1.1, 7}, {44, 1.2, 8}};
  EXPECT_NEAR(added_per_chunk(costs), 0.1, 1e-12);
  EXPECT_THROW((void)added_per_chunk(std::vector<SizeCost>{{8, 1, 1}}), std::invalid_argument);
}

}  // namespace
}  // namespace belfry::bench
