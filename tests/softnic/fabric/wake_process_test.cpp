#include <gtest/gtest.h>

#include "softnic/fabric/processes.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

/// Takes `frames` frames, asleep whenever there is none. \return 0 or what went wrong
int sleep_and_take(SharedFabric& port, std::uint64_t frames) {
  CheckingReceiver receiver;
  while (receiver.frames < frames) {
    if (port.poll(receiver, 8) != 0) continue;
    const auto start = Clock::now();
    port.wait(10s);
    if (Clock::now() - start >= 10s) return 1;
  }
  if (!receiver.clean()) return 2;
  return port.counters().sleeps > 100 ? 0 : 3;  // else nothing was tried
}

// Fault: a frame published just when its receiver falls asleep wakes nobody. The pauses vary so that
// frames meet every point on the receiver's way into and out of its sleep.
TEST(WakeProcess, EveryFrameWakesASleeper) {
  const std::string fabric = unique_fabric();
  constexpr std::uint64_t kFrames = 60000;
  Pipe ready, leave;
  Child receiver([&] {
    SharedFabric port(options_of(fabric));
    ready.put(*port.claim_block());
    return sleep_and_take(port, kFrames);
  });
  const auto qpn = qpn_of(ready.get<std::uint32_t>());
  SharedFabric port(options_of(fabric));
  const auto end = Clock::now() + 200s;
  for (std::uint64_t i = 0; i < kFrames;) {
    const SendOutcome outcome = TestFrame(1, i, 40).send(port, qpn);
    if (outcome != SendOutcome::sent) {
      ASSERT_LT(Clock::now(), end);
      ASSERT_EQ(outcome, SendOutcome::full);
      std::this_thread::yield();
      continue;
    }
    ++i;
    const auto until = Clock::now() + std::chrono::nanoseconds(mix(i) % 20000);
    while (Clock::now() < until) {
    }
  }
  EXPECT_EQ(receiver.join(60s), 0);
}

// Fault: of many senders to one sleeper, one is forgotten when it announces its sleep.
TEST(WakeProcess, ManySendersWakeOneSleeper) {
  const std::string fabric = unique_fabric();
  constexpr std::uint64_t kSenders = 4, kFrames = 4000;
  SharedFabric port(options_of(fabric));
  const auto qpn = qpn_of(*port.claim_block());
  std::vector<Child> senders;
  for (std::uint32_t self = 0; self < kSenders; ++self) {
    senders.emplace_back([&, self] {
      SharedFabric other(options_of(fabric));
      const auto end = Clock::now() + 100s;
      for (std::uint64_t i = 0; i < kFrames;) {
        i += TestFrame(self, i, 40).send(other, qpn) == SendOutcome::sent;
        if (Clock::now() > end) return 1;
        std::this_thread::sleep_for(std::chrono::nanoseconds(mix(i + self) % 30000));
      }
      return 0;
    });
  }
  EXPECT_EQ(sleep_and_take(port, kSenders * kFrames), 0);
  for (Child& sender : senders) EXPECT_EQ(sender.join(20s), 0);
}

}  // namespace
}  // namespace belfry::softnic
