/// \file
/// Every operation moves the right bytes, on every way that two QPs can be connected.

#include <cstdlib>
#include <random>

#include "softnic/firmware/rig.hpp"

namespace belfry::softnic::test {
namespace {

enum class Way { direct, packets, two_nics, faulty, ethernet, no_record };

const char* name(Way w) {
  switch (w) {
    case Way::direct:
      return "direct";
    case Way::packets:
      return "packets";
    case Way::two_nics:
      return "two_nics";
    case Way::faulty:
      return "faulty";
    case Way::ethernet:
      return "ethernet";
    case Way::no_record:
      return "no_record";
  }
  return "";
}

class Operations : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    hub = MemoryHub::create(256);
    config.seed = 7;
    config.direct_loopback = GetParam() == Way::direct || GetParam() == Way::no_record;
    if (GetParam() == Way::ethernet) config.link = LinkLayer::ethernet;
    first = make_nic();
    if (GetParam() == Way::two_nics || GetParam() == Way::faulty) second = make_nic();
    Side::Options options;
    a = std::make_unique<Side>(*first, with_mode(options));
    b = std::make_unique<Side>(peer_nic(), options);
    QpModify extra;
    extra.timeout = 1;
    a->connect(*b, extra);
    b->connect(*a, extra);
  }

  Side::Options with_mode(Side::Options o) const {
    o.no_record = GetParam() == Way::no_record;
    return o;
  }
  Nic& peer_nic() { return second ? *second : *first; }

  std::unique_ptr<Nic> make_nic() {
    std::unique_ptr<Fabric> port = hub->open_port();
    if (GetParam() == Way::faulty) {
      FaultPlan plan;
      plan.drop = plan.duplicate = plan.reorder = 0.05;
      port = std::make_unique<FaultyFabric>(std::move(port), plan, 11);
    }
    auto nic = std::make_unique<Nic>(config, std::move(port));
    ManualClock::install(*nic);
    return nic;
  }

  void poll() {
    first->poll();
    if (second) second->poll();
    ManualClock::advance_us(20);
  }

  /// Polls until the side has a completion; fails where none comes.
  wire::Cqe complete(Side& side) {
    wire::Cqe cqe{};
    for (int i = 0; i < 2'000'000; ++i) {
      if (side.poll_cq(cqe)) return cqe;
      poll();
    }
    ADD_FAILURE() << "no completion";
    return cqe;
  }

  void expect_success(Side& side, std::uint64_t block) {
    const wire::Cqe cqe = complete(side);
    ASSERT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
    EXPECT_EQ(cqe.wqe_counter.get(), static_cast<std::uint16_t>(block));
    EXPECT_EQ(cqe.srqn_user_index.get(), 0x1234u);
  }

  void fill(Buffer& buffer) {
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer.data()[i] = static_cast<unsigned char>(rng());
  }

  Config config;
  std::shared_ptr<MemoryHub> hub;
  std::unique_ptr<Nic> first, second;
  std::unique_ptr<Side> a, b;
  std::mt19937 rng{5};
};

// Fault: a size or an alignment at which the split into packets loses or adds a byte.
TEST_P(Operations, WriteMovesExactlyItsBytesAtEverySizeAndAlignment) {
  Buffer source(300'000), target(300'000 + 64);
  const std::uint32_t lkey = a->register_memory(source);
  const std::uint32_t rkey = b->register_memory(target);
  fill(source);
  for (std::uint32_t bytes : {0u, 1u, 3u, 8u, 63u, 64u, 65u, 1023u, 1024u, 1025u, 4096u, 70'001u, 270'003u}) {
    for (std::uint32_t shift : {0u, 1u, 7u}) {
      std::memset(target.data(), 0xee, target.size());
      const auto block =
          a->write({target.address() + 16 + shift, rkey}, {source.address() + shift, bytes, lkey});
      a->ring();
      expect_success(*a, block);
      ASSERT_EQ(std::memcmp(target.data() + 16 + shift, source.data() + shift, bytes), 0) << bytes;
      EXPECT_EQ(target.data()[15 + shift], 0xee);
      EXPECT_EQ(target.data()[16 + shift + bytes], 0xee) << bytes;
    }
  }
}

