/// \file
/// The bytes that mini-gda writes, and where.

#include "device/fake_queue.hpp"

namespace belfry::device::test {
namespace {

std::vector<unsigned char> bytes_of(const FakeQueue& q, std::uint64_t index, std::size_t count) {
  std::vector<unsigned char> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(q.block(index + i / 64)[i % 64]);
  return all;
}

// Field case 6. Fault: a control segment whose fields are swapped, truncated or in host order.
TEST(GdaWqe, ASignalledWriteBeginsAsTheDeviceReadsIt) {
  FakeQueue q = make_queue<Ring>(4, 0x10102);  // a queue's 16 bits of it: 0x0102
  {
    Channel<Ring> channel(q.view, 1);
    ASSERT_TRUE(channel.put(Thread{}, {0, 16}, {0, 32}, 48).ok());
  }
  const std::vector<unsigned char> expected = {0x00, 0x01, 0x02, 0x08, 0xab, 0xcd, 0xef, 0x03,
                                               0,    0,    0,    8,    0,    0,    0,    0};
  EXPECT_EQ(bytes_of(q, 0x10102, 16), expected);
  const auto remote = q.segment<wire::RemoteAddressSegment>(0x10102, 1);
  EXPECT_EQ(remote.address.get(), 0x7000'0000'0010u);
  EXPECT_EQ(remote.rkey.get(), FakeQueue::kRkey);
  const auto data = q.segment<wire::DataSegment>(0x10102, 2);
  EXPECT_EQ(data.byte_count.get(), 48u);
  EXPECT_EQ(data.lkey.get(), FakeQueue::kLkey);
  EXPECT_EQ(data.address.get(), q.windows[0].address + 32);
}

// Field case 7. Fault: the receive side's word, host order, or more than 16 bits.
TEST(GdaWqe, TheDoorbellRecordHoldsTheProducersLow16Bits) {
  FakeQueue q = make_queue<Ring>(4, 0x1ffff);
  Channel<Ring> channel(q.view, 1);
  ASSERT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u).ok());
  EXPECT_EQ(q.record.get(), 0u) << "0x20000, of which 16 bits meet the wire";
  ASSERT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u).ok());
  EXPECT_EQ(q.record.get(), 1u);
  EXPECT_EQ(wire::doorbell_index(q.doorbell), 1u);
  EXPECT_EQ(wire::doorbell_qpn(q.doorbell), FakeQueue::kQpn);
}

// Fault: a record written in the mode that has none, where it may be anybody's memory.
TEST(GdaWqe, WithoutARecordOnlyTheDoorbellIsWritten) {
  FakeQueue q = make_queue<Collapsed>();
  q.queues[1].record = nullptr;
  Channel<Collapsed> channel(q.view, 1);
  ASSERT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u).ok());
  EXPECT_EQ(wire::doorbell_index(q.doorbell), 1u);
}

// Fault: inline bytes lost, shifted, or taken from beyond the source, at each length and alignment.
TEST(GdaWqe, InlinePayloadOfEveryLength) {
  using Inline = Inlined<Ring>;
  for (std::uint64_t offset : {0u, 1u, 4u}) {
    FakeQueue q = make_queue<Inline>(15);
    for (std::size_t i = 0; i < 512; ++i) q.memory[i] = static_cast<std::byte>(i * 5 + 3);
    Channel<Inline> channel(q.view, 1);
    std::uint64_t index = 0;
    for (std::uint32_t bytes = 0; bytes <= 220; ++bytes) {
      const Operation op = channel.put(Thread{}, {0, 0}, {0, offset}, bytes);
      ASSERT_TRUE(op.ok());
      ASSERT_EQ(op.index, index);
      const std::uint32_t segments = bytes == 0 ? 2 : 2 + wire::inline_segments(bytes);
      ASSERT_EQ(q.control(index).segments(), segments);
      const auto all = bytes_of(q, index, segments * 16);
      if (bytes != 0) {
        EXPECT_EQ(q.segment<wire::InlineHeader>(index, 2).flag_byte_count.get(), wire::kInlineFlag | bytes);
      }
      for (std::uint32_t i = 0; i < bytes; ++i)
        ASSERT_EQ(all[36 + i], static_cast<unsigned char>((offset + i) * 5 + 3)) << bytes << " at " << i;
      index += wire::wqe_blocks(segments);
    }
    EXPECT_EQ(channel.indices().producer(), index);
  }
}

// Fault: one byte more than the limit goes inline, or the device's smaller limit is passed over.
TEST(GdaWqe, WhatDoesNotFitInlineGoesByPointer) {
  using Inline = Inlined<Ring, 100>;
  FakeQueue q = make_queue<Inline>(6);
  Channel<Inline> channel(q.view, 1);
  EXPECT_EQ(q.control(channel.put(Thread{}, {0, 0}, {0, 0}, 100).index).segments(), 9u);
  EXPECT_EQ(q.control(channel.put(Thread{}, {0, 0}, {0, 0}, 101).index).segments(), 3u);
  q.view.max_inline = 28;
  Channel<Inline> narrow(q.view, 1);
  EXPECT_EQ(q.control(narrow.put(Thread{}, {0, 0}, {0, 0}, 29).index).segments(), 3u);
}

