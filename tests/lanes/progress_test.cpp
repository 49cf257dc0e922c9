#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/time.hpp"

namespace {
std::atomic<std::uint64_t> given_away{0};
}  // namespace

/// Counts what lanes call, in place of the C library's.
extern "C" int sched_yield() noexcept {
  given_away.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace belfry::lanes {
namespace {

using port::Order;
using port::Scope;

/// Waits until the word has a value. \return false when that takes too long
bool wait_for(const std::uint64_t* word, std::uint64_t value) {
  port::Patience patience(port::Timeout::seconds(60));
  while (port::poll<Scope::system>(word) != value) {
    if (patience.is_over()) return false;
  }
  port::fence<Scope::system>();
  return true;
}

// Fault: a launch that shares its CPUs with other pollers keeps them for itself, or one that does not calls
// the system with every look.
TEST(Progress, AWaitingWarpGivesWayWhereItIsToldTo) {
  constexpr std::uint64_t kLooks = 1000;
  const auto yields_of = [](bool gives_way) {
    LaunchOptions options;
    options.gives_way = gives_way;
    const std::uint64_t before = given_away;
    const std::uint64_t word = 0;
    launch({1, 1}, options, [&word] {
      for (std::uint64_t i = 0; i < kLooks; ++i) static_cast<void>(port::poll<Scope::system>(&word));
    });
    return given_away - before;
  };
  EXPECT_GE(yields_of(true), kLooks - 1);
  EXPECT_LE(yields_of(false), kLooks / 10);
}

// Fault: the caller's warp runs on another thread, runs twice or not at all, or nobody else's runs.
TEST(Progress, TheCallerRunsTheFirstWarp) {
  LaunchOptions options;
  options.caller_runs = true;
  for (const Grid grid : {Grid{1, 1}, Grid{1, 80}, Grid{3, 40}}) {
    std::atomic<std::uint32_t> runs{0}, on_caller{0};
    const std::thread::id caller = std::this_thread::get_id();
    launch(grid, options, [&] {
      port::sync_block();
      runs += 1;
      if (std::this_thread::get_id() == caller) on_caller += 1;
    });
    EXPECT_EQ(runs, grid.blocks * grid.threads);
    EXPECT_EQ(on_caller, std::min(grid.threads, 32u));
    EXPECT_EQ(port::current_lane(), nullptr);
  }
}

// Fault: nobody keeps the deadline while the caller runs a warp.
TEST(Progress, ACallerThatRunsIsHeldToTheDeadline) {
  LaunchOptions options;
  options.caller_runs = true;
  options.deadline = std::chrono::milliseconds(50);
  const std::uint64_t word = 0;
  try {
    launch({1, 1}, options, [&word] { wait_for(&word, 1); });
    ADD_FAILURE() << "it ended";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timed_out) << error.what();
  }
}

// Fault: a lane that polls keeps the CPU thread from the lane that it waits for.
TEST(Progress, ALaneWaitsForALaterLaneOfItsWarp) {
  std::uint64_t word = 0, plain = 0, seen = 0;
  bool ended = false;
  launch({1, 32}, {}, [&word, &plain, &seen, &ended] {
    if (port::lane_index() == 0) {
      ended = wait_for(&word, 1);
      seen = plain;
    } else if (port::lane_index() == 31) {
      plain = 77;
      port::fence<Scope::system>();
      port::store<Scope::system>(&word, std::uint64_t{1});
    }
  });
  EXPECT_TRUE(ended);
  EXPECT_EQ(seen, 77u);
}

// Fault: a lock that lanes of a warp share is never handed over, or lets two in.
TEST(Progress, ALockSharedByAllLanesOfManyWarps) {
  static constexpr std::uint32_t kTurns = 20;
  std::uint32_t lock = 0, failed = 0;
  std::uint64_t counter = 0;
  launch({2, 96}, {}, [&lock, &counter, &failed] {
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      port::Patience patience(port::Timeout::seconds(60));
      while (port::compare_exchange<Scope::gpu, Order::acquire>(&lock, 0u, 1u) != 0) {
        port::pause_lane();
        if (patience.is_over()) {
          port::fetch_add<Scope::gpu>(&failed, 1u);
          return;
        }
      }
      const std::uint64_t before = counter;
      port::pause_lane();  // inside, so that others try
      counter = before + 1;
      port::store_release<Scope::gpu>(&lock, 0u);
    }
  });
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(counter, 2u * 96 * kTurns);
}

// Fault: warps of a block, or blocks of a cooperative grid, that do not run at the same time. More of them
// than there are CPUs: those that wait must give way.
TEST(Progress, ATurnGoesRoundAllWarpsOfAllBlocks) {
  static constexpr std::uint32_t kBlocks = 4, kWarps = 4;
  std::uint64_t turn = 0;
  std::uint32_t failed = 0;
  LaunchOptions options;
  options.cooperative = true;
  launch({kBlocks, kWarps * 32}, options, [&turn, &failed] {
    const std::uint64_t warp = port::block_index() * kWarps + port::thread_index() / 32;
    for (std::uint64_t round = 0; round < 20; ++round) {
      const std::uint64_t mine = round * kBlocks * kWarps + warp;
      if (port::lane_index() == 0) {
        if (!wait_for(&turn, mine)) port::fetch_add<Scope::gpu>(&failed, 1u);
        port::store_release<Scope::system>(&turn, mine + 1);
      }
      port::sync_warp(port::kFullWarp);
    }
  });
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(turn, 20u * kBlocks * kWarps);
}

// Fault: a lane that waits for a thread outside the launch (a proxy worker, a NIC) starves it.
TEST(Progress, AHostThreadAnswers) {
  std::uint64_t question = 0, answer = 0;
  static constexpr std::uint64_t kRounds = 200;
  bool host_ended = true, lane_ended = true;
  std::thread host([&] {
    for (std::uint64_t round = 1; round <= kRounds && host_ended; ++round) {
      host_ended = wait_for(&question, round);
      port::store_release<Scope::system>(&answer, round);
    }
  });
  launch({1, 1}, {}, [&question, &answer, &lane_ended] {
    for (std::uint64_t round = 1; round <= kRounds && lane_ended; ++round) {
      port::store_release<Scope::system>(&question, round);
      lane_ended = wait_for(&answer, round);
    }
  });
  host.join();
  EXPECT_TRUE(host_ended);
  EXPECT_TRUE(lane_ended);
}

// Fault: a switch that leaks, or loses what a lane holds on its stack.
TEST(Progress, AMillionYields) {
  std::array<std::uint64_t, 32> sums{};
  launch({1, 32}, {}, [&sums] {
    const std::uint32_t lane = port::lane_index();
    std::uint64_t sum = lane;
    double half = lane * 0.5;
    for (std::uint32_t i = 0; i < 31250; ++i) {
      port::pause_lane();
      sum += i;
      half += 0.5;
    }
    sums[lane] = sum + static_cast<std::uint64_t>(half * 2);
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(sums[lane], std::uint64_t{31250} * 31249 / 2 + 31250 + lane * 2);
  }
}

// Fault: more blocks than fit run at the same time, or some never run.
TEST(Waves, BlocksThatDoNotFitRunLater) {
  static constexpr std::uint32_t kBlocks = 23;
  LaunchOptions options;
  options.cpu_threads = 7;  // room for three blocks of two warps
  std::uint32_t present = 0, most = 0;
  std::array<std::uint32_t, kBlocks> ran{};
  const LaunchReport report = launch({kBlocks, 40}, options, [&present, &most, &ran] {
    port::sync_block();
    if (port::thread_index() == 0) {
      const std::uint32_t now = port::fetch_add<Scope::gpu>(&present, 1u) + 1;
      port::fetch_max<Scope::gpu>(&most, now);
    }
    for (int i = 0; i < 20; ++i) port::pause_lane();
    port::fetch_add<Scope::gpu>(&ran[port::block_index()], 1u);
    port::sync_block();
    if (port::thread_index() == 0) port::fetch_add<Scope::gpu>(&present, ~0u);
  });
  EXPECT_LE(most, 3u);
  for (const std::uint32_t threads : ran) EXPECT_EQ(threads, 40u);
  EXPECT_EQ(report.warps_a_block, 2u);
  EXPECT_EQ(report.blocks_at_once, 3u);
  EXPECT_EQ(report.cpu_threads, 6u);
  EXPECT_EQ(report.waves, 8u);
  EXPECT_GT(report.elapsed.count(), 0);
}

// Fault: a block's warps start the next block before its other warps have ended, and meet them there.
void expect_blocks_to_stay_apart(std::uint32_t blocks, std::uint32_t warps, std::uint32_t cpu_threads) {
  LaunchOptions options;
  options.cpu_threads = cpu_threads;
  std::vector<std::uint32_t> present(blocks);
  std::uint32_t* const of_block = present.data();
  std::uint32_t wrong = 0;
  launch({blocks, warps * 32}, options, [of_block, &wrong, warps] {
    std::uint32_t* const mine = &of_block[port::block_index()];
    if (port::lane_index() == 0) port::fetch_add<Scope::gpu>(mine, 1u << (port::thread_index() / 32));
    port::sync_block();
    const std::uint32_t all = warps == 32 ? ~0u : (1u << warps) - 1;
    if (port::load<Scope::gpu>(mine) != all) port::fetch_add<Scope::gpu>(&wrong, 1u);
  });
  EXPECT_EQ(wrong, 0u);
}

TEST(Waves, BlocksOnOnePlaceStayApart) { expect_blocks_to_stay_apart(200, 3, 3); }
TEST(Waves, LargeBlocksOnOnePlaceStayApart) { expect_blocks_to_stay_apart(10, 32, 32); }
TEST(Waves, BlocksOnManyPlacesStayApart) { expect_blocks_to_stay_apart(100, 2, 21); }

// Fault: launches of several host threads share something, and mix up lanes or failures.
TEST(Launches, OfSeveralHostThreadsAtOnce) {
  std::array<std::uint32_t, 4> sums{}, failures{};
  std::vector<std::thread> hosts;
  for (std::uint32_t host = 0; host < 4; ++host) {
    hosts.emplace_back([&, host] {
      for (std::uint32_t round = 0; round < 4; ++round) {
        std::uint32_t* const sum = &sums[host];
        launch({2, 40}, {}, [sum] {
          port::sync_block();
          port::fetch_add<Scope::gpu>(sum, 1u);
        });
        try {
          launch({1, 33}, {}, [host] {
            if (port::thread_index() == 32) throw host;
            port::sync_block();
          });
        } catch (const KernelError& error) {
          try {
            std::rethrow_exception(error.cause());
          } catch (std::uint32_t thrown) {
            failures[host] += thrown == host;
          }
        }
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  for (std::uint32_t host = 0; host < 4; ++host) {
    EXPECT_EQ(sums[host], 320u);
    EXPECT_EQ(failures[host], 4u);
  }
}

}  // namespace
}  // namespace belfry::lanes
