#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"

namespace belfry::lanes {
namespace {

struct Seen {
  std::uint32_t times = 0, lane = 0, thread = 0, block = 0, threads = 0, blocks = 0, mask = 0;
};

void expect_identities(Grid grid, const LaunchOptions& options = {}) {
  std::vector<Seen> seen(std::size_t{grid.blocks} * grid.threads);
  Seen* const all = seen.data();
  launch(grid, options, [all] {
    Seen& mine = all[port::block_index() * port::threads_a_block() + port::thread_index()];
    mine = {mine.times + 1,          port::lane_index(),  port::thread_index(), port::block_index(),
            port::threads_a_block(), port::block_count(), port::warp_mask()};
  });
  for (std::uint32_t block = 0; block < grid.blocks; ++block) {
    for (std::uint32_t thread = 0; thread < grid.threads; ++thread) {
      const Seen& one = seen[block * grid.threads + thread];
      SCOPED_TRACE("block " + std::to_string(block) + " thread " + std::to_string(thread));
      ASSERT_EQ(one.times, 1u);
      ASSERT_EQ(one.lane, thread % 32);
      ASSERT_EQ(one.thread, thread);
      ASSERT_EQ(one.block, block);
      ASSERT_EQ(one.threads, grid.threads);
      ASSERT_EQ(one.blocks, grid.blocks);
      const std::uint32_t in_warp = std::min(32u, grid.threads - thread / 32 * 32);
      ASSERT_EQ(port::count_lanes(one.mask), in_warp);
      ASSERT_EQ(one.mask, in_warp == 32 ? 0xffffffffu : (1u << in_warp) - 1);
    }
  }
}

// Fault: a lane that runs twice or never, or under another's name; a short last warp that is filled up.
TEST(Identity, EveryThreadRunsOnceUnderItsName) {
  for (const std::uint32_t threads : {1u, 2u, 31u, 32u, 33u, 95u}) {
    for (const std::uint32_t blocks : {1u, 3u}) expect_identities({blocks, threads});
  }
}

// Fault: the largest block does not fit, or its last warps are lost.
TEST(Identity, ABlockOf1024Threads) { expect_identities({1, 1024}); }

}  // namespace
}  // namespace belfry::lanes
