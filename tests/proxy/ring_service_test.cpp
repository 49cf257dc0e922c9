/// \file
/// Device side, ring and service together, with the test as worker thread and as NIC.

#include <random>

#include "proxy/rig.hpp"

namespace belfry::proxy::test {
namespace {

template <class Policy>
using Channel = device::proxy::Channel<Policy>;

template <class Policy>
class ProxyRing : public ::testing::Test {};
using Policies = ::testing::Types<Tuned, TunedRemembering, TunedVisible, SharedTuned, Baseline>;
TYPED_TEST_SUITE(ProxyRing, Policies);

// Fault: a request that loses its addresses, keys or length on the way.
TYPED_TEST(ProxyRing, RequestsBecomeWork) {
  Rig rig;
  Channel<TypeParam> channel(rig.view, 1);
  ASSERT_TRUE(channel.put(Thread{}, {1, 0x300000000}, {0, 16}, 48).ok());
  ASSERT_TRUE(channel.put_value(Thread{}, {0, 8}, std::uint32_t{0xabcd}).ok());
  ASSERT_TRUE(channel.get(Thread{}, {0, 64}, {1, 128}, 4096).ok());
  ASSERT_TRUE(channel.fetch_add(Thread{}, {0, 64}, {0, 0}, 5).ok());
  ASSERT_TRUE(channel.compare_swap(Thread{}, {0, 64}, {0, 0}, 6, 7).ok());
  rig.round();
  ASSERT_EQ(rig.nic.posted.size(), 5u);
  const Work& put = rig.nic.posted[0];
  EXPECT_EQ(put.kind, Work::Kind::write);
  EXPECT_EQ(put.remote, 0x2000'0000'0000u + (std::uint64_t{4} << 40) + 0x300000000u);
  EXPECT_EQ(put.rkey, 0x24u);
  EXPECT_EQ(put.local, 0x1000'0000'0010u);
  EXPECT_EQ(put.lkey, 0x11u);
  EXPECT_EQ(put.bytes, 48u);
  EXPECT_EQ(rig.nic.posted[1].kind, Work::Kind::write_value);
  EXPECT_EQ(rig.nic.posted[1].value, 0xabcdu);
  EXPECT_EQ(rig.nic.posted[1].bytes, 4u);
  EXPECT_EQ(rig.nic.posted[2].kind, Work::Kind::read);
  EXPECT_EQ(rig.nic.posted[2].bytes, 4096u);
  EXPECT_EQ(rig.nic.posted[3].kind, Work::Kind::fetch_add);
  EXPECT_EQ(rig.nic.posted[3].value, 5u);
  EXPECT_EQ(rig.nic.posted[4].second_value, 7u);
}

// Field case 10. Fault: a descriptor over one that the worker has not taken, or a producer that never gives
// up.
TYPED_TEST(ProxyRing, FieldCase10AFullRingSaysSoAndResumes) {
  Rig rig(4);
  Channel<TypeParam> channel(rig.view, 1);
  for (int i = 0; i < 16; ++i)
    ASSERT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u, device::Announce::now, kShort).ok());
  const auto before = rig.slots;
  EXPECT_EQ(channel.put_value(Thread{}, {0, 0}, 2u, device::Announce::now, kShort).status,
            Status::queue_full);
  EXPECT_EQ(std::memcmp(before.data(), rig.slots.data(), 16 * sizeof before[0]), 0);
  rig.settle();
  EXPECT_TRUE(channel.put_value(Thread{}, {0, 0}, 2u, device::Announce::now, kShort).ok());
  EXPECT_TRUE(channel.flush(Thread{}, kShort).status == Status::timed_out);
  rig.settle();
  EXPECT_TRUE(channel.flush(Thread{}, kShort).ok());
}

