#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "softnic/fabric/shared_fabric.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

constexpr auto kFar = 60s;  ///< a wait that runs this long has lost its wake-up

// Fault: a wake() before the wait, or during it, that is lost; one that ends every later wait too.
TEST(Wake, EndsOneWaitNowOrNext) {
  SharedFabric port(options_of(unique_fabric()));
  const auto start = Clock::now();
  port.wake();
  port.wait(kFar);
  std::thread waker([&] {
    std::this_thread::sleep_for(5ms);
    port.wake();
  });
  port.wait(kFar);
  waker.join();
  EXPECT_LT(Clock::now() - start, kFar);
  const auto later = Clock::now();
  port.wait(20ms);
  EXPECT_GE(Clock::now() - later, 20ms);
}

// Fault: a poll() that takes up the wake() meant for the wait() behind it.
TEST(Wake, PollLeavesItToWait) {
  SharedFabric port(options_of(unique_fabric()));
  port.wake();
  CheckingReceiver receiver;
  const auto start = Clock::now();
  while (Clock::now() - start < 2ms) port.poll(receiver, 10);  // long enough to look at the sockets
  port.wait(kFar);
  EXPECT_LT(Clock::now() - start, kFar);
}

// Fault: waits of no or negative time that block or fail; the longest one that overflows.
TEST(Wake, TakesAnyTimeout) {
  SharedFabric port(options_of(unique_fabric()));
  port.wait(0ns);
  port.wait(-5s);
  port.wait(std::chrono::nanoseconds::min());
  port.wake();
  port.wait(std::chrono::nanoseconds::max());
}

// Fault: frames that have arrived, from another port or this one, do not end a wait.
TEST(Wake, WaitingFramesEndAWait) {
  const std::string fabric = unique_fabric();
  SharedFabric a(options_of(fabric)), b(options_of(fabric));
  const auto qpn = qpn_of(*a.claim_block());
  CheckingReceiver receiver;
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(TestFrame(1, i, 64).send(b, qpn), SendOutcome::sent);
    while (receiver.frames <= i) {
      a.wait(kFar);
      a.poll(receiver, 10);
    }
  }
  ASSERT_EQ(TestFrame(2, 0, 64).send(a, qpn), SendOutcome::sent);
  a.wait(kFar);
  EXPECT_EQ(a.poll(receiver, 10), 1u);
  EXPECT_LT(Clock::now() - start, kFar);
  EXPECT_TRUE(receiver.clean());
}

// Fault: a wake() that falls between two steps of wait() and is lost: the store is seen by no wait.
TEST(Wake, ManyWakesFromAnotherThread) {
  SharedFabric port(options_of(unique_fabric()));
  constexpr int kRounds = 20000;
  std::atomic<int> work{0}, taken{0};
  std::thread waker([&] {
    for (int i = 1; i <= kRounds; ++i) {
      work.store(i);
      port.wake();
      while (taken.load() != i) std::this_thread::yield();
    }
  });
  const auto start = Clock::now();
  while (taken.load() != kRounds) {
    if (work.load() == taken.load()) port.wait(kFar);
    taken.store(work.load());
  }
  waker.join();
  EXPECT_LT(Clock::now() - start, kFar);
}

// Fault: a block claimed while the port sleeps is not served, or the two calls touch the same data (the
// thread sanitizer's test).
TEST(Wake, ABlockClaimedDuringAWaitIsServed) {
  const std::string fabric = unique_fabric();
  SharedFabric port(options_of(fabric)), peer(options_of(fabric));
  constexpr std::uint32_t kBlocks = 50;
  std::atomic<std::uint32_t> received{0};
  std::thread sleeper([&] {
    CheckingReceiver receiver;
    const auto end = Clock::now() + kFar;
    while (receiver.frames < kBlocks && Clock::now() < end) {
      port.wait(kFar);
      port.poll(receiver, 10);
      received.store(static_cast<std::uint32_t>(receiver.frames));
    }
  });
  const auto end = Clock::now() + kFar;
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    std::this_thread::sleep_for(1ms);  // into its wait()
    const auto block = port.claim_block();
    ASSERT_TRUE(block);
    ASSERT_EQ(TestFrame(i, 0, 64).send(peer, qpn_of(*block)), SendOutcome::sent);
    while (received.load() != i + 1 && Clock::now() < end) std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_EQ(received.load(), kBlocks);
}

// Fault: a frame published while its receiver falls asleep and wakes nobody (two threads, so that the
// thread sanitizer sees both sides; wake_process_test does it between processes).
TEST(Wake, PingPongOfSleepers) {
  const std::string fabric = unique_fabric();
  SharedFabric a(options_of(fabric)), b(options_of(fabric));
  const auto qpn_a = qpn_of(*a.claim_block()), qpn_b = qpn_of(*b.claim_block());
  constexpr std::uint64_t kRounds = 20000;
  std::atomic<int> lost{0};
  const auto run = [&](SharedFabric& port, std::uint32_t own, std::uint32_t other, bool first) {
    CheckingReceiver receiver;
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      if (first) TestFrame(own, i, 64).send(port, other);
      while (receiver.frames <= i) {
        if (port.poll(receiver, 10) != 0) continue;
        const auto start = Clock::now();
        port.wait(10s);
        if (Clock::now() - start >= 10s) {
          ++lost;
          return;
        }
      }
      if (!first) TestFrame(own, i, 64).send(port, other);
    }
  };
  std::thread other([&] { run(b, qpn_b, qpn_a, false); });
  run(a, qpn_a, qpn_b, true);
  other.join();
  EXPECT_EQ(lost, 0);
  EXPECT_GT(a.counters().sleeps + b.counters().sleeps, 0u);
}

}  // namespace
}  // namespace belfry::softnic
