#include "belfry/wire/infiniband.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace belfry::wire {
namespace {

// Guards: a signed distance on a 24-bit circle computed in 32 bits, which never wraps.
TEST(Psn, DistanceOnThe24BitCircle) {
  static_assert(psn_distance(0xffffff, 0) == 1);
  static_assert(psn_distance(0, 0xffffff) == -1);
  static_assert(psn_distance(5, 5) == 0);
  static_assert(psn_distance(0, 0x7fffff) == 0x7fffff);
  static_assert(psn_distance(0, 0x800000) == -0x800000);
  // Bits above the 24th are not part of a PSN.
  static_assert(psn_distance(0xff000001, 0x00000003) == 2);
}

// Guards: a wrong entry in the timer table. The specification's values in hundredths of a
// millisecond, code 0 apart: they are powers of two and the steps half way between.
TEST(RnrTimer, TableFollowsTheSpecification) {
  EXPECT_EQ(kRnrTimerMicroseconds[0], 655360u);
  EXPECT_EQ(kRnrTimerMicroseconds[1], 10u);
  for (unsigned code = 2; code < 32; ++code) {
    const std::uint32_t expected = (code % 2 == 0 ? 10u : 15u) << (code / 2);
    EXPECT_EQ(kRnrTimerMicroseconds[code], expected) << "code " << code;
  }
  // Three that people know by heart: the default of ibverbs programs (12), perftest's and the last.
  EXPECT_EQ(kRnrTimerMicroseconds[12], 640u);
  EXPECT_EQ(kRnrTimerMicroseconds[18], 5120u);
  EXPECT_EQ(kRnrTimerMicroseconds[31], 491520u);
}

template <std::size_t N, class T>
std::array<std::uint8_t, N> memory(const T& value) {
  static_assert(sizeof(T) == N);
  std::array<std::uint8_t, N> bytes{};
  std::memcpy(bytes.data(), &value, N);
  return bytes;
}

// Guards: fields of the base header exchanged, or in host order.
TEST(Bth, GoldenBytes) {
  Bth bth{};
  bth.opcode = BthOpcode::write_only_immediate;
  bth.flags = kBthSolicited | kBthMigration;
  bth.pkey.set(0xffff);
  bth.destination_qp.set(0x012345);
  bth.ack_psn.set(kBthAckRequest | 0x6789ab);
  EXPECT_EQ((memory<12>(bth)), (std::array<std::uint8_t, 12>{0x0b, 0xc0, 0xff, 0xff, 0x00, 0x01, 0x23, 0x45,
                                                             0x80, 0x67, 0x89, 0xab}));
}

// Guards: padding between a 4 B and an 8 B member.
TEST(AtomicEth, GoldenBytes) {
  AtomicEth eth{};
  eth.address.set(0x0102030405060708);
  eth.rkey.set(0x0a0b0c0d);
  eth.swap_or_add.set(0x1112131415161718);
  eth.compare.set(0x2122232425262728);
  EXPECT_EQ((memory<28>(eth)),
            (std::array<std::uint8_t, 28>{1,    2,    3,    4,    5,    6,    7,    8,    0x0a, 0x0b,
                                          0x0c, 0x0d, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                                          0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28}));
}

// Guards: an opcode of ours on a number that the specification has given away.
TEST(BthOpcode, PrivateOpcodesAreReservedOnes) {
  for (const BthOpcode opcode : {BthOpcode::masked_compare_swap, BthOpcode::masked_fetch_add}) {
    const auto number = static_cast<unsigned>(opcode);
    EXPECT_LT(number, 0x20u) << "the top three bits are the service type";
    EXPECT_GT(number, 0x1du) << "up to 0x1d all RC opcodes but 0x15 and 0x18 to 0x1b are taken";
  }
}

}  // namespace
}  // namespace belfry::wire
