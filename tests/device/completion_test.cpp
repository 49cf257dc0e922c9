/// \file
/// Completions, full queues, faults and deadlines, with the test as the NIC.

#include <chrono>
#include <thread>

#include "device/fake_queue.hpp"

namespace belfry::device::test {
namespace {

template <class Policy>
class GdaQueue : public ::testing::Test {
 protected:
  static Operation post(Channel<Policy>& channel, Announce announce = Announce::now) {
    return channel.put_value(Thread{}, {0, 0}, std::uint64_t{1}, announce, kShort);
  }
};
TYPED_TEST_SUITE(GdaQueue, AllPolicies);

// Field case 1. Fault: a 16-bit counter compared with a 64-bit index as it is, so that waits hang or end
// early.
TYPED_TEST(GdaQueue, CountersAreWidenedAcross16And32Bits) {
  for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{65530}, (std::uint64_t{1} << 32) - 6}) {
    FakeQueue q = make_queue<TypeParam>(4, start);
    Channel<TypeParam> channel(q.view, 1);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const Operation op = this->post(channel);
      ASSERT_TRUE(op.ok());
      ASSERT_EQ(op.index, start + i);
      EXPECT_EQ(channel.test(op).status, Status::timed_out);
      q.complete(start + i);
      ASSERT_TRUE(channel.wait(Thread{}, op, kShort).ok()) << start << " + " << i;
      EXPECT_EQ(channel.indices().consumer(), start + i + 1);
    }
  }
}

// Field case 1. Fault: a wait for what is known to be complete that reads a CQE which may be another's by
// now.
TYPED_TEST(GdaQueue, WhatIsConsumedNeedsNoCqe) {
  FakeQueue q = make_queue<TypeParam>();
  Channel<TypeParam> channel(q.view, 1);
  const Operation first = this->post(channel);
  const Operation second = this->post(channel);
  q.complete(0);
  q.complete(1);
  ASSERT_TRUE(channel.wait(Thread{}, second, kShort).ok());
  q.queues[1].completions = nullptr;
  ASSERT_TRUE(channel.wait(Thread{}, first, port::Timeout{0}).ok());
}

// Field case 10. Fault: a post into a full queue that overwrites what the NIC has not read.
TYPED_TEST(GdaQueue, AFullQueueSaysSoAndResumes) {
  FakeQueue q = make_queue<TypeParam>(4);
  Channel<TypeParam> channel(q.view, 1);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(this->post(channel).ok());
  std::vector<unsigned char> before(q.block(0), q.block(0) + 64);
  const Operation refused = this->post(channel);
  EXPECT_EQ(refused.status, Status::queue_full);
  EXPECT_EQ(channel.wait(Thread{}, refused, kShort).status, Status::queue_full);
  EXPECT_EQ(std::memcmp(before.data(), q.block(0), 64), 0);
  EXPECT_EQ(wire::doorbell_index(q.doorbell), 16u);
  q.complete(2);
  for (std::uint64_t i = 16; i < 19; ++i) ASSERT_EQ(this->post(channel).index, i);
  EXPECT_EQ(this->post(channel).status, Status::queue_full);
}

// Fault: a call whose first WQEs are in the queue says that nothing was posted, and is made again: its writes
// land twice, its signal counts once too often.
TYPED_TEST(GdaQueue, ACallThatFindsRoomForItsBeginningOnlySaysSo) {
  FakeQueue q = make_queue<TypeParam>(4);
  q.view.max_message = 64;
  Channel<TypeParam> channel(q.view, 1);
  for (int i = 0; i < 13; ++i) ASSERT_TRUE(this->post(channel).ok());
  const Operation put = channel.put(Thread{}, {0, 0}, {0, 0}, 5 * 64, Announce::now, kShort);
  EXPECT_EQ(put.status, Status::partly_posted);
  EXPECT_EQ(put.index, 15u) << "the last of the three that were posted";
  EXPECT_EQ(channel.wait(Thread{}, put, kShort).status, Status::partly_posted);
  const Operation none = channel.put(Thread{}, {0, 0}, {0, 0}, 5 * 64, Announce::now, kShort);
  EXPECT_EQ(none.status, Status::queue_full) << "of this one nothing was posted";
}

