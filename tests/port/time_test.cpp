#include "belfry/port/time.hpp"

#include <gtest/gtest.h>

namespace belfry::port {
namespace {

// Fault: a wait whose time is over goes on.
TEST(Patience, Ends) {
  Patience patience(Timeout::milliseconds(2));
  const std::uint64_t start = now_ns();
  while (!patience.is_over()) ASSERT_LT(now_ns() - start, 60'000'000'000u);
  EXPECT_GE(now_ns() - start, 2'000'000u);
}

}  // namespace
}  // namespace belfry::port
