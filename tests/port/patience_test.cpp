// Patience with a clock that counts how often it is read, in place of the CPU's.
#include <gtest/gtest.h>

#include <cstdint>

#define BELFRY_PORT_TIME_HEADER "port/counting_clock.hpp"
#include "belfry/port/time.hpp"

namespace belfry::port {
namespace {

void set_clock(std::uint64_t ns) {
  host_time::clock_ns = ns;
  host_time::reads = 0;
}

// Fault: a wait that has nothing to wait for pays for the clock.
TEST(Patience, DoesNotReadTheClockWhenNotAsked) {
  set_clock(5000);
  Patience patience(Timeout::microseconds(1));
  static_cast<void>(patience);
  EXPECT_EQ(host_time::reads, 0u);
}

// Fault: every turn of a waiting loop reads the clock.
TEST(Patience, ReadsTheClockOnceInManyTurns) {
  set_clock(5000);
  Patience patience(Timeout::seconds(1));
  for (int turn = 0; turn < 160; ++turn) EXPECT_FALSE(patience.is_over());
  EXPECT_EQ(host_time::reads, 10u);
}

// Fault: time is counted from before the first turn, or a wait whose time is over goes on.
TEST(Patience, EndsAfterItsTimeCountedFromTheFirstTurn) {
  set_clock(1000);
  Patience patience(Timeout::microseconds(2));
  host_time::clock_ns = 900'000;
  EXPECT_FALSE(patience.is_over());
  host_time::clock_ns += 1999;
  for (int turn = 0; turn < 16; ++turn) EXPECT_FALSE(patience.is_over());
  ++host_time::clock_ns;
  bool over = false;
  for (int turn = 0; turn < 16; ++turn) over = over || patience.is_over();
  EXPECT_TRUE(over);
}

// Fault: no time at all is taken for no limit, or for a turn more.
TEST(Patience, WithNoTimeIsOverAtTheFirstTurn) {
  set_clock(1000);
  Patience patience(Timeout::nanoseconds(0));
  EXPECT_TRUE(patience.is_over());
}

// Fault: a timeout near the end of the range wraps, and is over at once.
TEST(Patience, HasRoomForTheLongestTime) {
  set_clock(~std::uint64_t{0} - 10);
  Patience patience(Timeout{~std::uint64_t{0}});
  EXPECT_FALSE(patience.is_over());
  host_time::clock_ns += 1000;  // a clock that wraps
  for (int turn = 0; turn < 32; ++turn) EXPECT_FALSE(patience.is_over());
}

// Fault: a unit is off by a factor.
TEST(Timeout, Units) {
  EXPECT_EQ(Timeout::nanoseconds(7).ns, 7u);
  EXPECT_EQ(Timeout::microseconds(7).ns, 7'000u);
  EXPECT_EQ(Timeout::milliseconds(7).ns, 7'000'000u);
  EXPECT_EQ(Timeout::seconds(7).ns, 7'000'000'000u);
}

}  // namespace
}  // namespace belfry::port
