// The thread behind doorbells and proxy rings.

#include "host/polling_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include "belfry/host/errors.hpp"

namespace belfry::host {
namespace {

using Kind = IdlePolicy::Kind;

struct Calls {
  std::atomic<int> rounds{0};
  std::atomic<int> finishes{0};
  std::optional<bool> failed;
  int limit = 1 << 30;

  PollingDuties duties() {
    return {.round =
                [this] {
                  if (++rounds > limit) throw std::runtime_error("the bell has cracked");
                  return rounds % 2 == 0;
                },
            .finish = [this] { ++finishes; },
            .ended = [this](bool f) { failed = f; }};
  }
};

// Fault: a thread that is stopped before it has done what is left to do, or that says it has failed.
TEST(PollingThread, FinishesAndSaysSo) {
  Calls calls;
  {
    const PollingThread thread({.idle = {.kind = Kind::sleep, .spins = 2, .yields = 2}, .name = "test"},
                               calls.duties());
    while (calls.rounds < 10) std::this_thread::yield();
    EXPECT_TRUE(thread.alive());
    EXPECT_EQ(thread.failure(), nullptr);
    EXPECT_EQ(calls.finishes, 0);
  }
  EXPECT_EQ(calls.finishes, 1);
  EXPECT_EQ(calls.failed, false);
}

// Fault: an exception that ends the process, or the thread without a word.
TEST(PollingThread, AnExceptionEndsItAndIsKept) {
  Calls calls;
  calls.limit = 5;
  const PollingThread thread({.name = "test"}, calls.duties());
  while (thread.alive()) std::this_thread::yield();
  EXPECT_THROW(std::rethrow_exception(thread.failure()), std::runtime_error);
  EXPECT_EQ(calls.finishes, 0);
  EXPECT_EQ(calls.failed, true);
}

// Fault: options under which a thread that only sleeps counts as lost.
TEST(PollingThread, NobodySleepsLongerThanHeMayBeAway) {
  using std::chrono::milliseconds;
  const IdlePolicy sleeps{.kind = Kind::sleep, .longest = milliseconds(10)};
  EXPECT_THROW(check_rest(sleeps, milliseconds(319), "worker"), Error);
  EXPECT_NO_THROW(check_rest(sleeps, milliseconds(320), "worker"));
  EXPECT_NO_THROW(check_rest(sleeps, milliseconds(0), "worker"));
  EXPECT_NO_THROW(check_rest({.kind = Kind::yield, .longest = milliseconds(10)}, milliseconds(1), "worker"));
  EXPECT_NO_THROW(check_rest({}, milliseconds(50), "worker"));
}

}  // namespace
}  // namespace belfry::host