// Fault: what is known of the window that was used last taken for leave to write anywhere in it, beyond it,
// or in another one; an offset or a length that is compared without its upper 32 bits.
TYPED_TEST(ProxyRing, WindowsAreCheckedAlsoWhereTheyAreKnown) {
  Rig rig;
  device::proxy::Channel<TypeParam> channel(rig.view, 1);
  const std::uint64_t end = Rig::kWindowBytes;
  const auto expect_bad = [&](std::uint32_t window, std::uint64_t offset, std::uint64_t bytes) {
    EXPECT_EQ(channel.put(Thread{}, {window, offset}, {0, 0}, bytes).status, Status::bad_argument)
        << window << ' ' << offset << ' ' << bytes;
    EXPECT_EQ(channel.put(Thread{}, {0, 0}, {window, offset}, bytes).status, Status::bad_argument);
  };
  expect_bad(~0u, 0, 0);
  for (int round = 0; round < 2; ++round) {
    expect_bad(0, end - 7, 8);
    expect_bad(0, end, 8);
    expect_bad(0, ~std::uint64_t{0} - 3, 8);
    expect_bad(0, 8, ~std::uint64_t{0});
    expect_bad(0, (std::uint64_t{1} << 32) - 4, end);
    expect_bad(2, 0, 8);
    expect_bad(~0u, 0, 8);
    EXPECT_EQ(channel.put_value(Thread{}, {0, end - 7}, std::uint64_t{1}).status, Status::bad_argument);
    // On both sides of what one descriptor can name.
    for (const std::uint64_t offset : {std::uint64_t{8}, (std::uint64_t{1} << 32) - 4, end - 8})
      ASSERT_TRUE(channel.put(Thread{}, {0, offset}, {0, offset}, 8).ok()) << offset;
    rig.settle();
  }
  ASSERT_EQ(rig.nic.posted.size(), 6u);
}

// Fault: 16, 32 or lap bits of an index that are compared as if they were all of it.
TYPED_TEST(ProxyRing, IndicesPass32BitsAndManyLaps) {
  for (const std::uint64_t start :
       {std::uint64_t{0}, (std::uint64_t{1} << 32) - 40, (std::uint64_t{1} << 16) - 40}) {
    Rig rig(3, start);
    Channel<TypeParam> channel(rig.view, 1);
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Operation op = channel.put_value(Thread{}, {0, 0}, i, device::Announce::now, kShort);
      ASSERT_TRUE(op.ok());
      ASSERT_EQ(op.index, start + i);
      EXPECT_EQ(channel.test(op).status, Status::timed_out);
      rig.settle();
      ASSERT_TRUE(channel.wait(Thread{}, op, kShort).ok());
    }
    ASSERT_EQ(rig.nic.posted.size(), 200u);
    for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(rig.nic.posted[i].value, i);
  }
}

// Fault: a count that passes a request to one peer because one to another peer, posted later, is complete.
TYPED_TEST(ProxyRing, TheCountKeepsTheRingsOrder) {
  Rig rig;
  Operation first, second;
  {
    Channel<TypeParam> one(rig.view, 1);
    first = one.put_value(Thread{}, {0, 0}, 1u);
  }
  Channel<TypeParam> two(rig.view, 2);
  second = two.put_value(Thread{}, {0, 0}, 2u);
  rig.round();
  rig.nic.execute(1);
  rig.round();
  EXPECT_EQ(rig.words.completed, 0u);
  EXPECT_EQ(two.test(second).status, Status::timed_out);
  rig.nic.execute(0);
  rig.round();
  EXPECT_EQ(rig.words.completed, 2u);
  EXPECT_TRUE(two.test(first).ok());
  EXPECT_TRUE(two.test(second).ok());
}

// Field case 13. Fault: a descriptor that a failed post loses, doubles or reorders: 300 puts on a queue of
// 256 slots, of which the 100th fails once.
TYPED_TEST(ProxyRing, FieldCase13APostThatFailsOnceLosesNothing) {
  for (const int error : {ENOMEM, EAGAIN}) {
    Rig rig(8, 0, {.chain = 16, .descriptors_a_turn = 64});
    Channel<TypeParam> channel(rig.view, 1);
    std::size_t seen = 0;
    bool failed = false;
    rig.nic.fail = [&](std::uint32_t, std::span<const Work> chain) {
      if (!failed && seen + chain.size() > 99) {
        failed = true;
        const std::size_t accepted = 99 - seen;
        seen += accepted;
        return PostResult{accepted, error};
      }
      seen += chain.size();
      return PostResult{};
    };
    for (std::uint64_t i = 0; i < 300; ++i) {
      while (!channel.put_value(Thread{}, {0, 0}, i, device::Announce::now, port::Timeout{0}).ok())
        rig.settle();
    }
    rig.settle();
    EXPECT_TRUE(failed);
    ASSERT_EQ(rig.nic.posted.size(), 300u);
    for (std::uint64_t i = 0; i < 300; ++i) ASSERT_EQ(rig.nic.posted[i].value, i);
    EXPECT_TRUE(channel.flush(Thread{}, kShort).ok());
    EXPECT_EQ(channel.fault().kind, device::Fault::Kind::none);
  }
}