TYPED_TEST(GdaQueue, APayloadWithoutRoomForItsSignalSaysSo) {
  FakeQueue q = make_queue<TypeParam>(4);
  Channel<TypeParam> channel(q.view, 1);
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(this->post(channel).ok());
  const Signal signal{{0, 64}, 1, SignalOperation::set};
  const Operation op = channel.put_signal(Thread{}, {0, 0}, {0, 0}, 8, signal, kShort);
  EXPECT_EQ(op.status, Status::partly_posted);
  EXPECT_EQ(op.index, 15u);
  EXPECT_EQ(wire::doorbell_index(q.doorbell), 16u) << "announced at the end of the ring's quarter";
}

// Fault: a timeout that each WQE of a call, or each queue, has for itself: a wait of seconds becomes hours.
TYPED_TEST(GdaQueue, ATimeoutIsThatOfTheWholeCall) {
  FakeQueue q = make_queue<TypeParam>(4);
  constexpr std::uint32_t kQueues = 64;
  std::vector<SendQueue> many(2 * kQueues, q.queues[0]);
  std::vector<QueueState> states(kQueues);
  for (std::uint32_t i = 0; i < kQueues; ++i) {
    many[kQueues + i] = q.queues[1];
    many[kQueues + i].state = &states[i];
    states[i].reserved = states[i].published = states[i].goal = states[i].signaled_goal = 1;
  }
  q.view.queues = many.data();
  q.view.queues_a_peer = kQueues;
  const std::uint64_t begin = port::now_ns();
  const Outcome outcome = Channel<TypeParam>::quiet(q.view, Thread{}, port::Timeout::milliseconds(50));
  EXPECT_EQ(outcome.status, Status::timed_out);
  EXPECT_LT(port::now_ns() - begin, std::uint64_t{kQueues} * 50'000'000 / 2);
}

// Field case 9. Fault: a WQE of several blocks that runs over the ring's end into slots not yet retired.
TYPED_TEST(GdaQueue, AWqeOfSeveralBlocksWrapsOnlyIntoRetiredSlots) {
  using Inline = Inlined<TypeParam>;
  FakeQueue q = make_queue<TypeParam>(4);
  for (std::size_t i = 0; i < 100; ++i) q.memory[i] = static_cast<std::byte>(i + 1);
  Channel<Inline> channel(q.view, 1);
  const auto post = [&] { return channel.put(Thread{}, {0, 0}, {0, 0}, 80, Announce::now, kShort); };
  const auto post_value = [&] { return channel.put_value(Thread{}, {0, 0}, 1u, Announce::now, kShort); };
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(post_value().ok());
  EXPECT_EQ(post().status, Status::queue_full) << "one block is free, it takes two";
  q.complete(0);
  const Operation op = post();
  ASSERT_TRUE(op.ok());
  ASSERT_EQ(op.index, 15u);
  EXPECT_EQ(q.control(15).segments(), 8u);
  EXPECT_EQ(q.block(16)[0], 64 - 36 + 1) << "its second block is the ring's first";
  EXPECT_EQ(q.control(1).opcode(), wire::WqeOpcode::rdma_write) << "not retired, not touched";
  EXPECT_EQ(wire::doorbell_index(q.doorbell), 17u);
}

// Field case 3. Fault: an error that a device thread cannot see, that is taken for a completion, or that
// hangs.
TYPED_TEST(GdaQueue, AnErrorEndsEveryWaitWithItsCause) {
  FakeQueue q = make_queue<TypeParam>();
  Channel<TypeParam> channel(q.view, 1);
  std::vector<Operation> ops;
  for (int i = 0; i < 5; ++i) ops.push_back(this->post(channel));
  q.complete(0);
  q.complete(1);
  q.fail(2, wire::Syndrome::transport_retry_exceeded, 0x83);
  // Somebody looks before the flushes come.
  ASSERT_EQ(channel.wait(Thread{}, ops[2], kShort).status, Status::completion_error);
  q.fail(3, wire::Syndrome::flushed, 0xf9);
  q.fail(4, wire::Syndrome::flushed, 0xf9);
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    const Outcome o = channel.wait(Thread{}, ops[static_cast<std::size_t>(i)], kShort);
    if (i < 2) {
      EXPECT_TRUE(o.ok());
      continue;
    }
    EXPECT_EQ(o.status, Status::completion_error);
    EXPECT_EQ(o.syndrome, i == 2 ? wire::Syndrome::transport_retry_exceeded : wire::Syndrome::flushed);
    EXPECT_EQ(o.fault.kind, Fault::Kind::root);
    EXPECT_EQ(o.fault.index, 2u);
    EXPECT_EQ(o.fault.qpn, FakeQueue::kQpn);
    EXPECT_EQ(o.fault.syndrome, wire::Syndrome::transport_retry_exceeded);
    EXPECT_EQ(o.fault.vendor, 0x83);
  }
  EXPECT_EQ(channel.flush(Thread{}, kShort).status, Status::completion_error);
  EXPECT_EQ(fault_kind(q.state.fault), Fault::Kind::root) << "in memory, for others";
}

