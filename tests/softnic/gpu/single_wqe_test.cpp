#include "softnic/cuda/single_wqe.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kQpn = 0x1234;

/// A block of random bytes, made likely to be a WQE.
BlockWords random_block(std::minstd_rand& random) {
  BlockWords block;
  for (std::uint64_t& word : block.word)
    word = std::uint64_t{random()} << 40 ^ std::uint64_t{random()} << 20 ^ random();
  constexpr wire::WqeOpcode kOpcodes[] = {
      wire::WqeOpcode::nop,
      wire::WqeOpcode::rdma_write,
      wire::WqeOpcode::rdma_write,
      wire::WqeOpcode::rdma_write_immediate,
      wire::WqeOpcode::rdma_read,
      wire::WqeOpcode::atomic_compare_swap,
      wire::WqeOpcode::atomic_fetch_add,
      wire::WqeOpcode::atomic_masked_fetch_add,
      wire::WqeOpcode::send,
      wire::WqeOpcode::umr,
  };
  const wire::WqeOpcode opcode = kOpcodes[random() % std::size(kOpcodes)];
  const std::uint32_t segments = static_cast<std::uint32_t>(random() % 8 == 0 ? random() % 64 : random() % 5);
  wire::ControlSegment control = wire::make_control(
      opcode, random(), kQpn, segments, random() % 2 == 0 ? wire::kWqeCompletionAlways : random() % 256);
  std::memcpy(&block, &control, sizeof control);
  const auto set_count = [&block](std::size_t word, std::uint32_t count) {
    const Be32 stored(count);
    std::memcpy(&block.word[word], &stored, sizeof stored);
  };
  const auto kind = random() % 4;
  if (kind == 0) set_count(4, wire::kInlineFlag | static_cast<std::uint32_t>(random() % 40));
  if (kind == 1) set_count(4, static_cast<std::uint32_t>(random() % 3 == 0 ? 0 : random() % 100000));
  if (kind == 2) set_count(6, static_cast<std::uint32_t>(random() % 2 == 0 ? 8 : random() % 16));
  return block;
}

// Fault: a WQE that the GPU engine's lanes take for something else than the decoder of the whole NIC does, or
// take although it is not to be executed.
TEST(SingleWqe, MeansWhatTheDecoderSays) {
  std::minstd_rand random(7);
  unsigned taken = 0;
  for (int i = 0; i < 400'000; ++i) {
    const BlockWords block = random_block(random);
    SingleWqe single;
    if (!decode_single(block, kQpn, single)) continue;
    ++taken;
    unsigned char image[sizeof block];
    std::memcpy(image, &block, sizeof image);
    DecodedWqe whole;
    decode_wqe(image, sizeof image, whole);
    ASSERT_EQ(whole.error, wire::Syndrome::none);
    ASSERT_EQ(whole.opcode, single.opcode);
    ASSERT_EQ(whole.blocks, 1u);
    ASSERT_EQ(whole.signalled(), single.signalled);
    ASSERT_EQ(whole.total_bytes, single.bytes);
    ASSERT_LE(whole.piece_count, 1u);
    if (single.opcode == wire::WqeOpcode::nop) continue;
    ASSERT_EQ(whole.remote_address, single.remote);
    ASSERT_EQ(whole.remote_key, single.remote_key);
    if (is_atomic(single.opcode)) {
      ASSERT_EQ(whole.atomic.swap_or_add, single.swap_or_add);
      ASSERT_EQ(whole.atomic.compare, single.compare);
    }
    if (whole.piece_count == 0) continue;
    ASSERT_EQ(whole.pieces[0].inline_data != nullptr, single.inlined);
    if (single.inlined) {
      ASSERT_EQ(whole.pieces[0].inline_data - image, SingleWqe::kInlineOffset);
    } else {
      ASSERT_EQ(whole.pieces[0].address, single.local);
      ASSERT_EQ(whole.pieces[0].key, single.local_key);
    }
  }
  EXPECT_GT(taken, 10'000u);
}

// Fault: the common WQEs of mini-gda left to the slow path.
TEST(SingleWqe, TakesTheCommonOnes) {
  struct {
    wire::ControlSegment control;
    wire::RemoteAddressSegment remote{};
    wire::DataSegment data{};
    wire::DataSegment rest{};
  } wqe;
  static_assert(sizeof wqe == sizeof(BlockWords));
  SingleWqe out;
  const auto takes = [&](std::uint32_t qpn) {
    BlockWords block;
    std::memcpy(&block, &wqe, sizeof block);
    return decode_single(block, qpn, out);
  };
  wqe.control = wire::make_control(wire::WqeOpcode::rdma_write, 1, kQpn, 3, 0);
  wqe.data.byte_count.set(wire::kInlineFlag | 8);
  EXPECT_TRUE(takes(kQpn) && out.inlined && out.bytes == 8);
  EXPECT_FALSE(takes(kQpn + 1)) << "another queue's";
  wqe.data.byte_count.set(4096);
  EXPECT_TRUE(takes(kQpn) && !out.inlined && out.bytes == 4096);
  wqe.control = wire::make_control(wire::WqeOpcode::rdma_read, 1, kQpn, 3, wire::kWqeCompletionAlways);
  EXPECT_TRUE(takes(kQpn) && out.signalled);
  wqe.control = wire::make_control(wire::WqeOpcode::atomic_fetch_add, 1, kQpn, 4, 0);
  wqe.rest.byte_count.set(8);
  EXPECT_TRUE(takes(kQpn));
}

}  // namespace
}  // namespace belfry::softnic