// Fault: values that are cut, or swapped as if they were numbers of the wire.
TEST(GdaWqe, ValuesAreCopiedAsTheyLieInMemory) {
  FakeQueue q = make_queue<Ring>();
  Channel<Ring> channel(q.view, 1);
  const auto expect = [&](auto value) {
    const Operation op = channel.put_value(Thread{}, {0, 8}, value);
    ASSERT_TRUE(op.ok());
    EXPECT_EQ(q.segment<wire::InlineHeader>(op.index, 2).flag_byte_count.get(),
              wire::kInlineFlag | sizeof value);
    EXPECT_EQ(std::memcmp(q.block(op.index) + 36, &value, sizeof value), 0);
  };
  expect(std::uint8_t{0x12});
  expect(std::uint16_t{0x1234});
  expect(1.5f);
  expect(std::uint64_t{0x0102030405060708});
}

TEST(GdaWqe, AtomicsAndReads) {
  FakeQueue q = make_queue<Ring>();
  Channel<Ring> channel(q.view, 1);
  const Operation add = channel.fetch_add(Thread{}, {0, 64}, {0, 8}, 5);
  EXPECT_EQ(q.control(add.index).opcode(), wire::WqeOpcode::atomic_fetch_add);
  EXPECT_EQ(q.segment<wire::AtomicSegment>(add.index, 2).swap_or_add.get(), 5u);
  EXPECT_EQ(q.segment<wire::DataSegment>(add.index, 3).address.get(), q.windows[0].address + 64);
  const Operation swap = channel.compare_swap(Thread{}, {0, 64}, {0, 8}, 6, 7);
  EXPECT_EQ(q.control(swap.index).opcode(), wire::WqeOpcode::atomic_compare_swap);
  EXPECT_EQ(q.segment<wire::AtomicSegment>(swap.index, 2).swap_or_add.get(), 7u);
  EXPECT_EQ(q.segment<wire::AtomicSegment>(swap.index, 2).compare.get(), 6u);
  const Operation get = channel.get(Thread{}, {0, 0}, {0, 128}, 100);
  EXPECT_TRUE(get.reads);
  EXPECT_EQ(q.control(get.index).opcode(), wire::WqeOpcode::rdma_read);
  EXPECT_EQ(q.segment<wire::RemoteAddressSegment>(get.index, 1).address.get(), 0x7000'0000'0080u);
}

// Field case 12. Fault: a length that is cut to 32 bits, a tail that is lost, a signal before the last piece.
TEST(GdaWqe, MoreThanTheDevicesLimitBecomesSeveralWqes) {
  FakeQueue q = make_queue<Ring>(4);
  q.view.max_message = std::uint64_t{1} << 30;
  for (auto& window : q.windows) window.bytes = std::uint64_t{8} << 30;
  Channel<Ring> channel(q.view, 1);
  const std::uint64_t bytes = (std::uint64_t{4} << 30) + 1;
  const Operation op =
      channel.put_signal(Thread{}, {0, 0}, {0, 0}, bytes, Signal{{0, 64}, 9, SignalOperation::set});
  ASSERT_TRUE(op.ok());
  ASSERT_EQ(op.index, 5u) << "the signal is the sixth";
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(q.segment<wire::DataSegment>(i, 2).byte_count.get(), i < 4 ? 1u << 30 : 1u) << i;
    EXPECT_EQ(q.segment<wire::RemoteAddressSegment>(i, 1).address.get(), 0x7000'0000'0000u + (i << 30));
  }
  EXPECT_EQ(q.segment<wire::RemoteAddressSegment>(5, 1).address.get(), 0x7000'0000'0040u);
  EXPECT_TRUE(q.control(5).signalled());
}

// Field case 19. Fault: a signal in memory where PCIe may let it overtake its payload.
TEST(GdaWqe, NoSignalInARelaxedOrderedWindow) {
  FakeQueue q = make_queue<Ring>();
  Channel<Ring> channel(q.view, 1);
  EXPECT_EQ(channel.put_signal(Thread{}, {1, 0}, {0, 0}, 8, Signal{{1, 64}}).status, Status::bad_argument);
  EXPECT_TRUE(channel.put_signal(Thread{}, {1, 0}, {0, 0}, 8, Signal{{0, 64}}).ok());
}

