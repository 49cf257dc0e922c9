#pragma once
/// \file
/// A queue's service: the WQEs of one block, and their completions.

#include "softnic/cuda/engine_warp.cuh"

namespace belfry::softnic::cuda {

template <bool constant>
__device__ void EngineWarp<constant>::serve(std::uint32_t owner) {
  const std::uint64_t pause = port::shuffle(kFullWarp, mine_.pause, owner);
  if (pause != 0 && clock_ns() < pause) return;
  const std::uint32_t slot = port::shuffle(kFullWarp, mine_.slot, owner);
  const GpuQueuePair& q = tables_.queue(slot);
  Turn t;
  t.owner = owner;
  t.next = port::shuffle(kFullWarp, mine_.next, owner);
  t.producer = port::shuffle(kFullWarp, mine_.producer, owner);
  t.completions = port::shuffle(kFullWarp, mine_.completions, owner);
  t.state =
      static_cast<GpuQueueState>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(mine_.state), owner));
  t.pause = 0;
  t.stored = static_cast<Reach>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(mine_.stored), owner));
  for (std::uint32_t round = 0; round < kRounds && t.next < t.producer && t.pause == 0; ++round) {
    if (t.state == GpuQueueState::flushing) {
      flush(q, t);
      break;
    }
    one_round(q, t);
  }
  complete_pending(q, t);
  if (lane_ == owner) {
    mine_.next = t.next;
    mine_.completions = t.completions;
    mine_.state = t.state;
    mine_.body_stored = false;
    if (t.state != GpuQueueState::active) mine_.hot.memory = nullptr;
    mine_.pause = t.pause;
    mine_.stored = t.stored;
  }
}

template <bool constant>
__device__ const unsigned char* EngineWarp<constant>::block_at(const GpuQueuePair& q,
                                                               std::uint64_t index) const {
  return block_of_ring(q.blocks, q.block_mask, index);
}

template <bool constant>
__device__ void EngineWarp<constant>::one_round(const GpuQueuePair& q, Turn& t) {
  const std::uint64_t left = t.producer - t.next;
  const auto fetched = static_cast<std::uint32_t>(left < kWarpSize ? left : kWarpSize);
  BlockWords block{};
  SingleWqe w;
  bool single = false;
  if (lane_ < fetched) {
    block = fetch_block(block_at(q, t.next + lane_));
    single = decode_single(block, q.number, w);
  }
  const std::uint32_t others = ~port::ballot(kFullWarp, single);
  const std::uint32_t run = others == 0 ? kWarpSize : port::first_lane(others);
  if (run == 0) return one_general(q, t);
  if (!q.reachable) return await_peer(q, t, w, block);
  Move move;
  if (lane_ < run) move = check_single(tables_, q, w);
  const std::uint32_t failed = port::ballot(kFullWarp, lane_ < run && move.failure != 0);
  const std::uint32_t good = failed != 0 ? port::first_lane(failed) : run;
  if (good != 0) heat(q, t.owner, w, move);
  execute(t, w, block, move, good);
  complete(q, t, w, good);
  t.next += good;
  if (failed == 0) return;
  const FailureWord why = port::shuffle(kFullWarp, move.failure, good);
  const auto opcode = port::shuffle(kFullWarp, static_cast<std::uint32_t>(w.opcode), good);
  fail(q, t, 1, static_cast<wire::WqeOpcode>(opcode), why);
}

template <bool constant>
__device__ void EngineWarp<constant>::heat(const GpuQueuePair& q, std::uint32_t owner, const SingleWqe& w,
                                           const Move& move) {
  const bool hot = w.inlined && w.bytes != 0 && move.failure == 0;
  if (port::shuffle(kFullWarp, hot ? 1u : 0u, 0) == 0) return;
  const std::uint32_t key = port::shuffle(kFullWarp, w.remote_key, 0);
  if (lane_ != owner || mine_.hot.blocks == nullptr) return;
  const MkeyEntry& entry = tables_.key(key >> 8);
  softnic::heat(mine_.hot, entry, q.unordered_writes || (entry.access & kAccessRelaxedOrdering) != 0);
}

template <bool constant>
__device__ void EngineWarp<constant>::execute(Turn& t, const SingleWqe& w, const BlockWords& block,
                                              const Move& move, std::uint32_t count) {
  const bool in_count = lane_ < count;
  const bool small = w.bytes <= kLaneBytes;
  const std::uint32_t far = port::ballot(kFullWarp, in_count && w.bytes != 0 && move.reach == Reach::system);
  const Reach reach = far != 0 ? Reach::system : Reach::gpu;
  if (count == 0) return;
  if (port::ballot(kFullWarp, in_count && !move.unordered) == 0) {
    release_fence(t.stored);
    if (in_count) execute_small(w, block, move);
    t.stored = wider(t.stored, reach);
    port::sync_warp(kFullWarp);
    return;
  }
  const std::uint32_t moving = port::ballot(kFullWarp, in_count && w.bytes != 0);
  const std::uint32_t smalls = port::ballot(kFullWarp, small);
  for (std::uint32_t todo = moving; todo != 0; todo &= todo - 1) {
    const std::uint32_t i = port::first_lane(todo);
    if ((smalls >> i & 1u) != 0) {
      if (lane_ == i) {
        release_fence(t.stored);
        execute_small(w, block, move);
      }
    } else {
      const auto to = port::shuffle(kFullWarp, reinterpret_cast<std::uint64_t>(move.to), i);
      const auto from = port::shuffle(kFullWarp, reinterpret_cast<std::uint64_t>(move.from), i);
      const std::uint32_t bytes = port::shuffle(kFullWarp, w.bytes, i);
      release_fence(t.stored);
      copy_bytes(reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(from), bytes,
                 Movers{lane_, kWarpSize});
    }
    t.stored = reach;
    port::sync_warp(kFullWarp);
  }
}