// Fault: inline data that wraps at the ring's end, or WQEs of several blocks, read from the wrong place.
TEST_P(Operations, InlineWritesOfAllSizesWrapAtTheRingsEnd) {
  Buffer target(1024);
  const std::uint32_t rkey = b->register_memory(target);
  unsigned char data[512];
  for (int round = 0; round < 200; ++round) {
    const std::size_t bytes = rng() % sizeof data;
    for (auto& c : data) c = static_cast<unsigned char>(rng());
    const auto block = a->write_inline({target.address(), rkey}, data, bytes);
    a->ring();
    expect_success(*a, block);
    ASSERT_EQ(std::memcmp(target.data(), data, bytes), 0) << round;
  }
}

// Fault: gather lists out of order, or an entry skipped.
TEST_P(Operations, GatherAndScatterListsKeepTheirOrder) {
  Buffer source(8192), target(8192), back(8192);
  const std::uint32_t lkey = a->register_memory(source);
  const std::uint32_t bkey = a->register_memory(back);
  const std::uint32_t rkey = b->register_memory(target);
  fill(source);
  const std::uint32_t sizes[] = {1, 500, 1024, 3, 2000};
  a->begin();
  a->put_remote({target.address(), rkey});
  std::uint64_t at = source.address();
  for (std::uint32_t s : sizes) {
    a->put_sge({at, s, lkey});
    at += s;
  }
  auto block = a->finish(wire::WqeOpcode::rdma_write);
  a->ring();
  expect_success(*a, block);
  ASSERT_EQ(std::memcmp(target.data(), source.data(), 3528), 0);

  a->begin();
  a->put_remote({target.address(), rkey});
  at = back.address();
  for (std::uint32_t s : {7u, 1500u, 2021u}) {
    a->put_sge({at, s, bkey});
    at += s;
  }
  block = a->finish(wire::WqeOpcode::rdma_read);
  a->ring();
  expect_success(*a, block);
  EXPECT_EQ(std::memcmp(back.data(), source.data(), 3528), 0);
}

// Fault: a READ's response misplaced when it spans packets.
TEST_P(Operations, ReadBringsBackWhatIsThere) {
  Buffer remote(300'000), local(300'000);
  const std::uint32_t lkey = a->register_memory(local);
  const std::uint32_t rkey = b->register_memory(remote);
  fill(remote);
  for (std::uint32_t bytes : {0u, 1u, 8u, 1024u, 1025u, 33'333u, 262'145u}) {
    std::memset(local.data(), 0, local.size());
    const auto block = a->read({remote.address() + 3, rkey}, {local.address() + 5, bytes, lkey});
    a->ring();
    const wire::Cqe cqe = complete(*a);
    ASSERT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
    EXPECT_EQ(cqe.wqe_counter.get(), static_cast<std::uint16_t>(block));
    EXPECT_EQ(cqe.byte_count.get(), bytes);
    ASSERT_EQ(std::memcmp(local.data() + 5, remote.data() + 3, bytes), 0) << bytes;
    EXPECT_EQ(local.data()[5 + bytes], 0);
  }
}

// Fault: an atomic executed twice after a lost answer, or with its operands in the wrong order.
TEST_P(Operations, AtomicsExecuteExactlyOnce) {
  Buffer cell(64), result(64);
  const std::uint32_t lkey = a->register_memory(result);
  const std::uint32_t rkey = b->register_memory(cell);
  auto* value = reinterpret_cast<std::uint64_t*>(cell.data());
  auto* old = reinterpret_cast<std::uint64_t*>(result.data());
  *value = 0xfffffff0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto block = a->fetch_add({cell.address(), rkey}, 3, {result.address(), 8, lkey});
    a->ring();
    expect_success(*a, block);
    ASSERT_EQ(*old, 0xfffffff0ull + 3 * i);
  }
  EXPECT_EQ(*value, 0xfffffff0ull + 600);

  const auto swap = [&](std::uint64_t compare, std::uint64_t with) {
    a->begin();
    a->put_remote({cell.address(), rkey});
    wire::AtomicSegment s{};
    s.compare.set(compare);
    s.swap_or_add.set(with);
    a->put(s);
    a->put_sge({result.address(), 8, lkey});
    const auto block = a->finish(wire::WqeOpcode::atomic_compare_swap);
    a->ring();
    expect_success(*a, block);
  };
  *value = 17;
  swap(16, 99);
  EXPECT_EQ(*old, 17u);
  EXPECT_EQ(*value, 17u);
  swap(17, 99);
  EXPECT_EQ(*old, 17u);
  EXPECT_EQ(*value, 99u);
}