// Fault: a cause that is made up because only the flush behind it was seen; in a ring nothing is overwritten.
TYPED_TEST(GdaQueue, APollerThatComesLateSaysWhatItKnows) {
  FakeQueue q = make_queue<TypeParam>();
  Channel<TypeParam> channel(q.view, 1);
  std::vector<Operation> ops;
  for (int i = 0; i < 4; ++i) ops.push_back(this->post(channel));
  q.complete(0);
  q.fail(1, wire::Syndrome::remote_access, 0x88);
  q.fail(2, wire::Syndrome::flushed, 0xf9);
  q.fail(3, wire::Syndrome::flushed, 0xf9);
  const Outcome o = channel.wait(Thread{}, ops[3], kShort);
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.syndrome, wire::Syndrome::flushed);
  if (TypeParam::completion_layout == CompletionLayout::ring) {
    EXPECT_EQ(o.fault.kind, Fault::Kind::root);
    EXPECT_EQ(o.fault.index, 1u);
    EXPECT_TRUE(channel.wait(Thread{}, ops[0], kShort).ok());
  } else {
    EXPECT_EQ(o.fault.kind, Fault::Kind::unknown);
    EXPECT_EQ(channel.wait(Thread{}, ops[0], kShort).status, Status::completion_error)
        << "in doubt is not done";
  }
}

// Fault: a full queue that waits out its deadline although the queue is dead, or that hides why it is.
TYPED_TEST(GdaQueue, AFailedQueueRefusesWhenItIsFull) {
  FakeQueue q = make_queue<TypeParam>(2);
  Channel<TypeParam> channel(q.view, 1);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(this->post(channel).ok());
  q.fail(0, wire::Syndrome::remote_access, 0x88);
  const Operation op = channel.put_value(Thread{}, {0, 0}, 1u, Announce::now, port::Timeout::seconds(100));
  EXPECT_EQ(op.status, Status::completion_error);
  const Outcome o = channel.wait(Thread{}, op, kShort);
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.fault.kind, Fault::Kind::root);
  EXPECT_EQ(o.fault.syndrome, wire::Syndrome::remote_access);
}

// Fault: a wait without an end where the NIC is silent.
TYPED_TEST(GdaQueue, EveryWaitEnds) {
  FakeQueue q = make_queue<TypeParam>();
  Channel<TypeParam> channel(q.view, 1);
  const Operation op = this->post(channel);
  EXPECT_EQ(channel.wait(Thread{}, op, kShort).status, Status::timed_out);
  EXPECT_EQ(channel.flush(Thread{}, kShort).status, Status::timed_out);
  std::uint64_t word = 0;
  EXPECT_EQ(wait_signal(&word, Compare::equal, 1, kShort), Status::timed_out);
}

