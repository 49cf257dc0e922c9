#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"

namespace belfry::lanes {
namespace {

using port::kFullWarp;

// Fault: a vote lost, or given to another lane; a mask that reaches beyond its lanes.
TEST(Ballot, CountsTheVotesOfItsMaskOnly) {
  std::array<std::uint32_t, 32> odd{}, thirds{};
  launch({1, 32}, {}, [&odd, &thirds] {
    const std::uint32_t lane = port::lane_index();
    odd[lane] = port::ballot(kFullWarp, lane % 2 == 1);
    // Two masks at the same time, each with its own votes.
    const std::uint32_t mine = lane < 10 ? 0x000003ffu : 0xfffffc00u;
    thirds[lane] = port::ballot(mine, lane % 3 == 0);
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(odd[lane], 0xaaaaaaaau);
    EXPECT_EQ(thirds[lane], 0x49249249u & (lane < 10 ? 0x000003ffu : 0xfffffc00u));
  }
}

// Fault: lanes that come late to a mask that overlaps another are given the other's result, or wait for ever.
TEST(Ballot, OverlappingMasksMeetOneAfterTheOther) {
  std::array<std::uint32_t, 3> first{}, second{};
  launch({1, 3}, {}, [&first, &second] {
    const std::uint32_t lane = port::lane_index();
    // Lane 0 waits for lane 1, which meets lane 2 first.
    if (lane >= 1) first[lane] = port::ballot(0b110, true);
    if (lane <= 1) second[lane] = port::ballot(0b011, lane == 1);
  });
  EXPECT_EQ(first, (std::array<std::uint32_t, 3>{0, 0b110, 0b110}));
  EXPECT_EQ(second, (std::array<std::uint32_t, 3>{0b010, 0b010, 0}));
}

template <class T>
void expect_shuffles() {
  std::array<T, 32> from_next{}, from_first{};
  const auto value_of = [](std::uint32_t lane) {
    return static_cast<T>(T{0x9d} * T(lane + 1) + T(~T{0} << 4));
  };
  launch({1, 32}, {}, [&from_next, &from_first, value_of] {
    const std::uint32_t lane = port::lane_index();
    from_next[lane] = port::shuffle(kFullWarp, value_of(lane), (lane + 1) % 32);
    const std::uint32_t half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    from_first[lane] = port::shuffle(half, value_of(lane), port::first_lane(half));
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(from_next[lane], value_of((lane + 1) % 32)) << lane;
    EXPECT_EQ(from_first[lane], value_of(lane < 16 ? 0 : 16)) << lane;
  }
}

// Fault: high bytes lost, or a value taken before its lane has given it.
TEST(Shuffle, ValuesOf1Byte) { expect_shuffles<std::uint8_t>(); }
TEST(Shuffle, ValuesOf4Bytes) { expect_shuffles<std::uint32_t>(); }
TEST(Shuffle, ValuesOf8Bytes) { expect_shuffles<std::uint64_t>(); }

// Fault: a struct's padding or a float takes part as a number.
TEST(Shuffle, ValuesOfOtherTypes) {
  struct Place {
    std::uint16_t queue;
    std::uint8_t port;
  };
  std::array<std::uint32_t, 4> queues{};
  std::array<double, 4> halves{};
  launch({1, 4}, {}, [&queues, &halves] {
    const std::uint32_t lane = port::lane_index();
    const Place place{static_cast<std::uint16_t>(lane * 1000), 1};
    queues[lane] = port::shuffle(0b1111, place, 3).queue;
    halves[lane] = port::shuffle(0b1111, lane * 0.5, 3 - lane);
  });
  EXPECT_EQ(queues, (std::array<std::uint32_t, 4>{3000, 3000, 3000, 3000}));
  EXPECT_EQ(halves, (std::array<double, 4>{1.5, 1.0, 0.5, 0.0}));
}

// Fault: a result of one round is overwritten by lanes that are a round ahead.
TEST(Collectives, ManyRoundsInARow) {
  static constexpr std::uint32_t kRounds = 2000;
  std::array<std::uint32_t, 32> wrong{};
  launch({1, 32}, {}, [&wrong] {
    const std::uint32_t lane = port::lane_index();
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::uint32_t leader = round % 32;
      if (port::shuffle(kFullWarp, round * 32 + lane, leader) != round * 32 + leader) ++wrong[lane];
      if (port::ballot(kFullWarp, lane == leader) != 1u << leader) ++wrong[lane];
      if (lane % 3 == round % 3) port::pause_lane();
    }
  });
  EXPECT_EQ(wrong, (std::array<std::uint32_t, 32>{}));
}

// Fault: sync_warp lets a lane go before others have stored. Plain memory: TSan judges what it orders.
TEST(SyncWarp, OrdersPlainStores) {
  std::array<std::uint64_t, 32> slots{};
  std::array<std::uint32_t, 32> wrong{};
  launch({1, 32}, {}, [&slots, &wrong] {
    const std::uint32_t lane = port::lane_index();
    for (std::uint64_t round = 1; round <= 200; ++round) {
      slots[lane] = round * 100 + lane;
      if (lane % 2 == 0) port::pause_lane();
      port::sync_warp(kFullWarp);
      const std::uint32_t other = (lane + 7) % 32;
      if (slots[other] != round * 100 + other) ++wrong[lane];
      port::sync_warp(kFullWarp);
    }
  });
  EXPECT_EQ(wrong, (std::array<std::uint32_t, 32>{}));
}

// Fault: a barrier that lets a warp through a round early, or forgets one. Plain memory, as above.
TEST(SyncBlock, OrdersPlainStoresOfAllWarps) {
  static constexpr std::uint32_t kThreads = 100;
  std::vector<std::uint64_t> slots(2 * kThreads);
  std::uint64_t* const all = slots.data();
  std::uint32_t wrong = 0;
  launch({2, kThreads}, {}, [all, &wrong] {
    std::uint64_t* const block = all + port::block_index() * kThreads;
    const std::uint32_t thread = port::thread_index();
    for (std::uint64_t round = 1; round <= 100; ++round) {
      block[thread] = round * 1000 + thread;
      port::sync_block();
      const std::uint32_t other = (thread + 37) % kThreads;
      if (block[other] != round * 1000 + other) port::fetch_add<port::Scope::gpu>(&wrong, 1u);
      port::sync_block();
    }
  });
  EXPECT_EQ(wrong, 0u);
}

// Fault: a vote that is lost between warps, or that the next barrier still sees.
TEST(SyncBlock, TellsWhetherAnyThreadVoted) {
  std::uint32_t wrong = 0;
  launch({2, 70}, {}, [&wrong] {
    for (std::uint32_t round = 0; round < 300; ++round) {
      const bool expected = round % 3 != 0;
      const bool any = port::sync_block_any(expected && port::thread_index() == round % 70);
      if (any != expected) port::fetch_add<port::Scope::gpu>(&wrong, 1u);
    }
  });
  EXPECT_EQ(wrong, 0u);
}

// Fault: a block waits in sync_block for threads that have returned, which on a GPU count as arrived.
TEST(SyncBlock, GoesOnWithoutThreadsThatHaveReturned) {
  std::uint32_t arrived = 0;
  launch({1, 96}, {}, [&arrived] {
    const std::uint32_t thread = port::thread_index();
    // All of the first warp, none of the second, and half of the third, at different times.
    if (thread < 32) return;
    port::sync_block();
    if (thread >= 64 && thread % 2 == 0) return;
    port::sync_block();
    port::fetch_add<port::Scope::gpu>(&arrived, 1u);
  });
  EXPECT_EQ(arrived, 48u);
}

#if defined(__SANITIZE_THREAD__)
/// Runs a launch in a process of its own, and leaves with what TSan makes of it.
template <class Kernel>
[[noreturn]] void launch_and_exit(Kernel kernel) {
  launch({1, 2}, {}, kernel);
  std::exit(0);
}

// Fault: TSan takes the lanes of a warp for one thread, and misses the races that they would have on a GPU.
TEST(RaceDeathTest, IsFoundBetweenLanesThatDoNotSynchronise) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static std::uint64_t slots[2];
  const auto with = [](auto meet) {
    return [meet] {
      slots[port::lane_index()] = 1;
      meet();
      slots[1 - port::lane_index()] += 1;
    };
  };
  EXPECT_EXIT(launch_and_exit(with([] { port::pause_lane(); })), ::testing::ExitedWithCode(66), "data race");
  EXPECT_EXIT(launch_and_exit(with([] { port::ballot(0b11, true); })), ::testing::ExitedWithCode(66),
              "data race");
  EXPECT_EXIT(launch_and_exit(with([] { port::sync_warp(0b11); })), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace belfry::lanes
