#pragma once
/// \file
/// The shortest way through the NIC, for the WRITEs that lane_queue.cuh describes. What it lets pass means
/// the same to decode_wqe() and check_entry().

#include "softnic/cuda/lane_queue.cuh"
#include "softnic/cuda/move.cuh"
#include "softnic/cuda/tables.cuh"

namespace belfry::softnic::cuda {

/// A hot WRITE, decoded and checked.
struct HotWrite {
  unsigned char* to = nullptr;
  std::uint64_t payload = 0;       ///< bytes 0 to 7
  std::uint32_t payload_rest = 0;  ///< bytes 8 to 11
  std::uint32_t bytes = 0;
  bool signalled = false;
};

__device__ inline BlockWords fetch_block(const unsigned char* block) {
  const auto* at = reinterpret_cast<const ulonglong2*>(block);
  BlockWords words;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const ulonglong2 two = __ldcv(at + i);
    words.word[2 * i] = two.x;
    words.word[2 * i + 1] = two.y;
  }
  return words;
}

/// \return false where the block is anything else than a hot WRITE
__device__ inline bool take_hot(const HotWrites& hot, const BlockWords& block, HotWrite& out) {
  const auto opcode = static_cast<std::uint32_t>(block.word[0]) >> 24;
  const auto qpn_segments = static_cast<std::uint32_t>(block.word[0] >> 32);
  const auto raw_key = static_cast<std::uint32_t>(block.word[3]);
  const std::uint32_t count = swap_bytes(static_cast<std::uint32_t>(block.word[4]));
  const std::uint64_t offset = swap_bytes(block.word[2]) - hot.address;
  const auto flags = static_cast<std::uint32_t>(block.word[1] >> 24) & wire::kWqeCompletionAlways;
  out.to = hot.memory + offset;
  out.payload = block.word[4] >> 32 | block.word[5] << 32;
  out.payload_rest = static_cast<std::uint32_t>(block.word[5] >> 32);
  out.bytes = count & ~wire::kInlineFlag;
  out.signalled = flags != 0;
  // One test of all: a branch each would cost more than they do.
  return (opcode == static_cast<std::uint32_t>(wire::WqeOpcode::rdma_write)) &
         (qpn_segments == hot.qpn_segments) & (raw_key == hot.raw_key) & (hot.memory != nullptr) &
         (count > wire::kInlineFlag) & (count <= (wire::kInlineFlag | HotWrites::kMostBytes)) &
         (offset <= hot.last_offset);
}

__device__ inline void store_hot(const HotWrite& w) {
  const auto address = reinterpret_cast<std::uintptr_t>(w.to);
  if (w.bytes == 8 && (address & 7) == 0) {
    port::store<Scope::system>(reinterpret_cast<std::uint64_t*>(w.to), w.payload);
    return;
  }
  if (w.bytes == 4 && (address & 3) == 0) {
    port::store<Scope::system>(reinterpret_cast<std::uint32_t*>(w.to), static_cast<std::uint32_t>(w.payload));
    return;
  }
  std::uint64_t rest = w.payload;
  for (std::uint32_t i = 0; i < w.bytes; ++i) {
    if (i == 8) rest = w.payload_rest;
    w.to[i] = static_cast<unsigned char>(rest);
    rest >>= 8;
  }
}

/// The completion of the WQE at `index`, as the `entry`th of its CQ; everything that it stands for, by lanes
/// that have met since, comes first.
__device__ inline void push_hot(const HotWrites& hot, std::uint64_t index, std::uint64_t entry) {
  wire::Cqe cqe{};
  cqe.srqn_user_index.set(hot.user_index & 0xffffff);
  constexpr auto kOpcode = static_cast<std::uint32_t>(wire::WqeOpcode::rdma_write) << 24;
  cqe.opcode_qpn.set(kOpcode | swap_bytes(hot.qpn_segments) >> 8);
  cqe.wqe_counter.set(static_cast<std::uint16_t>(index));
  cqe.op_own = wire::make_op_own(wire::CqeOpcode::requester, false, (entry >> hot.log_entries & 1) != 0);
  CqeWords words;
  memcpy(&words, &cqe, sizeof words);
  store_body(hot.entry, words);
  release_fence(Reach::gpu);
  store_tail(hot.entry, words);
}

}  // namespace belfry::softnic::cuda