// Fault: batches that nobody ends: no doorbell, no completion, and a flush that waits for neither.
TYPED_TEST(GdaQueue, FlushAnnouncesWhatWasLeftForLater) {
  FakeQueue q = make_queue<TypeParam>();
  Channel<TypeParam> channel(q.view, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(this->post(channel, Announce::later).ok());
  EXPECT_EQ(q.doorbell, 0u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_FALSE(q.control(i).signalled());
  EXPECT_EQ(channel.flush(Thread{}, kShort).status, Status::timed_out);
  EXPECT_EQ(q.control(3).opcode(), wire::WqeOpcode::nop);
  EXPECT_TRUE(q.control(3).signalled());
  EXPECT_EQ(wire::doorbell_index(q.doorbell), 4u);
  q.complete(3);
  EXPECT_TRUE(channel.flush(Thread{}, kShort).ok());
  EXPECT_EQ(wire::doorbell_index(q.doorbell), 4u) << "nothing is left, so nothing is posted";
}

// Fault: a queue full of WQEs that were all left for later, which nobody will ever announce.
TYPED_TEST(GdaQueue, ABatchEndsAtEachQuarterOfTheRing) {
  FakeQueue q = make_queue<TypeParam>(4);
  Channel<TypeParam> channel(q.view, 1);
  for (std::uint64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(this->post(channel, Announce::later).ok());
    EXPECT_EQ(q.control(i).signalled(), i % 4 == 3) << i;
    EXPECT_EQ(wire::doorbell_index(q.doorbell), (i + 1) / 4 * 4);
  }
  EXPECT_EQ(this->post(channel, Announce::later).status, Status::queue_full);
  q.complete(3);
  EXPECT_TRUE(this->post(channel, Announce::later).ok());
}

// Fault: an owner's indices that are lost when the next one comes.
TYPED_TEST(GdaQueue, TheNextChannelGoesOnWhereTheLastOneEnded) {
  FakeQueue q = make_queue<TypeParam>();
  for (std::uint64_t i = 0; i < 40; ++i) {
    Channel<TypeParam> channel(q.view, 1);
    const Operation op = this->post(channel);
    ASSERT_EQ(op.index, i);
    q.complete(i);
    ASSERT_TRUE(channel.wait(Thread{}, op, kShort).ok());
  }
  EXPECT_EQ(q.state.published, 40u);
  EXPECT_EQ(q.state.consumer, 40u);
}

// Fault: a producer that gives up its turn, and leaves all behind it waiting for ever.
TEST(GdaTurns, AnAbandonedTurnFailsTheQueue) {
  FakeQueue q = make_queue<SharedRing>();
  q.state.reserved = 1;  // somebody has slot 0 and never publishes it
  Channel<SharedRing> channel(q.view, 1);
  const Operation given_up = channel.put_value(Thread{}, {0, 0}, 1u, Announce::now, kShort);
  EXPECT_EQ(given_up.status, Status::completion_error);
  EXPECT_EQ(channel.wait(Thread{}, given_up, kShort).fault.kind, Fault::Kind::abandoned);
  EXPECT_EQ(channel.fault().kind, Fault::Kind::abandoned);
  EXPECT_EQ(channel.fault().index, 1u);
  const Operation next = channel.put_value(Thread{}, {0, 0}, 1u, Announce::now, port::Timeout::seconds(100));
  EXPECT_EQ(next.status, Status::completion_error);
  EXPECT_EQ(channel.flush(Thread{}, port::Timeout::seconds(100)).ok(), true) << "nothing was published";
}

struct PatientTurns : SharedRing {
  static constexpr port::Timeout turn_timeout = port::Timeout::seconds(100);
};

// Fault: a call with a short timeout, or none, that finds another producer at work and fails the queue for
// all.
TEST(GdaTurns, AShortTimeoutDoesNotGiveUpATurn) {
  FakeQueue q = make_queue<PatientTurns>();
  q.state.reserved = 1;  // somebody has slot 0 and is about to publish it
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    port::store_release<port::Scope::gpu>(&q.state.published, std::uint64_t{1});
  });
  Channel<PatientTurns> channel(q.view, 1);
  EXPECT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u, Announce::now, port::Timeout{0}).ok());
  EXPECT_EQ(channel.fault().kind, Fault::Kind::none);
  other.join();
}

// Fault: a lane that only looks at the completion of its leader's operation writes its own, older producer
// over the leader's.
TYPED_TEST(GdaQueue, WhoOnlyLooksWritesNothingBack) {
  FakeQueue q = make_queue<TypeParam>();
  {
    Channel<TypeParam> looks(q.view, 1);
    {
      Channel<TypeParam> owner(q.view, 1);
      const Operation op = this->post(owner);
      q.complete(0);
      EXPECT_TRUE(looks.test(op).ok());
      EXPECT_TRUE(owner.test(op).ok());
      this->post(owner);
    }
  }
  EXPECT_EQ(q.state.published, 2u);
  EXPECT_EQ(q.state.reserved, 2u);
}