// Fault: a post that will never succeed and is tried for ever, or dropped; the works before it, which the NIC
// took, reported as lost; the cause ascribed to one of them.
TYPED_TEST(ProxyRing, APostThatFailsForGoodIsReported) {
  for (const std::size_t accepted : {0u, 1u}) {
    Rig rig(4, 0, {.chain = 4, .descriptors_a_turn = 64});
    Channel<TypeParam> channel(rig.view, 1);
    std::vector<Operation> ops;
    for (std::uint64_t i = 0; i < 12; ++i) ops.push_back(channel.put_value(Thread{}, {0, 0}, i));
    rig.nic.fail = [&](std::uint32_t, std::span<const Work>) {
      return rig.nic.posts == 2 ? PostResult{accepted, EINVAL} : PostResult{};
    };
    rig.settle();
    const std::size_t posted = 4 + accepted;
    EXPECT_EQ(rig.nic.posted.size(), posted);
    // Of the second chain nothing is signaled, so that what the NIC took of it is never known to be complete.
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Outcome o = channel.wait(Thread{}, ops[i], kShort);
      if (i < 4) {
        EXPECT_TRUE(o.ok()) << i;
        continue;
      }
      EXPECT_EQ(o.status, Status::completion_error) << i;
      EXPECT_EQ(o.fault.kind, device::Fault::Kind::root) << i;
      EXPECT_EQ(o.fault.index, ops[posted].index) << i;
      EXPECT_EQ(o.fault.qpn, 100u);
      EXPECT_EQ(o.fault.peer, 1u) << i;
      EXPECT_EQ(o.syndrome, i == posted  ? wire::Syndrome::local_qp_operation
                            : i < posted ? wire::Syndrome::none
                                         : wire::Syndrome::flushed)
          << i;
    }
  }
}

// Field case 12. Fault: a tail that is lost, or a signal in front of the last piece.
TYPED_TEST(ProxyRing, FieldCase12LongMessagesAreCut) {
  Rig rig;
  Channel<TypeParam> channel(rig.view, 1);
  const std::uint64_t bytes = (std::uint64_t{4} << 30) + 1;
  const Operation op = channel.put_signal(Thread{}, {0, 0}, {0, 0}, bytes, {{1, 64}, 1});
  ASSERT_TRUE(op.ok());
  rig.round();
  ASSERT_EQ(rig.nic.posted.size(), 6u);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(rig.nic.posted[i].bytes, i < 4 ? 1u << 30 : 1u);
    EXPECT_EQ(rig.nic.posted[i].local, 0x1000'0000'0000u + (i << 30));
  }
  EXPECT_EQ(rig.nic.posted[5].kind, Work::Kind::fetch_add);
  rig.nic.execute(0, 5);
  rig.round();
  EXPECT_EQ(channel.test(op).status, Status::timed_out);
  rig.settle();
  EXPECT_TRUE(channel.wait(Thread{}, op, kShort).ok());
}

// Field case 3, through the proxy. Fault: a failed queue that the device never hears of.
TYPED_TEST(ProxyRing, AFailedWorkReachesTheDeviceWithItsCause) {
  Rig rig;
  Channel<TypeParam> channel(rig.view, 1);
  std::vector<Operation> ops;
  for (int i = 0; i < 5; ++i) ops.push_back(channel.put_value(Thread{}, {0, 0}, 1u));
  rig.round();
  rig.nic.execute(0, 2);
  rig.nic.break_queue(0, wire::Syndrome::transport_retry_exceeded, 0x83);
  rig.round();
  for (std::size_t i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    const Outcome o = channel.wait(Thread{}, ops[i], kShort);
    if (i < 2) {
      EXPECT_TRUE(o.ok());
      continue;
    }
    EXPECT_EQ(o.status, Status::completion_error);
    EXPECT_EQ(o.syndrome, i == 2 ? wire::Syndrome::transport_retry_exceeded : wire::Syndrome::flushed);
    EXPECT_EQ(o.fault.kind, device::Fault::Kind::root);
    EXPECT_EQ(o.fault.index, 2u);
    EXPECT_EQ(o.fault.vendor, 0x83);
    EXPECT_EQ(o.fault.qpn, 100u);
    EXPECT_EQ(o.fault.peer, 1u);
  }
  // The ring goes on being emptied, so that nobody waits for room that never comes.
  for (int i = 0; i < 100; ++i) {
    channel.put_value(Thread{}, {0, 0}, 1u, device::Announce::now, kShort);
    rig.round();
  }
  EXPECT_EQ(channel.flush(Thread{}, kShort).status, Status::completion_error);
}

