#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"

namespace belfry::lanes {
namespace {

using port::kFullWarp;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Mistake {
  std::uint32_t block = ~0u, warp = ~0u, lanes = 0;
  std::string what = "no DivergenceError";
};

template <class Kernel>
Mistake mistake_of(Grid grid, Kernel kernel) {
  try {
    launch(grid, {}, kernel);
  } catch (const DivergenceError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::divergence);
    return {error.block(), error.warp(), error.lanes(), error.what()};
  }
  return {};
}

// Each of these hangs, or is undefined, on a GPU. Fault that all guard against: it hangs here as well, or
// passes unnoticed.

TEST(Divergence, AMaskNamesALaneThatHasExited) {
  // Lane 2 leaves before the others come.
  const Mistake before = mistake_of({2, 64}, [] {
    if (port::block_index() != 1 || port::thread_index() < 32) return;
    if (port::lane_index() == 2) return;
    while (port::lane_index() < 2) port::pause_lane();
    port::sync_warp(kFullWarp);
  });
  EXPECT_EQ(before.block, 1u);
  EXPECT_EQ(before.warp, 1u);
  EXPECT_EQ(before.lanes, 0b1100u) << before.what;
  EXPECT_THAT(before.what,
              AllOf(HasSubstr("lane 3 calls sync_warp with mask 0xffffffff"), HasSubstr("lane 2 exited")));
  // Lane 2 leaves while lanes 0 and 1 wait for it.
  const Mistake after = mistake_of({1, 3}, [] {
    if (port::lane_index() == 2) return;
    port::ballot(0b111, true);
  });
  EXPECT_EQ(after.lanes, 0b111u);
  EXPECT_THAT(after.what, HasSubstr("lanes 0-1 in ballot with mask 0x00000007 for lane 2; lane 2 exited"));
}

TEST(Divergence, AMaskNamesALaneThatDoesNotExist) {
  const Mistake mistake = mistake_of({1, 40}, [] { port::sync_warp(kFullWarp); });
  EXPECT_EQ(mistake.warp, 1u);
  EXPECT_EQ(mistake.lanes, 0xffffff00u);
  EXPECT_THAT(mistake.what, HasSubstr("this warp has no lanes 8-31"));
}

TEST(Divergence, AMaskWithoutTheCaller) {
  const Mistake mistake = mistake_of({1, 4}, [] {
    if (port::lane_index() == 3) port::ballot(0b0111, true);
  });
  EXPECT_EQ(mistake.lanes, 0b1000u);
  EXPECT_THAT(mistake.what, HasSubstr("does not name itself"));
}

TEST(Divergence, DifferentCallsWithOneMask) {
  // A third lane polls, so that the warp never stands still.
  const Mistake mistake = mistake_of({1, 3}, [] {
    const std::uint32_t lane = port::lane_index();
    if (lane == 0) port::ballot(0b011, true);
    if (lane == 1) port::shuffle(0b011, 1u, 0);
    while (lane == 2) port::pause_lane();
  });
  EXPECT_EQ(mistake.lanes, 0b011u);
  EXPECT_THAT(mistake.what, HasSubstr("lane 1 calls shuffle with mask 0x00000003, but lane 0 called ballot"));
}

TEST(Divergence, MasksThatDoNotMatch) {
  const Mistake mistake = mistake_of({1, 2}, [] {
    if (port::lane_index() == 0) port::sync_warp(0b11);
    if (port::lane_index() == 1) {
      port::sync_warp(0b10);  // alone: allowed
      port::ballot(0b11, true);
    }
  });
  EXPECT_EQ(mistake.lanes, 0b11u);
  // A ring of three, each with the next: no two of them differ in call or mask alone.
  const Mistake ring = mistake_of({1, 3}, [] {
    const std::uint32_t lane = port::lane_index();
    port::sync_warp(1u << lane | 1u << (lane + 1) % 3);
  });
  EXPECT_EQ(ring.lanes, 0b111u);
  EXPECT_THAT(ring.what, HasSubstr("all wait for each other"));
}

TEST(Divergence, SomeLanesAtTheBlocksBarrierAndSomeAtTheWarps) {
  const Mistake mistake = mistake_of({1, 64}, [] {
    if (port::thread_index() < 8) {
      port::sync_warp(kFullWarp);
    } else {
      port::sync_block();
    }
  });
  EXPECT_EQ(mistake.warp, 0u);
  EXPECT_THAT(mistake.what, AllOf(HasSubstr("lanes 0-7 in sync_warp with mask 0xffffffff for lanes 8-31"),
                                  HasSubstr("lanes 8-31 in sync_block")));
}

TEST(Divergence, AShuffleFromALaneOutsideTheMask) {
  const Mistake outside = mistake_of({1, 4}, [] {
    if (port::lane_index() < 2) port::shuffle(0b0011, 1u, 2);
  });
  EXPECT_THAT(outside.what, HasSubstr("from lane 2, which the mask does not name"));
  const Mistake beyond = mistake_of({1, 4}, [] { port::shuffle(0b1111, 1u, 32); });
  EXPECT_THAT(beyond.what, HasSubstr("from lane 32"));
}

// Fault: a kernel that handles exceptions hides the mistake, and the launch waits for its deadline.
TEST(Divergence, IsKeptFromTheKernelsHandlers) {
  std::uint32_t handled = 0;
  const Mistake mistake = mistake_of({1, 4}, [&handled] {
    try {
      if (port::lane_index() == 1) return;
      port::sync_warp(0b1111);
    } catch (const std::exception&) {
      port::fetch_add<port::Scope::gpu>(&handled, 1u);
    }
  });
  EXPECT_NE(mistake.lanes & 0b0010u, 0u) << mistake.what;
  EXPECT_EQ(handled, 0u);
}

// Fault: a mistake made by a destructor of a lane that unwinds ends the process.
TEST(Divergence, WhileUnwinding) {
  struct Meets {
    ~Meets() { port::sync_warp(0b10); }
  };
  const Mistake mistake = mistake_of({1, 2}, [] {
    if (port::lane_index() == 0) {
      const Meets meets;
      throw 1;
    }
  });
  EXPECT_EQ(mistake.lanes, 0b01u);
}

// Fault: a warp is called stuck although another warp's lanes let it go on.
TEST(Divergence, IsNotSeenWhereOnlyTimeIsMissing) {
  std::uint64_t word = 0;
  EXPECT_NO_THROW(launch({1, 64}, {}, [&word] {
    if (port::thread_index() < 32) {
      if (port::lane_index() == 0) {
        while (port::poll<port::Scope::block>(&word) == 0) {
        }
      }
      port::sync_warp(kFullWarp);
      port::sync_block();
    } else {
      for (int i = 0; i < 1000; ++i) port::pause_lane();
      if (port::lane_index() == 0) port::store<port::Scope::block>(&word, std::uint64_t{1});
      port::sync_block();
    }
  }));
}

}  // namespace
}  // namespace belfry::lanes
