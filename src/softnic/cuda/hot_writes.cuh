#pragma once
/// \file
/// Fetching, carrying out and completing the WRITEs of hot_write.hpp.

#include "softnic/cuda/lane_queue.cuh"
#include "softnic/cuda/move.cuh"
#include "softnic/cuda/tables.cuh"

namespace belfry::softnic::cuda {

__device__ inline const unsigned char* block_of_ring(const unsigned char* blocks, std::uint32_t mask,
                                                     std::uint64_t index) {
  return blocks + (static_cast<std::uint32_t>(index) & mask) * std::uint64_t{wire::kBlockBytes};
}

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

/// A block that is under way is not touched before this. A copy, which waits for it, would else be made as
/// soon as it can be.
__device__ inline void arrive_here(BlockWords& block) {
#pragma unroll
  for (int i = 0; i < 6; ++i) asm volatile("" : "+l"(block.word[i])::"memory");
}

__device__ inline void store_hot(const HotWrite& w) {
  const auto address = reinterpret_cast<std::uintptr_t>(w.to);
  if ((w.bytes == 8) & ((address & 7) == 0)) {
    port::store<Scope::system>(reinterpret_cast<std::uint64_t*>(w.to), w.payload);
    return;
  }
  if ((w.bytes == 4) & ((address & 3) == 0)) {
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

/// How far the stores of a hot WRITE and of its completion reach.
__device__ inline Reach reach_of(const HotWrites& hot) { return hot.far ? Reach::system : Reach::gpu; }

/// The completion of the WQE at `index`, as the `entry`th of its CQ.
__device__ inline CqeWords words_of_hot(const HotWrites& hot, std::uint64_t index, std::uint64_t entry) {
  Completion c;
  c.wqe_opcode = static_cast<std::uint8_t>(wire::WqeOpcode::rdma_write);
  c.counter = static_cast<std::uint16_t>(index);
  c.qpn = swap_bytes(hot.qpn_segments) >> 8;
  c.user_index = hot.user_index;
  const wire::Cqe cqe = build_cqe(c, (entry >> hot.log_entries & 1) != 0);
  CqeWords words;
  memcpy(&words, &cqe, sizeof words);
  return words;
}

/// Everything that the entry stands for, by lanes that have met since, comes before its last word.
/// \param stored how far that reaches, and the entry
/// \param body_stored the entry's other words are there: all hot WRITEs of a queue have the same
__device__ inline void push_hot(const HotWrites& hot, const CqeWords& words, Reach stored, bool body_stored) {
  if (!body_stored) store_body(hot.entry, words);
  release_fence(stored);
  store_tail(hot.entry, words);
}

}  // namespace belfry::softnic::cuda
