#include "belfry/wire/index.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace belfry::wire {
namespace {

// Guards: 32 lanes that reserve across the 32-bit edge. A 64-bit difference of the head and a wrapped
// ticket is near 2^64, and a plain maximum keeps the old head for ever.
TEST(Index, TicketsWrapAtThe32BitEdge) {
  constexpr std::uint32_t head = 0xfffffff0u;
  constexpr std::uint32_t ticket = 0;
  constexpr std::uint32_t lanes = 32;
  static_assert(index_distance(head, ticket + lanes) == 48);
  static_assert(index_max(head, ticket + lanes) == 32);
  static_assert(index_max(ticket + lanes, head) == 32);
  static_assert(index_before(head, ticket) && !index_before(ticket, head));
  const std::uint64_t wide = head;
  EXPECT_EQ(widen_index(wide, ticket) + lanes - wide, 48u);
  EXPECT_EQ(widen_index(wide, ticket), 0x100000000u);
}

// Guards: a distance of 0 that reads as a whole lap, or a maximum that prefers one of two equals.
TEST(Index, EqualIndices) {
  EXPECT_EQ(index_distance(std::uint32_t{7}, std::uint32_t{7}), 0u);
  EXPECT_FALSE(index_before(std::uint32_t{7}, std::uint32_t{7}));
  EXPECT_EQ(index_max(std::uint16_t{0xffff}, std::uint16_t{0xffff}), 0xffff);
  EXPECT_EQ(widen_index(0x500000007u, std::uint32_t{7}), 0x500000007u);
}

// Guards: integer promotion, which makes the difference of two 16-bit numbers a negative int.
TEST(Index, SixteenBitsAreNotPromoted) {
  EXPECT_EQ(index_distance(std::uint16_t{0xfffe}, std::uint16_t{1}), 3);
  EXPECT_TRUE(index_before(std::uint16_t{0xfffe}, std::uint16_t{1}));
  EXPECT_EQ(index_max(std::uint16_t{0xfffe}, std::uint16_t{1}), 1);
}

// Guards: a short index that lies just behind being taken for one a lap ahead.
TEST(Index, WidensToTheNearestOnEitherSide) {
  const std::uint64_t near = (std::uint64_t{9} << 32) + 5;
  EXPECT_EQ(widen_index(near, std::uint32_t{0xfffffffe}), near - 7);
  EXPECT_EQ(widen_index(near, std::uint32_t{12}), near + 7);
  EXPECT_EQ(widen_index(near, static_cast<std::uint32_t>(near)), near);
}

// Guards: an index before 0, that is one near 2^64, at the start of the count.
TEST(Index, NeverWidensBelowZero) {
  EXPECT_EQ(widen_index(3, std::uint32_t{0xffffffff}), 0xffffffffu);
  EXPECT_EQ(widen_index(3, std::uint16_t{1}), 1u);
  EXPECT_EQ(widen_index(0, std::uint16_t{0x9000}), 0x9000u);
}

// Guards: any pair that a queue of the deepest allowed size can produce.
TEST(Index, EveryDistanceWithinAQueue) {
  for (std::uint64_t base : {std::uint64_t{0}, std::uint64_t{0xfff0}, std::uint64_t{0xffffffff}}) {
    for (std::uint64_t ahead = 0; ahead < 32768; ++ahead) {
      ASSERT_EQ(widen_index(base, static_cast<std::uint16_t>(base + ahead)), base + ahead);
    }
  }
}

}  // namespace
}  // namespace belfry::wire
