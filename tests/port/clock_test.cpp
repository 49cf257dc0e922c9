#include <gtest/gtest.h>

#include <cstdint>

#include "belfry/port/time.hpp"

namespace belfry::port {
namespace {

// Fault: the clock goes back or counts in another unit.
TEST(Clock, IsSteadyAndCountsNanoseconds) {
  const auto before = std::chrono::steady_clock::now();
  const std::uint64_t start = now_ns();
  Patience patience(Timeout::milliseconds(2));
  std::uint64_t last = start;
  while (!patience.is_over()) {
    const std::uint64_t now = now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
  const auto passed = std::chrono::steady_clock::now() - before;
  EXPECT_GE(now_ns() - start, 2'000'000u);
  EXPECT_GE(passed, std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace belfry::port
