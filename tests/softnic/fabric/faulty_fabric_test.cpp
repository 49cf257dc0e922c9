#include "softnic/fabric/faulty_fabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "softnic/fabric/memory_fabric.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

struct Rig {
  std::unique_ptr<FaultyFabric> port;
  std::uint32_t qpn;

  Rig(const FaultPlan& plan, std::uint64_t seed, std::size_t capacity = 4096)
      : port(std::make_unique<FaultyFabric>(MemoryHub::create(capacity)->open_port(), plan, seed)),
        qpn(qpn_of(*port->claim_block())) {}

  /// Sends `count` numbered frames, polling after each `every`. \return the numbers as they arrived
  std::vector<std::uint64_t> run(std::uint64_t count, std::uint64_t every = 16) {
    CollectingReceiver receiver;
    for (std::uint64_t i = 0; i < count;) {
      i += TestFrame(qpn, i, 64).send(*port, qpn) == SendOutcome::sent;
      if (i % every == 0) port->poll(receiver, 1000);
    }
    for (unsigned i = 0; i < FaultyFabric::kHoldMost + 2; ++i) port->poll(receiver, 100000);
    return receiver.numbers;
  }
};

// Fault: a plan without faults that changes something all the same.
TEST(FaultyFabric, PassesFramesOnWithoutFaults) {
  const auto got = Rig({}, 1).run(1000);
  ASSERT_EQ(got.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
}

// Fault: a run that cannot be repeated; a seed that is not used.
TEST(FaultyFabric, IsTheSameForTheSameSeed) {
  const FaultPlan plan{.drop = 0.1, .duplicate = 0.1, .reorder = 0.1};
  const auto once = Rig(plan, 7).run(2000);
  EXPECT_EQ(once, Rig(plan, 7).run(2000));
  EXPECT_NE(once, Rig(plan, 8).run(2000));
}

// Fault: rates that are off, or counters that do not say what happened.
TEST(FaultyFabric, DropsAsOftenAsPlanned) {
  Rig rig({.drop = 0.25}, 3);
  const auto got = rig.run(20000);
  EXPECT_EQ(got.size(), 20000 - rig.port->counters().dropped);
  EXPECT_EQ(rig.port->counters().frames, 20000u);
  EXPECT_NEAR(static_cast<double>(rig.port->counters().dropped), 5000, 300);  // 5 sigma
}

// Fault: a duplicate that replaces another frame, or that is counted and not sent.
TEST(FaultyFabric, DuplicatesAsOftenAsPlanned) {
  Rig rig({.duplicate = 0.25}, 4);
  const auto got = rig.run(20000);
  EXPECT_EQ(got.size(), 20000 + rig.port->counters().duplicated);
  EXPECT_EQ(std::set<std::uint64_t>(got.begin(), got.end()).size(), 20000u);
  EXPECT_NEAR(static_cast<double>(rig.port->counters().duplicated), 5000, 300);
}

// Fault: a frame that is held back and never goes, goes twice, or goes later than promised.
TEST(FaultyFabric, ReordersWithinItsBoundAndLosesNothing) {
  Rig rig({.reorder = 0.2}, 5);
  auto got = rig.run(20000);
  ASSERT_EQ(got.size(), 20000u);
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
  EXPECT_NEAR(static_cast<double>(rig.port->counters().reordered), 4000, 300);
  std::uint64_t newest = 0;
  for (const std::uint64_t number : got) {
    newest = std::max(newest, number);
    ASSERT_LE(newest - number, FaultyFabric::kHoldMost);
  }
  std::sort(got.begin(), got.end());
  for (std::uint64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i);
}

// Fault: a held frame lost because the fabric below was full when its turn came; an unbounded store.
TEST(FaultyFabric, KeepsHeldFramesWhileTheFabricIsFull) {
  Rig rig({.duplicate = 0.2, .reorder = 0.5}, 6, 4);
  auto got = rig.run(5000, 1);
  const std::uint64_t duplicates = rig.port->counters().duplicated;
  EXPECT_EQ(got.size(), 5000 + duplicates);
  EXPECT_EQ(std::set<std::uint64_t>(got.begin(), got.end()).size(), 5000u);
}

// Fault: a frame that waits for the next poll of a sender that sleeps.
TEST(FaultyFabric, LetsGoOfHeldFramesBeforeItSleeps) {
  Rig rig({.reorder = 1}, 9);
  ASSERT_EQ(TestFrame(1, 0, 64).send(*rig.port, rig.qpn), SendOutcome::sent);
  rig.port->wait(60s);  // the frame goes to this port itself and ends the wait
  CollectingReceiver receiver;
  EXPECT_EQ(rig.port->poll(receiver, 10), 1u);
}

// Fault: a retry of a frame that found no room meets another fate, so that runs differ with timing.
TEST(FaultyFabric, ARetryMeetsTheSameFate) {
  const FaultPlan plan{.drop = 0.3};
  const auto roomy = Rig(plan, 11).run(500, 1);
  Rig rig(plan, 11, 1);  // room for one frame: every second attempt is full
  CollectingReceiver receiver;
  for (std::uint64_t i = 0; i < 500;) {
    const TestFrame frame(rig.qpn, i, 64);
    if (frame.send(*rig.port, rig.qpn) == SendOutcome::sent) {
      ++i;
    } else {
      rig.port->poll(receiver, 1);
    }
  }
  rig.port->poll(receiver, 10);
  EXPECT_EQ(receiver.numbers, roomy);
}

}  // namespace
}  // namespace belfry::softnic
