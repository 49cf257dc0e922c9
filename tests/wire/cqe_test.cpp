#include "belfry/wire/cqe.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace belfry::wire {
namespace {

// Guards: adding a 16-bit counter to a 64-bit consumer across the 16-bit edge.
TEST(AdvanceConsumer, CrossesThe16BitEdge) {
  static_assert(advance_consumer(65530, 4) == 65541);
  static_assert(advance_consumer(0, 0xffff) == 0);
  static_assert(advance_consumer(65536, 0xffff) == 65536);
}

// Guards: an old CQE, read a second time, moving the consumer back or a lap ahead.
TEST(AdvanceConsumer, IgnoresACqeThatIsBehind) {
  EXPECT_EQ(advance_consumer(1000, 998), 1000u);
  EXPECT_EQ(advance_consumer(1000, 999), 1000u);
  EXPECT_EQ(advance_consumer((std::uint64_t{7} << 16) + 2, 0xfff0), (std::uint64_t{7} << 16) + 2);
}

// Guards: the deepest queue, whose last block is exactly half the circle away.
TEST(AdvanceConsumer, DeepestQueue) {
  for (std::uint64_t consumer : {std::uint64_t{0}, std::uint64_t{65535}, (std::uint64_t{1} << 40) - 1}) {
    const auto last = static_cast<std::uint16_t>(consumer + 32767);
    EXPECT_EQ(advance_consumer(consumer, last), consumer + 32768);
  }
}

// Guards: a ring of zeroes, whose entries read as requester completions of the first lap.
TEST(Cqe, FreshRingHasNoReadyEntry) {
  constexpr std::uint32_t log = 3;
  std::vector<Cqe> ring(1u << log);
  std::memset(ring.data(), 0, ring.size() * sizeof(Cqe));
  for (Cqe& cqe : ring) cqe.op_own = kCqeNeverWritten;
  for (std::uint64_t consumer = 0; consumer < 4 * ring.size(); ++consumer) {
    const Cqe& cqe = ring[consumer % ring.size()];
    EXPECT_FALSE(cqe_ready(cqe.op_own, consumer, log)) << consumer;
  }
  EXPECT_EQ(ring[0].opcode(), CqeOpcode::invalid);
  EXPECT_EQ(kCqeNeverWritten >> 4, 15);
}

// Guards: an entry of the lap before being taken for a new one, in either parity.
TEST(Cqe, OwnerBitFlipsEachLap) {
  constexpr std::uint32_t log = 2;
  const std::uint8_t even = make_op_own(CqeOpcode::requester, false, false);
  const std::uint8_t odd = make_op_own(CqeOpcode::requester, false, true);
  EXPECT_TRUE(cqe_ready(even, 3, log));
  EXPECT_FALSE(cqe_ready(even, 4, log));
  EXPECT_TRUE(cqe_ready(odd, 4, log));
  EXPECT_FALSE(cqe_ready(odd, 8, log));
  EXPECT_TRUE(cqe_ready(even, 8, log));
}

// Guards: the four parts of op_own overlapping.
TEST(Cqe, OpOwnParts) {
  static_assert(make_op_own(CqeOpcode::requester_error, true, false) == 0xd2);
  static_assert(make_op_own(CqeOpcode::responder_send, false, true) == 0x21);
  EXPECT_EQ(cqe_format(0x0c), CqeFormat::compressed);
  EXPECT_EQ(cqe_format(0x04), CqeFormat::inline_32);
  EXPECT_EQ(cqe_format(0xf3), CqeFormat::plain);
}

// Guards: a field of the error form that moved: bytes of a dump from the field, worked out by hand.
TEST(ErrorCqe, GoldenBytes) {
  const std::uint8_t tail[12] = {0x93, 0x00, 0x52, 0x04, 0x0a, 0x00, 0x19, 0xa1, 0xc0, 0x92, 0x1c, 0xd2};
  std::uint8_t bytes[64] = {};
  std::memcpy(bytes + 52, tail, sizeof tail);
  ErrorCqe cqe;
  std::memcpy(&cqe, bytes, sizeof cqe);
  EXPECT_EQ(cqe.opcode(), CqeOpcode::requester_error);
  EXPECT_FALSE(cqe.owner());
  EXPECT_EQ(cqe.opcode_qpn.get(), 0x0a0019a1u);
  EXPECT_EQ(cqe.wqe_counter.get(), 49298);
  EXPECT_EQ(cqe.syndrome, 0x04);
  EXPECT_EQ(cqe.vendor_syndrome, 0x52);
  EXPECT_EQ(cqe.hardware_syndrome, 0x93);
  EXPECT_EQ(cqe.signature, 0x1c);
}

}  // namespace
}  // namespace belfry::wire
