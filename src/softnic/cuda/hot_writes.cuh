#pragma once
/// \file
/// Fetching, carrying out and completing the WRITEs of hot_write.hpp.

#include "softnic/cuda/lane_queue.cuh"
#include "softnic/cuda/move.cuh"
#include "softnic/cuda/tables.cuh"

namespace belfry::softnic::cuda {

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