template <bool constant>
__device__ Completion EngineWarp<constant>::completion_of(const GpuQueuePair& q, std::uint64_t index,
                                                          wire::WqeOpcode opcode, std::uint32_t bytes) {
  Completion c;
  c.wqe_opcode = static_cast<std::uint8_t>(opcode);
  c.counter = static_cast<std::uint16_t>(index);
  c.qpn = q.number;
  c.user_index = q.user_index;
  c.bytes = needs_response(opcode) ? bytes : 0;
  return c;
}

template <bool constant>
__device__ std::uint64_t EngineWarp<constant>::take_entries(const GpuRing& ring, Turn& t,
                                                            std::uint32_t count) {
  if (!ring.shared) {
    const std::uint64_t first = t.completions;
    t.completions += count;
    return first;
  }
  std::uint64_t first = 0;
  if (lane_ == 0) first = port::fetch_add<Scope::gpu>(&p_.cq_producers[ring.slot], std::uint64_t{count});
  return port::shuffle(kFullWarp, first, 0);
}

template <bool constant>
__device__ bool EngineWarp<constant>::has_room(const GpuQueuePair& q, Turn& t, std::uint32_t count) {
  const GpuRing& ring = q.completions;
  if (ring.ignore_overrun || ring.collapsed) return true;
  std::uint32_t full = 0;
  if (lane_ == 0) {
    const std::uint64_t producer =
        ring.shared ? port::load<Scope::gpu>(&p_.cq_producers[ring.slot]) : t.completions;
    full = would_overrun(ring, producer, count) ? 1 : 0;
  }
  if (port::shuffle(kFullWarp, full, 0) == 0) return true;
  t.state = GpuQueueState::flushing;
  if (lane_ == 0) {
    port::store<Scope::system>(&p_.progress[shuffled_slot(t)].overrun, 1u);
    call_host();
  }
  return false;
}

template <bool constant>
__device__ void EngineWarp<constant>::call_host() {
  port::fence<Scope::system>();
  port::fetch_add<Scope::system>(&p_.status->attention, 1u);
}

template <bool constant>
__device__ void EngineWarp<constant>::complete(const GpuQueuePair& q, Turn& t, const SingleWqe& w,
                                               std::uint32_t count) {
  const bool signalled = lane_ < count && w.signalled;
  const std::uint32_t all = port::ballot(kFullWarp, signalled);
  if (all == 0) return;
  if (q.completions.collapsed) {
    // Only the last one would be left of those that follow at once.
    const std::uint32_t last = port::last_lane(all);
    owe(t, t.next + last,
        static_cast<wire::WqeOpcode>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(w.opcode), last)),
        port::shuffle(kFullWarp, w.bytes, last));
    return;
  }
  const std::uint32_t entries = port::count_lanes(all);
  if (!has_room(q, t, entries)) return;
  const std::uint64_t first = take_entries(q.completions, t, entries);
  if (signalled) {
    const std::uint64_t index = first + port::count_lanes(all & ((1u << lane_) - 1u));
    push(q.completions, index, completion_of(q, t.next + lane_, w.opcode, w.bytes), t.stored);
  }
  t.stored = Reach::none;
  port::sync_warp(kFullWarp);
}

template <bool constant>
__device__ void EngineWarp<constant>::owe(Turn& t, std::uint64_t index, wire::WqeOpcode opcode,
                                          std::uint32_t bytes) {
  t.pending = true;
  t.pending_index = index;
  t.pending_opcode = opcode;
  t.pending_bytes = bytes;
}

template <bool constant>
__device__ void EngineWarp<constant>::complete_pending(const GpuQueuePair& q, Turn& t) {
  if (!t.pending) return;
  t.pending = false;
  const std::uint64_t entry = take_entries(q.completions, t, 1);
  if (lane_ == 0)
    push(q.completions, entry, completion_of(q, t.pending_index, t.pending_opcode, t.pending_bytes),
         t.stored);
  t.stored = Reach::none;
  port::sync_warp(kFullWarp);
}

template <bool constant>
__device__ void EngineWarp<constant>::complete_one(const GpuQueuePair& q, Turn& t, std::uint32_t blocks,
                                                   wire::WqeOpcode opcode, bool signalled,
                                                   std::uint32_t bytes) {
  if (signalled && q.completions.collapsed) {
    owe(t, t.next, opcode, bytes);
  } else if (signalled && has_room(q, t, 1)) {
    const std::uint64_t entry = take_entries(q.completions, t, 1);
    if (lane_ == 0) push(q.completions, entry, completion_of(q, t.next, opcode, bytes), t.stored);
    t.stored = Reach::none;
    port::sync_warp(kFullWarp);
  }
  t.next += blocks;
}

}  // namespace belfry::softnic::cuda