// Fault: a carry that leaves its field, or a mask applied to the wrong operand.
TEST_P(Operations, MaskedAtomicsRespectTheirMasks) {
  Buffer cell(64), result(64);
  const std::uint32_t lkey = a->register_memory(result);
  const std::uint32_t rkey = b->register_memory(cell);
  auto* value = reinterpret_cast<std::uint64_t*>(cell.data());
  auto* old = reinterpret_cast<std::uint64_t*>(result.data());

  *value = 0x00000000'ffffffffull;
  a->begin();
  a->put_remote({cell.address(), rkey});
  wire::MaskedFetchAddSegment add{};
  add.add.set(0x00000001'00000001ull);
  add.field_boundary.set(0x80000000ull);  // two 32-bit counters in one word
  a->put(add);
  a->put_sge({result.address(), 8, lkey});
  auto block = a->finish(wire::WqeOpcode::atomic_masked_fetch_add, wire::kWqeCompletionAlways, 0,
                         wire::kOpmodMaskedAtomic8);
  a->ring();
  expect_success(*a, block);
  EXPECT_EQ(*old, 0x00000000'ffffffffull);
  EXPECT_EQ(*value, 0x00000001'00000000ull);

  *value = 0x1122334455667788ull;
  a->begin();
  a->put_remote({cell.address(), rkey});
  wire::MaskedCompareSwapSegment cs{};
  cs.compare.set(0xff000000000000'88ull);
  cs.compare_mask.set(0xff);
  cs.swap.set(0xaaaaaaaaaaaaaaaaull);
  cs.swap_mask.set(0xff00);
  a->put(cs);
  a->put_sge({result.address(), 8, lkey});
  block = a->finish(wire::WqeOpcode::atomic_masked_compare_swap, wire::kWqeCompletionAlways, 0,
                    wire::kOpmodMaskedAtomic8);
  a->ring();
  expect_success(*a, block);
  EXPECT_EQ(*old, 0x1122334455667788ull);
  EXPECT_EQ(*value, 0x112233445566aa88ull);

  a->begin();
  a->put_remote({cell.address(), rkey});
  wire::MaskedFetchAddSegment4 add4{};
  add4.add.set(0x10);
  a->put(add4);
  a->put_sge({result.address(), 4, lkey});
  block = a->finish(wire::WqeOpcode::atomic_masked_fetch_add, wire::kWqeCompletionAlways, 0,
                    wire::kOpmodMaskedAtomic4);
  a->ring();
  expect_success(*a, block);
  EXPECT_EQ(*value, 0x112233445566aa98ull);
}

// Fault: a mix of operations that completes out of order, or a signal that overtakes its payload.
TEST_P(Operations, AMixCompletesInOrderAndOnlyWhereSignalled) {
  Buffer source(65536), target(65536), local(65536);
  const std::uint32_t lkey = a->register_memory(source);
  const std::uint32_t bkey = a->register_memory(local);
  const std::uint32_t rkey = b->register_memory(target);
  fill(source);
  std::vector<std::uint64_t> expected;
  for (int round = 0; round < 30; ++round) {
    expected.clear();
    for (int i = 0; i < 12; ++i) {
      const std::uint8_t flags = rng() % 2 ? wire::kWqeCompletionAlways : 0;
      const auto bytes = static_cast<std::uint32_t>(rng() % 5000);
      std::uint64_t block = 0;
      switch (rng() % 4) {
        case 0:
          block = a->write({target.address(), rkey}, {source.address(), bytes, lkey}, flags);
          break;
        case 1:
          block = a->read({target.address(), rkey}, {local.address(), bytes, bkey}, flags);
          break;
        case 2:
          block = a->write_inline({target.address(), rkey}, source.data(), bytes % 200, flags);
          break;
        default:
          a->begin();
          block = a->finish(wire::WqeOpcode::nop, flags);
          break;
      }
      if (flags != 0) expected.push_back(block);
    }
    a->begin();
    expected.push_back(a->finish(wire::WqeOpcode::nop));
    a->ring();
    for (std::uint64_t block : expected) expect_success(*a, block);
  }
  wire::Cqe extra;
  EXPECT_FALSE(a->poll_cq(extra));
}

std::string way_name(const ::testing::TestParamInfo<Way>& info) { return name(info.param); }

INSTANTIATE_TEST_SUITE_P(Ways, Operations,
                         ::testing::Values(Way::direct, Way::packets, Way::two_nics, Way::faulty,
                                           Way::ethernet, Way::no_record),
                         way_name);

/// Operations that consume receives; no_record QPs of the rig have none.
class Receives : public Operations {};

// Fault: payload or immediate that does not match its completion, or lands in the wrong receive.
TEST_P(Receives, SendsArriveInOrderWithTheirImmediates) {
  Buffer source(20'000), target(64 * 4096);
  const std::uint32_t lkey = a->register_memory(source);
  const std::uint32_t rkey = b->register_memory(target);
  fill(source);
  for (std::uint32_t round = 0; round < 100; ++round) {
    const auto bytes = static_cast<std::uint32_t>(rng() % 8000);
    const std::uint64_t slot = target.address() + 16'384 * (round % 8);
    b->post_receive({{slot, 100, rkey}, {slot + 100, 16'000, rkey}});
    a->begin();
    if (bytes != 0) a->put_sge({source.address(), bytes, lkey});
    const bool immediate = round % 3 == 0;
    const auto block = a->finish(immediate ? wire::WqeOpcode::send_immediate : wire::WqeOpcode::send,
                                 wire::kWqeCompletionAlways | wire::kWqeSolicited, 0xabcd0000 + round);
    a->ring();
    const wire::Cqe received = complete(*b);
    ASSERT_EQ(received.opcode(),
              immediate ? wire::CqeOpcode::responder_send_immediate : wire::CqeOpcode::responder_send);
    ASSERT_EQ(received.byte_count.get(), bytes);
    EXPECT_EQ(received.wqe_counter.get(), round & 0xffff);
    EXPECT_EQ(received.op_own & wire::kCqeSolicited, wire::kCqeSolicited);
    if (immediate) {
      EXPECT_EQ(received.immediate_or_key.get(), 0xabcd0000 + round);
    }
    ASSERT_EQ(std::memcmp(target.data() + 16'384 * (round % 8), source.data(), bytes), 0);
    expect_success(*a, block);
  }
}

// Fault: a write with immediate that is reported before its payload is there, or without a receive.
TEST_P(Receives, WriteWithImmediateTakesOneReceiveAndReportsTheLength) {
  Buffer source(10'000), target(10'000);
  const std::uint32_t lkey = a->register_memory(source);
  const std::uint32_t rkey = b->register_memory(target);
  fill(source);
  for (std::uint32_t bytes : {0u, 8u, 1024u, 9'999u}) {
    a->begin();
    a->put_remote({target.address(), rkey});
    if (bytes != 0) a->put_sge({source.address(), bytes, lkey});
    const auto block = a->finish(wire::WqeOpcode::rdma_write_immediate, wire::kWqeCompletionAlways, 77);
    a->ring();
    for (int i = 0; i < 10; ++i) poll();
    wire::Cqe none;
    EXPECT_FALSE(b->poll_cq(none)) << "no receive is posted yet";
    b->post_receive({});
    const wire::Cqe received = complete(*b);
    ASSERT_EQ(received.opcode(), wire::CqeOpcode::responder_write_immediate);
    EXPECT_EQ(received.byte_count.get(), bytes);
    EXPECT_EQ(received.immediate_or_key.get(), 77u);
    EXPECT_EQ(std::memcmp(target.data(), source.data(), bytes), 0);
    expect_success(*a, block);
  }
}

// Fault: sends that wait for receives, with more behind them, use up their transport retries meanwhile.
TEST_P(Receives, APipelineWaitsForReceivesAsLongAsItTakes) {
  Buffer source(64), target(64 * 64);
  const std::uint32_t lkey = a->register_memory(source);
  const std::uint32_t rkey = b->register_memory(target);
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(a->send({source.address(), 32, lkey}));
  a->ring();
  for (int i = 0; i < 5000; ++i) poll();
  ASSERT_EQ(first->query_qp(a->qpn)->state, QpState::rts);
  for (std::uint64_t i = 0; i < 20; ++i) b->post_receive({{target.address() + 64 * i, 64, rkey}});
  for (std::uint64_t block : blocks) expect_success(*a, block);
}

INSTANTIATE_TEST_SUITE_P(Ways, Receives,
                         ::testing::Values(Way::direct, Way::packets, Way::two_nics, Way::faulty,
                                           Way::ethernet),
                         way_name);

}  // namespace
}  // namespace belfry::softnic::test
