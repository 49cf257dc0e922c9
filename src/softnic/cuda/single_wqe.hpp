#pragma once
/// \file
/// The commonest WQEs, of one block and one stretch of payload, decoded from registers: a lane takes one at
/// a time. Whatever is not plainly one of them is left to decode_wqe(), which knows what to say about it;
/// what is taken here means the same there.

#include <cstdint>

#include "belfry/port/byte_order.hpp"
#include "softnic/firmware/wqe_decode.hpp"

namespace belfry::softnic {

/// A block of a send queue as eight words, first to last.
struct BlockWords {
  std::uint64_t word[8];
};

struct SingleWqe {
  wire::WqeOpcode opcode = wire::WqeOpcode::nop;
  bool signalled = false;
  bool inlined = false;  ///< the payload is in the block, from kInlineOffset on
  std::uint32_t bytes = 0;
  std::uint32_t local_key = 0;
  std::uint32_t remote_key = 0;
  std::uint64_t local = 0;
  std::uint64_t remote = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;

  static constexpr std::uint32_t kInlineOffset = 36;  ///< in the block
};

namespace detail {

BELFRY_FN inline std::uint32_t be_low(std::uint64_t word) {
  return swap_bytes(static_cast<std::uint32_t>(word));
}
BELFRY_FN inline std::uint32_t be_high(std::uint64_t word) {
  return swap_bytes(static_cast<std::uint32_t>(word >> 32));
}

}  // namespace detail

/// \return false where it is none of those: `out` means nothing then
BELFRY_FN inline bool decode_single(const BlockWords& block, std::uint32_t qpn, SingleWqe& out) {
  using detail::be_high;
  using detail::be_low;
  const std::uint32_t head = be_low(block.word[0]);
  const std::uint32_t queue = be_high(block.word[0]);
  const std::uint32_t segments = queue & wire::kMaxSegments;
  if (queue >> 8 != qpn || segments == 0 || segments > wire::kSegmentsPerBlock) return false;
  out.opcode = static_cast<wire::WqeOpcode>(head & 0xff);
  const auto flags = static_cast<std::uint8_t>(block.word[1] >> 24);
  out.signalled = (flags & wire::kWqeCompletionAlways) != 0;
  out.bytes = 0;
  out.inlined = false;
  if (out.opcode == wire::WqeOpcode::nop) return true;
  out.remote = swap_bytes(block.word[2]);
  out.remote_key = be_low(block.word[3]);
  if (out.opcode == wire::WqeOpcode::rdma_write || out.opcode == wire::WqeOpcode::rdma_read) {
    if (segments < 2) return false;
    if (segments == 2) return true;
    const std::uint32_t count = be_low(block.word[4]);
    if ((count & wire::kInlineFlag) != 0) {
      out.inlined = true;
      out.bytes = count & ~wire::kInlineFlag;
      return out.opcode == wire::WqeOpcode::rdma_write && wire::inline_segments(out.bytes) == segments - 2;
    }
    out.bytes = count;
    out.local_key = be_high(block.word[4]);
    out.local = swap_bytes(block.word[5]);
    return segments == 3 && count != 0;
  }
  if (out.opcode != wire::WqeOpcode::atomic_fetch_add && out.opcode != wire::WqeOpcode::atomic_compare_swap)
    return false;
  out.swap_or_add = swap_bytes(block.word[4]);
  out.compare = swap_bytes(block.word[5]);
  out.bytes = be_low(block.word[6]);
  out.local_key = be_high(block.word[6]);
  out.local = swap_bytes(block.word[7]);
  return segments == 4 && out.bytes == 8;
}

}  // namespace belfry::softnic
