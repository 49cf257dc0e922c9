#pragma once
/// \file
/// What WQEs do, once they are decoded: the checks of requester and responder, and the moves.

#include "softnic/cuda/completion.cuh"
#include "softnic/cuda/move.cuh"
#include "softnic/cuda/tables.cuh"
#include "softnic/firmware/control.hpp"
#include "softnic/firmware/vendor_syndromes.hpp"
#include "softnic/gpu/change_word.hpp"

namespace belfry::softnic::cuda {

/// Why a WQE fails: syndrome | vendor << 8; 0: it does not.
using FailureWord = std::uint32_t;

__device__ inline FailureWord failure(wire::Syndrome syndrome, std::uint8_t vendor) {
  return static_cast<std::uint32_t>(syndrome) | static_cast<std::uint32_t>(vendor) << 8;
}

inline constexpr std::uint32_t kLaneBytes = 64;  ///< up to so many a lane moves alone

/// Where one message comes from and goes to.
struct Move {
  FailureWord failure = 0;
  unsigned char* to = nullptr;
  const unsigned char* from = nullptr;  ///< null: inline
  Reach reach = Reach::gpu;             ///< who can see what it stores
  bool unordered = false;               ///< it may pass its neighbours
};

/// The responder's rights for an opcode.
__device__ inline std::uint32_t remote_right(wire::WqeOpcode opcode) {
  if (opcode == wire::WqeOpcode::rdma_read) return kAccessRemoteRead;
  return is_atomic(opcode) ? kAccessRemoteAtomic : kAccessRemoteWrite;
}

template <class Tables>
__device__ inline Move check_single(const Tables& tables, const GpuQueuePair& q, const SingleWqe& w) {
  Move move;
  if (w.opcode == wire::WqeOpcode::nop) return move;
  const bool answered = needs_response(w.opcode);
  if (w.bytes > q.max_message) {
    move.failure = failure(wire::Syndrome::local_length, kVendorLocalLength);
    return move;
  }
  if (answered && !q.reads) {
    move.failure = failure(wire::Syndrome::local_qp_operation, kVendorNoDepth);
    return move;
  }
  unsigned char* local = nullptr;
  bool local_near = true;
  if (!w.inlined && w.bytes != 0) {
    const auto found = tables.find(w.local_key, q.pd, w.local, w.bytes, answered ? kAccessLocalWrite : 0u);
    if (found.fault != KeyFault::none) {
      move.failure = failure(wire::Syndrome::local_protection, kVendorLocalProtection);
      return move;
    }
    local = found.memory;
    local_near = found.near;
  }
  const std::uint32_t right = remote_right(w.opcode);
  typename Tables::Found remote;
  if ((q.peer_access & right) == 0) {
    remote.fault = KeyFault::no_right;
  } else if (is_atomic(w.opcode) && w.remote % 8 != 0) {
    move.failure = failure(wire::Syndrome::remote_invalid_request, kVendorRemoteInvalid);
    return move;
  } else if (w.bytes != 0) {
    remote = tables.find(w.remote_key, q.peer_pd, w.remote, w.bytes, right);
  }
  if (remote.fault != KeyFault::none) {
    move.failure = failure(wire::Syndrome::remote_access, kVendorRemoteAccess);
    return move;
  }
  const bool reads = w.opcode == wire::WqeOpcode::rdma_read;
  move.to = reads ? local : remote.memory;
  move.from = reads ? remote.memory : local;
  move.reach = remote.near && local_near ? Reach::gpu : Reach::system;
  move.unordered = (remote.relaxed || q.unordered_writes) && w.opcode == wire::WqeOpcode::rdma_write &&
                   w.bytes <= kLaneBytes;
  return move;
}

/// By one lane. \pre check_single() found nothing wrong
__device__ inline void execute_small(const SingleWqe& w, const BlockWords& block, const Move& move) {
  if (w.bytes == 0) return;
  if (is_atomic(w.opcode)) {
    auto* word = reinterpret_cast<std::uint64_t*>(move.to);
    const std::uint64_t old = w.opcode == wire::WqeOpcode::atomic_fetch_add
                                  ? port::fetch_add<Scope::system>(word, w.swap_or_add)
                                  : port::compare_exchange<Scope::system>(word, w.compare, w.swap_or_add);
    auto* result = const_cast<unsigned char*>(move.from);
    if ((reinterpret_cast<std::uintptr_t>(result) & 7) == 0) {
      port::store<Scope::system>(reinterpret_cast<std::uint64_t*>(result), old);
    } else {
      for (int i = 0; i < 8; ++i) result[i] = static_cast<unsigned char>(old >> (8 * i));
    }
    return;
  }
  if (w.inlined) return store_inline(move.to, block, w.bytes);
  copy_small(move.to, move.from, w.bytes);
}

/// A general WQE's check: local pieces, then the peer's side. By all lanes alike.
template <class Tables>
__device__ inline Move check_general(const Tables& tables, const GpuQueuePair& q, const DecodedWqe& w) {
  Move move;
  if (w.error != wire::Syndrome::none) {
    move.failure = failure(w.error, w.vendor_error);
    return move;
  }
  if (w.total_bytes > q.max_message) {
    move.failure = failure(wire::Syndrome::local_length, kVendorLocalLength);
    return move;
  }
  const bool answered = needs_response(w.opcode);
  if (answered && !q.reads) {
    move.failure = failure(wire::Syndrome::local_qp_operation, kVendorNoDepth);
    return move;
  }
  for (std::uint32_t i = 0; i < w.piece_count; ++i) {
    const Piece& piece = w.pieces[i];
    if (piece.inline_data != nullptr) {
      if (answered) move.failure = failure(wire::Syndrome::local_qp_operation, kVendorBadSize);
      continue;
    }
    const auto found =
        tables.find(piece.key, q.pd, piece.address, piece.bytes, answered ? kAccessLocalWrite : 0u);
    if (found.fault != KeyFault::none)
      move.failure = failure(wire::Syndrome::local_protection, kVendorLocalProtection);
    if (!found.near) move.reach = Reach::system;
    if (move.failure != 0) return move;
  }
  if (w.opcode == wire::WqeOpcode::nop) return move;
  if (is_send(w.opcode) || (w.opcode == wire::WqeOpcode::rdma_write_immediate && q.peer_elsewhere)) {
    // Receives of queues in GPU memory take immediates only, and one engine counts them.
    move.failure = failure(wire::Syndrome::remote_invalid_request, kVendorRemoteInvalid);
    return move;
  }
  const std::uint32_t right = remote_right(w.opcode);
  if (is_atomic(w.opcode) && w.remote_address % w.atomic.bytes != 0) {
    move.failure = failure(wire::Syndrome::remote_invalid_request, kVendorRemoteInvalid);
    return move;
  }
  typename Tables::Found remote;
  if ((q.peer_access & right) == 0) {
    remote.fault = KeyFault::no_right;
  } else if (w.total_bytes != 0) {
    remote = tables.find(w.remote_key, q.peer_pd, w.remote_address, w.total_bytes, right);
  }
  if (remote.fault != KeyFault::none)
    move.failure = failure(wire::Syndrome::remote_access, kVendorRemoteAccess);
  if (!remote.near) move.reach = Reach::system;
  move.to = remote.memory;
  return move;
}

/// By all lanes of a warp. \pre check_general() found nothing wrong
template <class Tables>
__device__ inline void execute_general(const Tables& tables, const GpuQueuePair& q, const DecodedWqe& w,
                                       unsigned char* remote, std::uint32_t lane) {
  if (is_atomic(w.opcode)) {
    if (lane != 0) return;
    const std::uint64_t old = w.atomic.bytes == 4
                                  ? change_word(reinterpret_cast<std::uint32_t*>(remote), w.opcode, w.atomic)
                                  : change_word(reinterpret_cast<std::uint64_t*>(remote), w.opcode, w.atomic);
    std::uint32_t done = 0;
    for (std::uint32_t i = 0; i < w.piece_count; ++i) {
      unsigned char* to =
          tables.find(w.pieces[i].key, q.pd, w.pieces[i].address, w.pieces[i].bytes, 0).memory;
      for (std::uint32_t b = 0; b < w.pieces[i].bytes; ++b, ++done)
        to[b] = static_cast<unsigned char>(old >> (8 * done));
    }
    return;
  }
  const Movers movers{lane, port::kWarpSize};
  for (std::uint32_t i = 0; i < w.piece_count; ++i) {
    const Piece& piece = w.pieces[i];
    unsigned char* local = piece.inline_data != nullptr
                               ? const_cast<unsigned char*>(piece.inline_data)
                               : tables.find(piece.key, q.pd, piece.address, piece.bytes, 0).memory;
    const bool reads = w.opcode == wire::WqeOpcode::rdma_read;
    copy_bytes(reads ? local : remote, reads ? remote : local, piece.bytes, movers);
    remote += piece.bytes;
  }
}

}  // namespace belfry::softnic::cuda
