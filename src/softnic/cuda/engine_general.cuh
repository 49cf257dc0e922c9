#pragma once
/// \file
/// WQEs of several blocks or pieces, which go through the decoder of the CPU's NIC, and WQEs that fail.

#include "softnic/cuda/engine_warp.cuh"

namespace belfry::softnic::cuda {

template <bool constant>
__device__ void EngineWarp<constant>::push_error(const GpuQueuePair& q, Turn& t, wire::WqeOpcode opcode,
                                                 FailureWord why) {
  const std::uint64_t entry = take_entries(q.completions, t, 1);
  if (lane_ == 0) {
    Completion c = completion_of(q, t.next, opcode, 0);
    c.opcode = wire::CqeOpcode::requester_error;
    c.syndrome = static_cast<wire::Syndrome>(why & 0xff);
    c.vendor = static_cast<std::uint8_t>(why >> 8);
    push(q.completions, entry, c, t.stored);
  }
  t.stored = Reach::none;
  port::sync_warp(kFullWarp);
}

template <bool constant>
__device__ void EngineWarp<constant>::fail(const GpuQueuePair& q, Turn& t, std::uint32_t blocks,
                                           wire::WqeOpcode opcode, FailureWord why) {
  complete_pending(q, t);
  t.state = GpuQueueState::flushing;
  if (has_room(q, t, 1)) push_error(q, t, opcode, why);
  t.next += blocks;
  if (t.next > t.producer) t.next = t.producer;
  if (lane_ == 0) {
    port::store<Scope::system>(&p_.progress[shuffled_slot(t)].failed, why);
    call_host();
  }
}

template <bool constant>
__device__ void EngineWarp<constant>::flush(const GpuQueuePair& q, Turn& t) {
  complete_pending(q, t);
  while (t.next < t.producer) {
    const auto* at = reinterpret_cast<const std::uint64_t*>(block_at(q, t.next));
    const std::uint64_t head = port::load<Scope::system>(at);
    const std::uint32_t blocks = wire::wqe_blocks(detail::be_high(head) & wire::kMaxSegments);
    if (!has_room(q, t, 1)) {
      t.pause = clock_ns() + 1'000'000;
      return;
    }
    push_error(q, t, static_cast<wire::WqeOpcode>(detail::be_low(head) & 0xff),
               failure(wire::Syndrome::flushed, kVendorFlushed));
    t.next += blocks == 0 ? 1 : blocks;
    if (t.next > t.producer) t.next = t.producer;
  }
}

template <bool constant>
__device__ void EngineWarp<constant>::await_peer(const GpuQueuePair& q, Turn& t, const SingleWqe& w,
                                                 const BlockWords&) {
  const std::uint64_t now = clock_ns();
  std::uint64_t since = port::shuffle(kFullWarp, mine_.silent_since, t.owner);
  if (since == 0) since = now;
  if (q.retry_ns != ~0ull && now - since >= q.retry_ns) {
    const auto opcode = port::shuffle(kFullWarp, static_cast<std::uint32_t>(w.opcode), 0);
    return fail(q, t, 1, static_cast<wire::WqeOpcode>(opcode),
                failure(wire::Syndrome::transport_retry_exceeded, kVendorRetryExceeded));
  }
  if (lane_ == t.owner) mine_.silent_since = since;
  t.pause = now + 100'000;
}

template <bool constant>
__device__ const DecodedWqe& EngineWarp<constant>::fetch_general(const GpuQueuePair& q, const Turn& t) {
  Scratch& scratch = p_.scratch[warp_];
  const std::uint64_t head =
      port::load<Scope::system>(reinterpret_cast<const std::uint64_t*>(block_at(q, t.next)));
  const std::uint32_t wanted = (detail::be_high(head) & wire::kMaxSegments) * wire::kSegmentBytes;
  // Blocks that no doorbell has announced are not fetched, whatever the WQE says.
  const std::uint64_t announced = (t.producer - t.next) * wire::kBlockBytes;
  std::uint32_t available = wire::kBlockBytes;
  while (available < wanted && available < announced) available += wire::kBlockBytes;
  for (std::uint32_t at = lane_ * wire::kSegmentBytes; at < available;
       at += kWarpSize * wire::kSegmentBytes) {
    const unsigned char* from = block_at(q, t.next + at / wire::kBlockBytes) + at % wire::kBlockBytes;
    *reinterpret_cast<uint4*>(scratch.image + at) = __ldcv(reinterpret_cast<const uint4*>(from));
  }
  port::sync_warp(kFullWarp);
  if (lane_ == 0) {
    decode_wqe(scratch.image, available, scratch.wqe);
    if (scratch.wqe.error == wire::Syndrome::none && detail::be_high(head) >> 8 != q.number) {
      scratch.wqe.error = wire::Syndrome::local_qp_operation;
      scratch.wqe.vendor_error = kVendorWrongQueue;
    }
  }
  port::sync_warp(kFullWarp);
  return scratch.wqe;
}

template <bool constant>
__device__ void EngineWarp<constant>::one_general(const GpuQueuePair& q, Turn& t) {
  const DecodedWqe& w = fetch_general(q, t);
  SingleWqe head;
  head.opcode = w.opcode;
  const Move move = check_general(tables_, q, w);
  if (move.failure != 0) return fail(q, t, w.blocks, w.opcode, move.failure);
  if (!q.reachable && w.opcode != wire::WqeOpcode::nop) return await_peer(q, t, head, BlockWords{});
  const bool immediate = w.opcode == wire::WqeOpcode::rdma_write_immediate;
  if (immediate && !receive_posted(q, t, w)) return;
  if (w.total_bytes != 0) {
    release_fence(t.stored);
    execute_general(tables_, q, w, move.to, lane_);
    t.stored = move.reach;
    port::sync_warp(kFullWarp);
  }
  if (immediate) complete_receive(q, t, w);
  complete_one(q, t, w.blocks, w.opcode, w.signalled(), static_cast<std::uint32_t>(w.total_bytes));
}

template <bool constant>
__device__ bool EngineWarp<constant>::receive_posted(const GpuQueuePair& q, Turn& t, const DecodedWqe& w) {
  std::uint32_t posted = 0;
  if (lane_ == 0 && q.peer_receives) {
    const std::uint32_t index = swap_bytes(port::load_acquire<Scope::system>(q.peer_receive_record));
    posted = static_cast<std::uint16_t>(index - static_cast<std::uint32_t>(p_.receive_next[q.peer_slot]));
    if (posted > q.peer_receive_entries) posted = 0;
  }
  if (port::shuffle(kFullWarp, posted, 0) != 0) {
    if (lane_ == t.owner) mine_.rnr_tries = 0;
    return true;
  }
  const std::uint32_t tries = port::shuffle(kFullWarp, mine_.rnr_tries, t.owner);
  if (tries >= q.rnr_retries) {
    fail(q, t, w.blocks, w.opcode, failure(wire::Syndrome::rnr_retry_exceeded, kVendorRnrExceeded));
    return false;
  }
  if (lane_ == t.owner && q.rnr_retries != ~0u) mine_.rnr_tries = tries + 1;
  t.pause = clock_ns() + q.rnr_ns;
  return false;
}

template <bool constant>
__device__ void EngineWarp<constant>::complete_receive(const GpuQueuePair& q, Turn& t, const DecodedWqe& w) {
  if (lane_ == 0) {
    const std::uint64_t receive = p_.receive_next[q.peer_slot]++;
    Completion c;
    c.opcode = wire::CqeOpcode::responder_write_immediate;
    c.counter = static_cast<std::uint16_t>(receive);
    c.qpn = q.peer_number;
    c.user_index = q.peer_user_index;
    c.remote_qpn = q.number;
    c.slid = static_cast<std::uint16_t>(q.slid);
    c.bytes = static_cast<std::uint32_t>(w.total_bytes);
    c.immediate = w.immediate;
    c.solicited = (w.flags & wire::kWqeSolicited) != 0;
    const std::uint64_t entry =
        port::fetch_add<Scope::gpu>(&p_.cq_producers[q.peer_completions.slot], std::uint64_t{1});
    push(q.peer_completions, entry, c, t.stored);
  }
  t.stored = Reach::none;
  port::sync_warp(kFullWarp);
}

}  // namespace belfry::softnic::cuda
