#include "belfry/port/lane.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace belfry::port {
namespace {

// Fault: code that runs on a host thread without a runner reads what is not there, or waits for lanes that
// nobody runs.
TEST(LaneWithoutRunner, IsAGridOfOne) {
  ASSERT_EQ(current_lane(), nullptr);
  EXPECT_EQ(lane_index(), 0u);
  EXPECT_EQ(thread_index(), 0u);
  EXPECT_EQ(threads_a_block(), 1u);
  EXPECT_EQ(block_index(), 0u);
  EXPECT_EQ(block_count(), 1u);
  EXPECT_EQ(warp_mask(), 1u);
}

// Fault: as above; or a vote counts for lanes that the mask does not name.
TEST(LaneWithoutRunner, MeetsItself) {
  sync_warp(1);
  sync_block();
  EXPECT_TRUE(sync_block_any(true));
  EXPECT_FALSE(sync_block_any(false));
  pause_lane();
  EXPECT_EQ(ballot(1, true), 1u);
  EXPECT_EQ(ballot(1, false), 0u);
  EXPECT_EQ(ballot(2, true), 0u);
  EXPECT_EQ(shuffle(1, std::uint8_t{0xa5}, 0), 0xa5);
  EXPECT_EQ(shuffle(1, 0x12345678u, 0), 0x12345678u);
  EXPECT_EQ(shuffle(1, 0x123456789abcdef0u, 0), 0x123456789abcdef0u);
  EXPECT_EQ(shuffle(1, -1.5, 0), -1.5);
}

/// A lane that notes what it was asked for.
class Noting final : public CpuLane {
 public:
  Noting() = default;
  virtual ~Noting() = default;

  std::uint32_t yields = 0;
  std::uint32_t barriers = 0;
  std::uint32_t mask = 0;

  void yield() override { ++yields; }
  void sync_warp(std::uint32_t of) override { mask = of; }
  std::uint32_t ballot(std::uint32_t of, bool vote) override { return vote ? of : 0; }
  std::uint64_t shuffle(std::uint32_t, std::uint64_t value, std::uint32_t source) override {
    return value << source;
  }
  bool sync_block(bool vote) override {
    ++barriers;
    return vote;
  }
};

// Fault: a runner's lane is passed over, or a short last warp is filled up.
TEST(LaneWithRunner, IsAsked) {
  Noting lane;
  lane.lane = 3;
  lane.thread = 35;
  lane.block = 7;
  lane.threads_a_block = 40;
  lane.blocks = 9;
  current_lane() = &lane;
  pause_lane();
  sync_block();
  sync_warp(0xf0);
  const std::uint32_t votes = ballot(0xff, true);
  const std::uint32_t shuffled = shuffle(0xff, 5u, 4);
  const std::uint32_t index[] = {lane_index(), thread_index(), block_index(), threads_a_block(),
                                 block_count()};
  const std::uint32_t last_warp = warp_mask();
  lane.thread = 31;
  const std::uint32_t first_warp = warp_mask();
  current_lane() = nullptr;

  EXPECT_EQ(lane.yields, 1u);
  EXPECT_EQ(lane.barriers, 1u);
  EXPECT_EQ(lane.mask, 0xf0u);
  EXPECT_EQ(votes, 0xffu);
  EXPECT_EQ(shuffled, 80u);
  EXPECT_EQ(index[0], 3u);
  EXPECT_EQ(index[1], 35u);
  EXPECT_EQ(index[2], 7u);
  EXPECT_EQ(index[3], 40u);
  EXPECT_EQ(index[4], 9u);
  EXPECT_EQ(last_warp, 0xffu);
  EXPECT_EQ(first_warp, kFullWarp);
}

TEST(Masks, CountAndFirst) {
  EXPECT_EQ(count_lanes(0), 0u);
  EXPECT_EQ(count_lanes(kFullWarp), 32u);
  EXPECT_EQ(count_lanes(0x80000001u), 2u);
  EXPECT_EQ(first_lane(0x80000000u), 31u);
  EXPECT_EQ(first_lane(0xfff0u), 4u);
}

}  // namespace
}  // namespace belfry::port