// Fault: a wild offset posted to the NIC, which answers with a dead queue.
TEST(GdaWqe, BadArgumentsPostNothing) {
  FakeQueue q = make_queue<Ring>();
  Channel<Ring> channel(q.view, 1);
  const auto bad = [](Operation op) { return op.status == Status::bad_argument; };
  const std::uint64_t end = FakeQueue::kWindowBytes;
  EXPECT_TRUE(bad(channel.put(Thread{}, {0, end}, {0, 0}, 1)));
  EXPECT_TRUE(bad(channel.put(Thread{}, {0, 0}, {0, end - 7}, 8)));
  EXPECT_TRUE(bad(channel.put(Thread{}, {2, 0}, {0, 0}, 8)));
  EXPECT_TRUE(bad(channel.put(Thread{}, {0, 0}, {2, 0}, 8)));
  EXPECT_TRUE(bad(channel.put(Thread{}, {0, ~0ull}, {0, 0}, 8)));
  EXPECT_TRUE(bad(channel.put(Thread{}, {0, 8}, {0, 0}, ~0ull)));
  EXPECT_TRUE(bad(channel.put_value(Thread{}, {0, end - 3}, 1u)));
  EXPECT_TRUE(bad(channel.fetch_add(Thread{}, {0, 0}, {0, 4}, 1)));
  EXPECT_TRUE(bad(channel.get(Thread{}, {0, end}, {0, 0}, 1)));
  EXPECT_EQ(channel.indices().producer(), 0u);
  EXPECT_EQ(q.doorbell, 0u);
  for (std::uint32_t pe : {0u, 2u, 99u}) {
    Channel<Ring> nobody(q.view, pe);
    EXPECT_TRUE(bad(nobody.put(Thread{}, {0, 0}, {0, 0}, 8))) << pe;
    EXPECT_EQ(nobody.flush(Thread{}).status, Status::bad_argument);
  }
}

template <class Policy>
class GdaWindow : public ::testing::Test {};
TYPED_TEST_SUITE(GdaWindow, AllPolicies);

// Fault: what is known of the window that was used last taken for leave to write anywhere in it, beyond it,
// or in another one; or a window that does not exist taken for the one that nobody has used yet.
TYPED_TEST(GdaWindow, IsCheckedAlsoWhereItIsKnown) {
  FakeQueue q = make_queue<TypeParam>();
  Channel<TypeParam> channel(q.view, 1);
  const std::uint64_t end = FakeQueue::kWindowBytes;
  const auto expect_bad = [&](std::uint32_t window, std::uint64_t offset) {
    EXPECT_EQ(channel.put_value(Thread{}, {window, offset}, std::uint64_t{1}).status, Status::bad_argument)
        << window << ' ' << offset;
    EXPECT_EQ(channel.put(Thread{}, {window, offset}, {0, 0}, 8).status, Status::bad_argument);
    EXPECT_EQ(channel.put(Thread{}, {0, 0}, {window, offset}, 8).status, Status::bad_argument);
  };
  EXPECT_EQ(channel.put(Thread{}, {~0u, 0}, {~0u, 0}, 0).status, Status::bad_argument);
  for (int round = 0; round < 2; ++round) {
    expect_bad(0, end - 7);
    expect_bad(0, end);
    expect_bad(0, ~std::uint64_t{0} - 3);
    expect_bad(2, 0);
    expect_bad(~0u, 0);
    EXPECT_EQ(channel.put(Thread{}, {0, 8}, {0, 0}, ~std::uint64_t{0}).status, Status::bad_argument);
    ASSERT_TRUE(channel.put(Thread{}, {0, end - 8}, {0, end - 8}, 8).ok()) << round;
  }
  const Operation op = channel.put_value(Thread{}, {1, end - 8}, std::uint64_t{1});
  ASSERT_TRUE(op.ok());
  EXPECT_EQ(op.index, 2u) << "nothing else was posted";
}

// Fault: a channel of a shared queue that posts to slots it once knew to be the next, though others have
// taken them since; or one that keeps what it knew of room for ever.
TEST(GdaShared, ChannelsThatKnowOldIndicesGoOnBehindTheOthers) {
  using Policy = SharedCollapsed;
  FakeQueue q = make_queue<Policy>();
  Channel<Policy> channels[3] = {{q.view, 1}, {q.view, 1}, {q.view, 1}};
  const unsigned order[] = {0, 0, 1, 0, 2, 2, 1, 1, 0, 2, 0, 1};
  std::uint64_t next = 0;
  for (int lap = 0; lap < 9; ++lap) {
    for (const unsigned who : order) {
      const Operation op = channels[who].put_value(Thread{}, {0, 8 * who}, next);
      ASSERT_TRUE(op.ok()) << next;
      ASSERT_EQ(op.index, next);
      EXPECT_EQ(wire::doorbell_index(q.doorbell), static_cast<std::uint16_t>(next + 1));
      EXPECT_EQ(q.state.published, next + 1);
      q.complete(next++);
    }
  }
  // Nobody completes from here on: the queue fills, for each of them.
  const std::uint64_t complete = next;
  for (; next < complete + 16; ++next)
    ASSERT_TRUE(channels[next % 3].put_value(Thread{}, {0, 0}, next).ok()) << next;
  for (auto& channel : channels)
    EXPECT_EQ(channel.put_value(Thread{}, {0, 0}, next, Announce::now, kShort).status, Status::queue_full);
}

}  // namespace
}  // namespace belfry::device::test
