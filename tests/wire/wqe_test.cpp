#include "belfry/wire/wqe.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace belfry::wire {
namespace {

template <std::size_t N, class T>
std::array<std::uint8_t, N> memory(const T& value) {
  static_assert(sizeof(T) == N);
  std::array<std::uint8_t, N> bytes{};
  std::memcpy(bytes.data(), &value, N);
  return bytes;
}

// Guards: the control segment's fields in the wrong place or order.
TEST(ControlSegment, GoldenBytesOfASignalledWrite) {
  const ControlSegment control =
      make_control(WqeOpcode::rdma_write, 0x0102, 0xabcdef, 3, kWqeCompletionAlways);
  EXPECT_EQ((memory<16>(control)),
            (std::array<std::uint8_t, 16>{0x00, 0x01, 0x02, 0x08, 0xab, 0xcd, 0xef, 0x03, 0x00, 0x00, 0x00,
                                          0x08, 0x00, 0x00, 0x00, 0x00}));
  EXPECT_EQ(control.opcode(), WqeOpcode::rdma_write);
  EXPECT_EQ(control.index(), 0x0102);
  EXPECT_EQ(control.qpn(), 0xabcdefu);
  EXPECT_EQ(control.segments(), 3u);
  EXPECT_TRUE(control.signalled());
}

// Guards: a 64-bit index spilling into the opcode modifier.
TEST(ControlSegment, OnlySixteenBitsOfTheIndexMeetTheWire) {
  const ControlSegment control = make_control(WqeOpcode::send, 0xffffffffffff1234, 1, 2, 0);
  EXPECT_EQ(control.index(), 0x1234);
  EXPECT_EQ(control.opmod(), 0);
  EXPECT_FALSE(control.signalled());
}

// Guards: a segment count of more than six bits changing the QPN.
TEST(ControlSegment, SegmentCountStaysInItsBits) {
  const ControlSegment control = make_control(WqeOpcode::send, 0, 0x10, 0x1ff, 0);
  EXPECT_EQ(control.qpn(), 0x10u);
  EXPECT_EQ(control.segments(), kMaxSegments);
}

// Guards: immediate data swapped once too often.
TEST(ControlSegment, ImmediateIsStoredAsGiven) {
  const auto control = make_control(WqeOpcode::send_immediate, 0, 1, 2, kWqeSolicited,
                                    Be32::from_raw(0x04030201), kOpmodMaskedAtomic4);
  const auto bytes = memory<16>(control);
  EXPECT_EQ(bytes[0], 0x08);
  EXPECT_EQ(bytes[11], 0x02);
  EXPECT_EQ(bytes[12], 0x01);
  EXPECT_EQ(bytes[15], 0x04);
}

// Guards: address, rkey and lkey exchanged in the pointer segments.
TEST(Segments, GoldenBytesOfRemoteAndData) {
  RemoteAddressSegment remote{};
  remote.address.set(0x1122334455667788);
  remote.rkey.set(0xa1a2a3a4);
  EXPECT_EQ((memory<16>(remote)), (std::array<std::uint8_t, 16>{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                                                0x88, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0, 0}));
  DataSegment data{};
  data.byte_count.set(0x1000);
  data.lkey.set(0xb1b2b3b4);
  data.address.set(0x99aabbccddeeff00);
  EXPECT_EQ((memory<16>(data)), (std::array<std::uint8_t, 16>{0, 0, 0x10, 0, 0xb1, 0xb2, 0xb3, 0xb4, 0x99,
                                                              0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00}));
}

// Guards: the header of inline data not counted, or counted twice, at a segment's edge.
TEST(Segments, InlineDataCountsItsHeader) {
  static_assert(inline_segments(0) == 1);
  static_assert(inline_segments(12) == 1);
  static_assert(inline_segments(13) == 2);
  static_assert(inline_segments(28) == 2);
  static_assert(inline_segments(29) == 3);
}

// Guards: a WQE of exactly one block counted as two, which would run the ring's index away.
TEST(Segments, BlocksRoundUp) {
  static_assert(wqe_blocks(1) == 1 && wqe_blocks(4) == 1);
  static_assert(wqe_blocks(5) == 2 && wqe_blocks(8) == 2);
  static_assert(wqe_blocks(kMaxSegments) == 16);
}

// Guards: the compact address vector's destination, on which the length of the vector hangs.
TEST(AddressVector, GoldenBytesOfTheCompactForm) {
  AddressVectorCompact av{};
  av.dc_key_or_qkey.set(0x1122334455667788);
  av.destination_qp.set(kAddressVectorExtended | 0x00abcdef);
  av.stat_rate_sl = 0x53;
  av.fl_mlid = 0x81;
  av.rlid_or_udp_port.set(0xc001);
  EXPECT_EQ((memory<16>(av)), (std::array<std::uint8_t, 16>{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
                                                            0x80, 0xab, 0xcd, 0xef, 0x53, 0x81, 0xc0, 0x01}));
}

}  // namespace
}  // namespace belfry::wire