// Fault: the cause of a failure that is in the middle of a call is told as somebody else's.
TYPED_TEST(GdaQueue, AnErrorInAnyWqeOfACallIsItsOwn) {
  for (const std::uint64_t at : {0u, 1u, 2u, 3u}) {
    FakeQueue q = make_queue<TypeParam>();
    q.view.max_message = 64;
    Channel<TypeParam> channel(q.view, 1);
    const Signal signal{{0, 64}, 1, SignalOperation::set};
    const Operation before = this->post(channel);
    const Operation op = channel.put_signal(Thread{}, {0, 0}, {0, 0}, 2 * 64, signal, kShort);
    ASSERT_EQ(op.index, 3u);
    EXPECT_EQ(op.span, 2u);
    q.fail(at, wire::Syndrome::remote_access, 0x88);
    const Outcome outcome = channel.wait(Thread{}, op, kShort);
    EXPECT_EQ(outcome.syndrome, at == 0 ? wire::Syndrome::flushed : wire::Syndrome::remote_access) << at;
    EXPECT_EQ(channel.wait(Thread{}, before, kShort).ok(), at != 0) << at;
  }
}

// Fault: WQEs of several blocks that wait behind some that nobody has announced, though the completion of the
// WQE in front frees its first block only.
TYPED_TEST(GdaQueue, ALargeWqeDoesNotWaitForWhatNobodyAnnounced) {
  using Large = Inlined<TypeParam, 972>;
  FakeQueue q = make_queue<Large>(5);
  q.view.max_inline = 972;
  Channel<Large> channel(q.view, 1);
  const auto large = [&] { return channel.put(Thread{}, {0, 0}, {0, 0}, 960, Announce::now, kShort); };
  ASSERT_TRUE(large().ok());
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u, Announce::later, kShort).ok());
  q.complete(0);
  EXPECT_EQ(large().status, Status::queue_full) << "its room is not announced yet";
  EXPECT_EQ(q.control(18).opcode(), wire::WqeOpcode::nop) << "but now it is";
  q.complete(18);
  EXPECT_TRUE(large().ok());
}

// Fault: a policy on a queue that was made for another one: the NIC never moves, and nobody says why.
TYPED_TEST(GdaQueue, AQueueForAnotherPolicyIsRefused) {
  FakeQueue q = make_queue<TypeParam>();
  const Operation op{};
  q.queues[1].doorbell_mode =
      TypeParam::doorbell_mode == DoorbellMode::record ? DoorbellMode::no_record : DoorbellMode::record;
  Channel<TypeParam> mode(q.view, 1);
  EXPECT_EQ(this->post(mode).status, Status::bad_argument);
  EXPECT_EQ(mode.wait(Thread{}, op, kShort).status, Status::bad_argument);
  q.queues[1].doorbell_mode = TypeParam::doorbell_mode;
  q.queues[1].completion_layout = TypeParam::completion_layout == CompletionLayout::ring
                                      ? CompletionLayout::collapsed
                                      : CompletionLayout::ring;
  Channel<TypeParam> layout(q.view, 1);
  EXPECT_EQ(this->post(layout).status, Status::bad_argument);
}

// Fault: the owner of a queue latches a fault whose index the host then widens by an index of long ago.
TEST(GdaFaults, AFaultIsReadableWhileTheOwnerRuns) {
  FakeQueue q = make_queue<Collapsed>();
  Channel<Collapsed> channel(q.view, 1);
  Operation op;
  for (std::uint64_t i = 0; i < 70000; ++i) {
    op = channel.put_value(Thread{}, {0, 0}, 1u, Announce::now, kShort);
    ASSERT_TRUE(op.ok());
    if (i == 69999) break;
    q.complete(i);
    ASSERT_TRUE(channel.wait(Thread{}, op, kShort).ok());
  }
  q.fail(op.index, wire::Syndrome::remote_access, 0x88);
  ASSERT_FALSE(channel.wait(Thread{}, op, kShort).ok());
  EXPECT_EQ(decode_fault(q.state.fault, q.state.consumer, 0).index, 69999u);
}

TEST(GdaTurns, TheDoorbellLockIsNotWaitedForWithoutEnd) {
  FakeQueue q = make_queue<Locked>();
  q.state.lock = 1;
  Channel<Locked> channel(q.view, 1);
  EXPECT_EQ(channel.put_value(Thread{}, {0, 0}, 1u, Announce::now, kShort).status, Status::queue_full);
}

}  // namespace
}  // namespace belfry::device::test
