/// \file
/// The rings of the experiment `handoff`, with every protocol, and the drain that must notice what is wrong.

#include "bench/kernels/handoff.hpp"

#include <gtest/gtest.h>

#include "bench/handoff_rings.hpp"

namespace belfry::bench {
namespace {

constexpr std::uint64_t kCount = 3000;
constexpr std::uint32_t kSlots = 64;

HandoffJob job_of(const HandoffRings& rings, RateResult* results) {
  HandoffJob job;
  job.view = rings.view();
  job.count = kCount;
  job.results = results;
  return job;
}

// Fault: a protocol loses, doubles or reorders descriptors over many laps of its ring.
TEST(Handoff, EveryProtocolHandsEverythingOverInOrder) {
  const auto runner = make_lane_runner(true);
  for (const auto kind :
       {HandoffPutKind::tuned, HandoffPutKind::tuned_published, HandoffPutKind::shared_tuned,
        HandoffPutKind::baseline, HandoffPutKind::baseline_published}) {
    constexpr std::uint32_t kRings = 3;
    const HandoffRings rings(*runner, kRings, kSlots);
    const auto results = allocate_of<RateResult>(*runner, kRings);
    Drain drain(rings, kCount);
    runner->handoff(kind, {1, kRings}, job_of(rings, results.get()));
    for (std::uint32_t r = 0; r < kRings; ++r) EXPECT_TRUE(results.get()[r].end.outcome.ok());
    EXPECT_TRUE(drain.is_right()) << static_cast<int>(kind);
  }
}

// Fault: with several readers a ring is drained by two of them, or by none.
TEST(Handoff, ReadersShareTheRings) {
  const auto runner = make_lane_runner(true);
  constexpr std::uint32_t kRings = 5;
  const HandoffRings rings(*runner, kRings, kSlots);
  const auto results = allocate_of<RateResult>(*runner, kRings);
  Drain drain(rings, kCount, 2);
  runner->handoff(HandoffPutKind::tuned, {1, kRings}, job_of(rings, results.get()));
  for (std::uint32_t r = 0; r < kRings; ++r) EXPECT_TRUE(results.get()[r].end.outcome.ok());
  EXPECT_TRUE(drain.is_right());
}

// Fault: bursts overtake the drain, or the bare store is not a descriptor that the drain knows.
TEST(Handoff, BurstsArriveWhole) {
  const auto runner = make_lane_runner(true);
  for (const auto kind : {HandoffPutKind::tuned, HandoffPutKind::bare}) {
    const HandoffRings rings(*runner, 1, kSlots);
    const auto results = allocate_of<RateResult>(*runner, 1);
    const auto ticks = allocate_of<std::uint64_t>(*runner, 100);
    HandoffJob job = job_of(rings, results.get());
    job.burst = kSlots / 2;
    job.count = 100 * job.burst;
    job.ticks = ticks.get();
    Drain drain(rings, job.count);
    runner->handoff(kind, {1, 1}, job);
    EXPECT_TRUE(drain.is_right()) << static_cast<int>(kind);
    EXPECT_GT(ticks.get()[99], 0u);
  }
}

// Fault: a torn or wrong descriptor is counted as right.
TEST(Handoff, TheDrainSeesAWrongDescriptor) {
  const auto runner = make_lane_runner(true);
  const HandoffRings rings(*runner, 1, kSlots);
  Drain drain(rings, 2);
  for (std::uint64_t i = 0; i < 2; ++i) {
    port::Vector16 descriptor = wire::proxy_descriptor(handoff_request(i), 0);
    descriptor.low |= wire::proxy_parity(0);
    if (i == 1) descriptor.high ^= 8;
    port::store_16(rings.view().rings[0].slots + i, descriptor);
  }
  EXPECT_TRUE(is_drained(rings.view().rings[0], 2));
  EXPECT_FALSE(drain.is_right());
}

// Fault: a bare store, which looks for no room, overwrites what has not been read.
TEST(Handoff, BareStoresWithoutBurstsAreRefused) {
  const auto runner = make_lane_runner(true);
  const HandoffRings rings(*runner, 1, kSlots);
  EXPECT_THROW(runner->handoff(HandoffPutKind::bare, {1, 1}, job_of(rings, nullptr)), std::invalid_argument);
}

}  // namespace
}  // namespace belfry::bench
