#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"

namespace belfry::lanes {
namespace {

/// Uses some 256 B of stack a level. \return a sum that the compiler cannot know
[[gnu::noinline]] std::uint64_t descend(std::uint32_t levels) {
  volatile std::uint64_t frame[32];
  for (std::uint64_t i = 0; i < 32; ++i) frame[i] = i + levels;
  if (levels == 0) return frame[31];
  return descend(levels - 1) + frame[levels % 32];
}

void launch_and_descend(std::uint32_t levels, std::size_t stack_bytes) {
  LaunchOptions options;
  options.stack_bytes = stack_bytes;
  std::uint64_t sum = 0;
  launch({1, 2}, options, [&sum, levels] {
    // A lane that has its stack in the middle of the others'.
    if (port::lane_index() == 1) port::fetch_add<port::Scope::gpu>(&sum, descend(levels));
    port::sync_warp(0b11);
  });
  EXPECT_NE(sum, 0u);
}

// Fault: a lane's stack is smaller than what was asked for.
TEST(Stack, HasTheSizeThatWasAskedFor) { launch_and_descend(1000, std::size_t{4} << 20); }

// Fault: a lane that uses more stack than it has overwrites another lane's.
TEST(StackDeathTest, EndsAtAGuardPage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(launch_and_descend(1'000'000, 64 << 10), "stack-overflow");
#else
  EXPECT_EXIT(launch_and_descend(1'000'000, 64 << 10), ::testing::KilledBySignal(SIGSEGV), "");
#endif
}

}  // namespace
}  // namespace belfry::lanes
