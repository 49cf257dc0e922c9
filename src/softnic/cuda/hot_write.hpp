#pragma once
/// \file
/// The shortest way through the NIC: what it lets pass means the same to decode_single() and check_entry().

#include <cstdint>

#include "belfry/wire/wqe.hpp"
#include "softnic/cuda/single_wqe.hpp"
#include "softnic/firmware/keys.hpp"

namespace belfry::softnic {

/// What the commonest WQE needs: a WRITE of a few inline bytes, to memory of the key that the queue wrote to
/// last, completed in a collapsed CQ of the queue's own. Whatever is not plainly that goes the long way.
struct HotWrites {
  const unsigned char* blocks = nullptr;
  unsigned char* entry = nullptr;   ///< of the CQ
  unsigned char* memory = nullptr;  ///< null: no key is known to be good
  std::uint64_t address = 0;        ///< the key's first
  std::uint64_t last_offset = 0;    ///< at which kMostBytes still lie inside
  std::uint32_t block_mask = 0;
  std::uint32_t qpn_segments = 0;  ///< the control segment's second word, as it is stored
  std::uint32_t raw_key = 0;       ///< as it is stored, the reserved word behind it being 0
  std::uint32_t user_index = 0;
  std::uint32_t log_entries = 0;
  bool unordered = false;
  bool far_entry = false;  ///< the CQ lies outside the engine's GPU
  bool far = false;        ///< it does, or the key's memory

  static constexpr std::uint32_t kSegments = 3;    ///< control, remote address, inline data
  static constexpr std::uint32_t kMostBytes = 12;  ///< that one inline segment holds
};

/// A hot WRITE, decoded and checked.
struct HotWrite {
  unsigned char* to = nullptr;
  std::uint64_t payload = 0;       ///< bytes 0 to 7
  std::uint32_t payload_rest = 0;  ///< bytes 8 to 11
  std::uint32_t bytes = 0;
  bool signalled = false;
};

/// Has a queue's WRITEs to the memory of `key`, which one of them was granted, go the short way from here on.
BELFRY_FN inline void heat(HotWrites& hot, const MkeyEntry& key, bool unordered) {
  if (key.length < HotWrites::kMostBytes) return;
  hot.memory = key.memory;
  hot.address = key.address;
  hot.last_offset = key.length - HotWrites::kMostBytes;
  hot.raw_key = Be32(key.key).raw();
  hot.unordered = unordered;
  hot.far = hot.far_entry || !key.near;
}

/// \return false where the block is anything else than a hot WRITE
BELFRY_FN inline bool take_hot(const HotWrites& hot, const BlockWords& block, HotWrite& out) {
  const auto opcode = static_cast<std::uint32_t>(block.word[0]) >> 24;
  const auto qpn_segments = static_cast<std::uint32_t>(block.word[0] >> 32);
  const std::uint32_t count = swap_bytes(static_cast<std::uint32_t>(block.word[4]));
  const std::uint64_t offset = swap_bytes(block.word[2]) - hot.address;
  const auto flags = static_cast<std::uint32_t>(block.word[1] >> 24) & wire::kWqeCompletionAlways;
  out.to = hot.memory + offset;
  out.payload = block.word[4] >> 32 | block.word[5] << 32;
  out.payload_rest = static_cast<std::uint32_t>(block.word[5] >> 32);
  out.bytes = count & ~wire::kInlineFlag;
  out.signalled = flags != 0;
  // One test of all: a branch each would cost more than they do. It asks for the immediate and the reserved
  // word, too, which mean nothing in a WRITE: words of which a half is dead are taken apart as soon as they
  // can be, and whoever does waits for the block.
  return (opcode == static_cast<std::uint32_t>(wire::WqeOpcode::rdma_write)) &
         (qpn_segments == hot.qpn_segments) & (block.word[1] >> 32 == 0) & (block.word[3] == hot.raw_key) &
         (hot.memory != nullptr) & (count > wire::kInlineFlag) &
         (count <= (wire::kInlineFlag | HotWrites::kMostBytes)) & (offset <= hot.last_offset);
}

}  // namespace belfry::softnic