/// One put of the value 1, through a channel that lives as long as the call: a tuned ring has one producer.
template <class Policy>
Operation put_to(Rig& rig, std::uint32_t peer) {
  Channel<Policy> channel(rig.view, peer);
  return channel.put_value(Thread{}, {0, 0}, 1u, device::Announce::now, kShort);
}

// Field case 3, with a slow peer on the same ring. Fault: the failure of a request more than 2^16 descriptors
// ahead of the count ascribed to another one; an operation that a peer's working queue carries out, or may
// have carried out, reported as flushed.
TYPED_TEST(ProxyRing, FieldCase3AFailureFarBehindASlowPeerIsAscribedRight) {
  for (const std::uint64_t start : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 64}) {
    Rig rig(4, start);
    const Operation slow = put_to<TypeParam>(rig, 1);
    rig.round();
    std::vector<Operation> ops;
    while (ops.size() < 70'000) {
      for (int i = 0; i < 8; ++i) ops.push_back(put_to<TypeParam>(rig, 2));
      ASSERT_TRUE(ops.back().ok());
      rig.round();
      rig.nic.execute(1);
    }
    const Operation bad = put_to<TypeParam>(rig, 2);
    const Operation behind = put_to<TypeParam>(rig, 2);
    const Operation beside = put_to<TypeParam>(rig, 1);
    rig.round();
    rig.nic.break_queue(1, wire::Syndrome::remote_access, 0x88);
    rig.round();
    const Operation dropped = put_to<TypeParam>(rig, 1);
    rig.round();
    // Whichever peer's channel asks.
    Channel<TypeParam> channel(rig.view, 2);
    const auto expect = [&](const Operation& op, wire::Syndrome syndrome) {
      const Outcome o = channel.wait(Thread{}, op, kShort);
      EXPECT_EQ(o.status, Status::completion_error);
      EXPECT_EQ(o.syndrome, syndrome);
      EXPECT_EQ(o.fault.kind, device::Fault::Kind::root);
      EXPECT_EQ(o.fault.index, start + 70'001);
      EXPECT_EQ(o.fault.peer, 2u);
      EXPECT_EQ(o.fault.qpn, 101u);
    };
    expect(bad, wire::Syndrome::remote_access);
    expect(behind, wire::Syndrome::flushed);
    expect(slow, wire::Syndrome::none);
    expect(ops[0], wire::Syndrome::none);
    expect(beside, wire::Syndrome::none);
    expect(dropped, wire::Syndrome::flushed);
    rig.nic.execute(0);
    rig.round();
    EXPECT_TRUE(channel.wait(Thread{}, slow, kShort).ok());
    EXPECT_TRUE(channel.wait(Thread{}, ops.back(), kShort).ok());
    expect(beside, wire::Syndrome::none);
  }
}

// Fault: what was posted before a bad descriptor came reported as flushed; what came behind it as unknown.
TYPED_TEST(ProxyRing, ABadDescriptorSaysNothingOfWhatWasPosted) {
  Rig rig;
  const Operation before = put_to<TypeParam>(rig, 2);
  rig.slots[1] = {0x1 | 13u << 1, 0};
  rig.state.reserved = 2;
  const Operation after = put_to<TypeParam>(rig, 2);
  rig.round();
  Channel<TypeParam> channel(rig.view, 2);
  const Outcome o = channel.wait(Thread{}, before, kShort);
  EXPECT_EQ(o.syndrome, wire::Syndrome::none);
  EXPECT_EQ(o.fault.peer, device::kNoPeer);
  EXPECT_EQ(o.fault.index, 1u);
  EXPECT_EQ(channel.wait(Thread{}, after, kShort).syndrome, wire::Syndrome::flushed);
}

