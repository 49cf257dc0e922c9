#include "belfry/wire/doorbell.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "belfry/wire/wqe.hpp"

namespace belfry::wire {
namespace {

template <std::size_t N, class T>
std::array<std::uint8_t, N> memory(const T& value) {
  static_assert(sizeof(T) == N);
  std::array<std::uint8_t, N> bytes{};
  std::memcpy(bytes.data(), &value, N);
  return bytes;
}

// Guards: the send index in the receive word, in host order, or with more than 16 bits.
TEST(DoorbellRecord, SendIndexIsInWordOne) {
  QpDoorbellRecord record{};
  record.send = record_word(0x123456789abcull);
  EXPECT_EQ((memory<8>(record)), (std::array<std::uint8_t, 8>{0, 0, 0, 0, 0, 0, 0x9a, 0xbc}));
  record.receive = record_word(0x10001);
  EXPECT_EQ((memory<8>(record)), (std::array<std::uint8_t, 8>{0, 0, 0, 1, 0, 0, 0x9a, 0xbc}));
}

// Guards: halves of the doorbell exchanged: the register holds the control segment's first 8 bytes.
TEST(Doorbell, IsTheFirstEightBytesOfTheControlSegment) {
  const ControlSegment control =
      make_control(WqeOpcode::rdma_write, 0xfedc, 0x123456, 3, kWqeCompletionAlways);
  const std::uint64_t stored = send_doorbell(control.opmod_index_opcode, control.qpn_ds);
  EXPECT_EQ(std::memcmp(&stored, &control, sizeof stored), 0);
  EXPECT_EQ(doorbell_index(stored), 0xfedc);
  EXPECT_EQ(doorbell_qpn(stored), 0x123456u);
}

// Guards: opmod or segment count leaking into the index or the QPN.
TEST(Doorbell, IndexAndQpnAloneAreRead) {
  const ControlSegment control =
      make_control(WqeOpcode::atomic_masked_fetch_add, 1, 2, kMaxSegments, 0, Be32(0), kOpmodMaskedAtomic8);
  const std::uint64_t stored = send_doorbell(control.opmod_index_opcode, control.qpn_ds);
  EXPECT_EQ(doorbell_index(stored), 1);
  EXPECT_EQ(doorbell_qpn(stored), 2u);
}

// Guards: sequence, command and consumer overlapping in the arm word.
TEST(CqArm, GoldenBytes) {
  const std::uint32_t word = cq_arm_word(5, kCqArmSolicited, 0xff123456);
  EXPECT_EQ(word, 0x11123456u);
  const std::uint64_t stored = cq_arm_doorbell(word, 0xabcd);
  EXPECT_EQ((memory<8>(stored)), (std::array<std::uint8_t, 8>{0x11, 0x12, 0x34, 0x56, 0, 0, 0xab, 0xcd}));
  EXPECT_NE(cq_arm_word(3, kCqArmSolicited, 0xffffff), kCqNeverArmed);
}

}  // namespace
}  // namespace belfry::wire
