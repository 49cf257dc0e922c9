// Faults as one word, and waits that meet one while others move the consumer.

#include "belfry/device/fault.hpp"

#include <gtest/gtest.h>

#include "device/fake_queue.hpp"

namespace belfry::device::test {
namespace {

constexpr std::uint64_t kFar = std::uint64_t{5} << 32;

// Fault: an index that is widened to the wrong lap of 2^16.
TEST(FaultWord, KeepsTheIndexAheadOfTheConsumer) {
  for (const std::uint64_t consumer : {std::uint64_t{0}, std::uint64_t{40000}, kFar - 5, kFar + 65530}) {
    for (const std::uint64_t ahead : {0u, 1u, 100u, 32767u}) {
      const std::uint64_t word =
          fault_word(Fault::Kind::root, consumer + ahead, wire::Syndrome::remote_access, 0x88);
      const Fault f = decode_fault(word, consumer, 7);
      EXPECT_EQ(f.index, consumer + ahead);
      EXPECT_EQ(f.kind, Fault::Kind::root);
      EXPECT_EQ(f.syndrome, wire::Syndrome::remote_access);
      EXPECT_EQ(f.vendor, 0x88);
      EXPECT_EQ(f.qpn, 7u);
    }
  }
}

// Fault: a poller that was under way when another latched an unknown cause raises the consumer past the
// index, and the index comes out nearly 2^16 ahead.
TEST(FaultWord, AnUnknownCauseIsNeverBehindTheConsumer) {
  const std::uint64_t word = fault_word(Fault::Kind::unknown, kFar + 10, wire::Syndrome::flushed, 0);
  EXPECT_EQ(decode_fault(word, kFar + 10, 0).index, kFar + 10);
  EXPECT_EQ(decode_fault(word, kFar + 21, 0).index, kFar + 21);
}

/// Indices of a queue on which another poller finds an error CQE between two looks of ours: it raises the
/// consumer to the WQE that failed, and latches.
struct Overtaken {
  std::uint64_t consumer() const { return latched ? 3 : 0; }
  std::uint64_t fault() {
    latched = true;
    return fault_word(Fault::Kind::root, 3, wire::Syndrome::remote_access, 0x88);
  }
  std::uint64_t fault() const {
    return fault_word(Fault::Kind::root, 3, wire::Syndrome::remote_access, 0x88);
  }
  void acquire_fault() const {}
  void raise_consumer(std::uint64_t) {}
  std::uint64_t cq_consumer() const { return 0; }
  bool take_entry(std::uint64_t) { return false; }
  bool latch(std::uint64_t) { return false; }

  bool latched = false;
};

// Fault: an operation in front of the one that failed is reported as flushed, because the consumer was read
// before another poller raised it, and the fault after.
TEST(WaitFor, WhatCompletedBeforeTheFaultIsDone) {
  FakeQueue q;
  const SendQueue& queue = q.view.queues[1];
  Overtaken before;
  EXPECT_EQ(gda::wait_for<Ring>(queue, before, 2, false, kShort).status, Status::done);
  Overtaken root;
  const Outcome failed = gda::wait_for<Ring>(queue, root, 3, false, kShort);
  EXPECT_EQ(failed.status, Status::completion_error);
  EXPECT_EQ(failed.syndrome, wire::Syndrome::remote_access);
  Overtaken after;
  EXPECT_EQ(gda::wait_for<Ring>(queue, after, 4, false, kShort).syndrome, wire::Syndrome::flushed);
}

// Fault: a producer that dies takes the waits of those before it with it, though their WQEs are announced and
// complete.
TEST(WaitFor, AnAbandonedTurnStopsOnlyWhatComesAfter) {
  FakeQueue q(4, CompletionLayout::ring, DoorbellMode::no_record);
  Channel<SharedRing> channel(q.view, 1);
  const Operation early = channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{1});
  ASSERT_TRUE(early.ok());
  q.state.reserved += 1;  // somebody reserves, and is never seen again
  EXPECT_EQ(channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{2}, Announce::now, kShort).status,
            Status::completion_error);
  EXPECT_EQ(channel.fault().kind, Fault::Kind::abandoned);
  EXPECT_EQ(channel.fault().index, early.index + 2)
      << "the turn that never came is the dead one's, given up here";
  EXPECT_EQ(channel.wait(Thread{}, early, kShort).status, Status::timed_out) << "it is only under way";
  q.complete(early.index);
  EXPECT_TRUE(channel.wait(Thread{}, early, kShort).ok());
  EXPECT_TRUE(channel.flush(Thread{}, kShort).ok()) << "all that was published is complete";
}

// Fault: a wait in front of a turn that was given up, on a queue that then fails: it finds the same error CQE
// again and again, and never asks for the time.
TEST(WaitFor, AnErrorAfterAnAbandonedTurnEndsTheWait) {
  FakeQueue q = make_queue<SharedCollapsed>();
  Channel<SharedCollapsed> channel(q.view, 1);
  const Operation early = channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{1});
  q.state.reserved += 1;
  ASSERT_EQ(channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{2}, Announce::now, kShort).status,
            Status::completion_error);
  ASSERT_EQ(channel.fault().kind, Fault::Kind::abandoned);
  q.fail(early.index, wire::Syndrome::remote_access, 0x88);
  const Outcome outcome = channel.wait(Thread{}, early, kShort);
  EXPECT_EQ(outcome.status, Status::completion_error);
  EXPECT_EQ(outcome.syndrome, wire::Syndrome::remote_access);
  EXPECT_EQ(channel.fault().kind, Fault::Kind::root) << "the NIC's error tells more than the turn";
}

TEST(FaultWord, TheCauseThatTellsMostStays) {
  const auto word = [](Fault::Kind kind) { return fault_word(kind, 1, wire::Syndrome::none, 0); };
  using Kind = Fault::Kind;
  for (const Kind next : {Kind::root, Kind::unknown, Kind::abandoned, Kind::worker_lost}) {
    EXPECT_TRUE(fault_replaces(0, word(next)));
    EXPECT_FALSE(fault_replaces(word(Kind::root), word(next)));
    EXPECT_FALSE(fault_replaces(word(Kind::worker_lost), word(next)));
    EXPECT_EQ(fault_replaces(word(Kind::unknown), word(next)), next == Kind::root);
    EXPECT_EQ(fault_replaces(word(Kind::abandoned), word(next)), next == Kind::root || next == Kind::unknown);
  }
}

}  // namespace
}  // namespace belfry::device::test
