#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"

namespace belfry::lanes {
namespace {

using namespace std::chrono_literals;
using port::Scope;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// The kind of error that a launch ends with, and its words.
template <class Kernel>
std::pair<std::string, std::string> error_of(Grid grid, const LaunchOptions& options, Kernel kernel) {
  try {
    launch(grid, options, kernel);
  } catch (const LaunchError& error) {
    return {std::string(to_string(error.kind())), error.what()};
  }
  return {"none", ""};
}

struct Counted {
  std::uint32_t* alive;
  explicit Counted(std::uint32_t* at) : alive(at) { port::fetch_add<Scope::gpu>(alive, 1u); }
  ~Counted() { port::fetch_add<Scope::gpu>(alive, ~0u); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

// Fault: an exception ends the process, or reaches the caller without its type and place.
TEST(Failure, AnExceptionIsCarriedToTheCallerWithItsPlace) {
  LaunchOptions options;
  options.name = "put_many";
  try {
    launch({3, 40}, options, [] {
      if (port::block_index() == 2 && port::thread_index() == 35) throw std::out_of_range("slot 9");
    });
    FAIL() << "nothing was thrown";
  } catch (const KernelError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kernel);
    EXPECT_EQ(error.block(), 2u);
    EXPECT_EQ(error.thread(), 35u);
    EXPECT_STREQ(error.what(), "put_many, block 2 thread 35: slot 9");
    EXPECT_THROW(std::rethrow_exception(error.cause()), std::out_of_range);
  }
}

// Fault: lanes that wait, wherever it be, hang once another has thrown, or leave without their destructors.
TEST(Failure, EveryWaitIsLeftWhenALaneThrows) {
  std::uint64_t never = 0;
  std::uint32_t alive = 0, started = 0;
  const auto [kind, what] = error_of({2, 128}, {}, [&never, &alive, &started] {
    const Counted counted(&alive);
    port::fetch_add<Scope::gpu>(&started, 1u);
    const std::uint32_t warp = port::thread_index() / 32, lane = port::lane_index();
    if (warp == 0) port::sync_block();
    if (warp == 1 && lane != 5) port::sync_warp(port::kFullWarp);
    if (warp == 2 && lane != 5) port::shuffle(port::kFullWarp, lane, 3);
    if (warp == 3 && lane == 7 && port::block_index() == 1) {
      while (port::poll<Scope::gpu>(&started) != 256) {
      }
      throw std::runtime_error("lane 7");
    }
    while (port::poll<Scope::gpu>(&never) == 0) {
    }
  });
  EXPECT_EQ(kind, "kernel");
  EXPECT_THAT(what, HasSubstr("block 1 thread 103: lane 7"));
  EXPECT_EQ(alive, 0u);
}

// Fault: blocks of later waves are run although the launch has failed.
TEST(Failure, LaterWavesAreNotRun) {
  LaunchOptions options;
  options.cpu_threads = 1;
  std::uint32_t ran = 0;
  const auto [kind, what] = error_of({1000, 1}, options, [&ran] {
    port::fetch_add<Scope::gpu>(&ran, 1u);
    if (port::block_index() == 3) throw 42;
  });
  EXPECT_EQ(kind, "kernel");
  EXPECT_THAT(what, HasSubstr("not a std::exception"));
  EXPECT_EQ(ran, 4u);
}

// Fault: what one lane has caught, or is throwing, is taken for another's when they change places.
TEST(Failure, LanesHandleExceptionsOfTheirOwnAtTheSameTime) {
  std::array<std::uint32_t, 32> wrong{};
  launch({1, 32}, {}, [&wrong] {
    const std::uint32_t lane = port::lane_index();
    struct YieldsWhileUnwinding {
      ~YieldsWhileUnwinding() {
        for (std::uint32_t i = 0; i <= port::lane_index(); ++i) port::pause_lane();
      }
    };
    for (std::uint32_t round = 0; round < 20; ++round) {
      try {
        const YieldsWhileUnwinding yields;
        throw lane * 100 + round;
      } catch (std::uint32_t value) {
        for (std::uint32_t i = 0; i <= lane % 5; ++i) port::pause_lane();
        try {
          throw;  // the one that this lane handles
        } catch (std::uint32_t again) {
          if (value != lane * 100 + round || again != value) ++wrong[lane];
        }
        if (std::uncaught_exceptions() != 0) ++wrong[lane];
      }
    }
  });
  EXPECT_EQ(wrong, (std::array<std::uint32_t, 32>{}));
}

// Fault: a destructor that waits while a launch is being given up gets a second exception, which ends the
// process.
TEST(Failure, DestructorsMayWaitWhileUnwinding) {
  std::uint64_t never = 0;
  struct Waits {
    ~Waits() {
      port::sync_block();
      port::sync_warp(port::kFullWarp);
      port::pause_lane();
    }
  };
  const auto [kind, what] = error_of({1, 64}, {}, [&never] {
    if (port::thread_index() == 40) throw std::runtime_error("first");
    const Waits waits;
    while (port::poll<Scope::gpu>(&never) == 0) {
    }
  });
  EXPECT_EQ(kind, "kernel") << what;
}

// Fault: a launch whose lanes wait for what never comes hangs, or says nothing of where.
TEST(Failure, TheDeadlineEndsALaunchAndSaysWhereLanesWaited) {
  std::uint64_t never = 0;
  LaunchOptions options;
  options.name = "stuck";
  options.deadline = 100ms;
  const auto start = std::chrono::steady_clock::now();
  const auto [kind, what] = error_of({1, 33}, options, [&never] {
    if (port::thread_index() == 32) {
      while (port::poll<Scope::gpu>(&never) == 0) {
      }
    }
    port::sync_block();
  });
  EXPECT_GE(std::chrono::steady_clock::now() - start, 100ms);
  EXPECT_EQ(kind, "timed_out");
  EXPECT_THAT(what, AllOf(HasSubstr("stuck did not end within 100 ms"), HasSubstr("33 lanes"),
                          HasSubstr("in sync_block"), HasSubstr("LaunchOptions::deadline")));
}

// Fault: one lane alone, which takes no turns, does not notice the deadline.
TEST(Failure, TheDeadlineEndsALaneAlone) {
  std::uint64_t never = 0;
  LaunchOptions options;
  options.deadline = 20ms;
  const auto [kind, what] = error_of({1, 1}, options, [&never] {
    while (port::poll<Scope::gpu>(&never) == 0) {
    }
  });
  EXPECT_EQ(kind, "timed_out");
  EXPECT_THAT(what, HasSubstr("block 0 thread 0 in poll"));
}

// Fault: a launch that cannot be run is begun, hangs, or is refused without saying what to change.
TEST(Refusal, NamesTheRemedy) {
  const auto refusal = [](Grid grid, const LaunchOptions& options) {
    bool ran = false;
    const auto [kind, what] = error_of(grid, options, [&ran] { ran = true; });
    EXPECT_EQ(kind, "bad_argument");
    EXPECT_FALSE(ran);
    return what;
  };
  EXPECT_THAT(refusal({0, 1}, {}), HasSubstr("0 blocks of 1 threads"));
  EXPECT_THAT(refusal({1, 0}, {}), HasSubstr("1 blocks of 0 threads"));
  EXPECT_THAT(refusal({1, 1025}, {}), HasSubstr("1 to 1024 threads"));
  LaunchOptions options;
  options.cpu_threads = 4;
  EXPECT_THAT(refusal({1, 129}, options), AllOf(HasSubstr("block of 5 warps"), HasSubstr("cpu_threads")));
  options.cooperative = true;
  EXPECT_THAT(refusal({5, 32}, options), HasSubstr("cooperative grid of 5 warps, and 4 CPU threads"));
  EXPECT_THAT(refusal({0xffffffff, 1024}, options), HasSubstr("cooperative grid of 137438953440 warps"));
  options = {};
  options.deadline = 0s;
  EXPECT_THAT(refusal({1, 1}, options), HasSubstr("LaunchOptions::deadline"));
  options = {};
  options.stack_bytes = 100;
  EXPECT_THAT(refusal({1, 1}, options), HasSubstr("LaunchOptions::stack_bytes"));
}

// Fault: a launch from a lane blocks the warp that it runs on.
TEST(Refusal, NestedLaunch) {
  std::string inner;
  launch({1, 1}, {}, [&inner] { inner = error_of({1, 1}, {}, [] {}).first; });
  EXPECT_EQ(inner, "nested");
}

// Fault: pinning that fails is ignored, or leaves threads behind that wait for their start.
TEST(Refusal, ACpuThatIsNotThere) {
  LaunchOptions options;
  for (const int cpu : {-1, 1023, 1 << 20}) {
    options.cpus = {cpu};
    const auto [kind, what] = error_of({1, 64}, options, [] {});
    EXPECT_EQ(kind, "system");
    EXPECT_THAT(what, HasSubstr("cannot be pinned to CPU " + std::to_string(cpu)));
  }
}

// Fault: warps run elsewhere than they were told to.
TEST(Pinning, WarpsRunWhereTheyAreTold) {
  const int here = sched_getcpu();
  ASSERT_GE(here, 0);
  LaunchOptions options;
  options.cpus = {here};
  std::uint32_t elsewhere = 0;
  launch({1, 96}, options, [here, &elsewhere] {
    for (int i = 0; i < 100; ++i) {
      if (sched_getcpu() != here) port::fetch_add<Scope::gpu>(&elsewhere, 1u);
      port::pause_lane();
    }
  });
  EXPECT_EQ(elsewhere, 0u);
}

// Fault: stacks that cannot be had end the process.
TEST(Refusal, NoMemoryForStacks) {
  LaunchOptions options;
  options.stack_bytes = std::size_t{1} << 46;
  const auto [kind, what] = error_of({1, 64}, options, [] {});
  EXPECT_EQ(kind, "system");
  EXPECT_THAT(what, HasSubstr("LaunchOptions::stack_bytes"));
}

}  // namespace
}  // namespace belfry::lanes