// Fault: bytes from a ring that are believed: a window or peer that does not exist, an offset beyond its end.
TYPED_TEST(ProxyRing, BadDescriptorsFailTheirRingOnly) {
  const port::Vector16 bad[] = {
      {0x1, 0},                                 // no operation
      {0x1 | 13u << 1, 0},                      // one that does not exist
      {0x1 | 1u << 1 | 9u << 6, 0},             // peer 9
      {0x1 | 1u << 1, 0},                       // peer 0, to whom there is no queue
      {0x1 | 1u << 1 | 1u << 6 | 5u << 20, 0},  // window 5
      {0x1 | 3u << 1 | 1u << 5 | 1u << 6, 0},   // more to come, that is none
      {0x1 | 4u << 1 | 1u << 6 | 2u << 26, 0},  // a signal of 4 B
  };
  for (const port::Vector16& descriptor : bad) {
    Rig rig;
    rig.slots[0] = descriptor;
    rig.slots[1] = {0x1 | 1u << 1 | 1u << 6, 0};
    rig.state.reserved = 2;
    rig.settle();
    Channel<TypeParam> channel(rig.view, 1);
    const Outcome o = channel.flush(Thread{}, kShort);
    EXPECT_EQ(o.status, Status::completion_error) << std::hex << descriptor.low;
    EXPECT_EQ(o.fault.syndrome, wire::Syndrome::local_qp_operation);
    EXPECT_EQ(rig.nic.posted.size(), 0u);
  }
}

// Fault: completions lost or doubled in any mixture of chains, queues, refusals and slow completions.
TYPED_TEST(ProxyRing, RandomSchedulesDeliverEachOnceAndInOrder) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Rig rig(5, random() % 2 == 0 ? 0 : (std::uint64_t{1} << 32) - 100,
            {.chain = 1 + static_cast<std::uint32_t>(random() % 20),
             .descriptors_a_turn = 1 + static_cast<std::uint32_t>(random() % 40)});
    rig.nic.fail = [&](std::uint32_t, std::span<const Work> chain) {
      if (random() % 4 != 0) return PostResult{};
      return PostResult{random() % chain.size(), ENOMEM};
    };
    std::uint64_t sent[2] = {0, 0};
    std::uint64_t last = 0;
    while (sent[0] + sent[1] < 500) {
      const std::uint32_t peer = random() % 2;
      Channel<TypeParam> channel(rig.view, 1 + peer);
      const Operation op =
          channel.put_value(Thread{}, {0, 0}, sent[peer], device::Announce::now, port::Timeout{0});
      if (op.ok()) ++sent[peer];
      if (op.ok()) last = op.index;
      if (random() % 3 == 0) rig.round();
      if (random() % 3 == 0) rig.nic.execute(random() % 2, random() % 8);
    }
    rig.settle();
    ASSERT_EQ(rig.words.completed, last + 1) << seed;
    std::uint64_t next[2] = {0, 0};
    for (const Work& work : rig.nic.posted) {
      const unsigned peer = work.rkey == 0x21 ? 0 : 1;
      ASSERT_EQ(work.value, next[peer]++) << seed;
    }
    EXPECT_EQ(next[0], sent[0]);
    EXPECT_EQ(next[1], sent[1]);
  }
}

// Fault: one post for each descriptor, where a chain would do.
TEST(ProxyChains, AreAsLongAsAskedFor) {
  for (const std::uint32_t chain : {1u, 4u, 16u}) {
    Rig rig(6, 0, {.chain = chain, .descriptors_a_turn = 64});
    Channel<Tuned> channel(rig.view, 1);
    for (int i = 0; i < 32; ++i) ASSERT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u).ok());
    rig.settle();
    EXPECT_EQ(rig.nic.posts, 32 / chain);
    EXPECT_TRUE(channel.flush(Thread{}, kShort).ok());
  }
}

// Fault: a worker's turn at a full ring is longer than a chain, and a probe in its next ring waits behind all
// of it.
TEST(ProxyTurns, OfASharedWorkerAreOneChain) {
  constexpr std::uint32_t kChain = 4;
  Rig rig(7, 0, ServiceOptions::of(kChain, true));
  Channel<Tuned> channel(rig.view, 1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(channel.put_value(Thread{}, {0, 8}, std::uint64_t{1}).ok());
  for (std::uint32_t turn = 1; turn <= 3; ++turn) {
    rig.round();
    EXPECT_EQ(rig.nic.posted.size(), turn * kChain);
    EXPECT_EQ(rig.taken, turn * kChain);
  }
  EXPECT_EQ(ServiceOptions::of(kChain, false).descriptors_a_turn, 64u);
}

}  // namespace
}  // namespace belfry::proxy::test
