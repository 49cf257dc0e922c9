#pragma once
/// \file
/// How a warp of the engine begins and ends, and how it looks at doorbells.

#include "softnic/cuda/engine_warp.cuh"

namespace belfry::softnic::cuda {

template <bool constant>
__device__ void EngineWarp<constant>::take_queues() {
  take_queue();
  note_settled();
  full_ = port::ballot(kFullWarp, lane_ == kStopLane && mine_.exists) != 0;
  if (lane_ != kStopLane || full_) return;
  // It looks for the end as others look at records.
  mine_.places[0] = reinterpret_cast<const std::uint64_t*>(p_.control);
  mine_.polls_word = true;
}

template <bool constant>
__device__ void EngineWarp<constant>::take_queue() {
  const std::uint32_t slot = warp_ + lane_ * warps_;
  mine_.slot = slot;
  if (slot >= p_.slots) return;
  const GpuQueuePair& q = tables_.queue(slot);
  if (q.generation == 0 || q.state == GpuQueueState::idle) return;
  mine_.exists = true;
  mine_.number = q.number;
  mine_.block_mask = q.block_mask;
  mine_.no_record = q.no_record;
  mine_.polls_word = q.polls_record;
#pragma unroll
  for (unsigned i = 0; i < kGpuRegisters; ++i) mine_.places[i] = q.doorbells[i];
  if (q.polls_record) mine_.places[0] = reinterpret_cast<const std::uint64_t*>(q.record - 1);
  mine_.state = q.state;
  const GpuProgress& progress = p_.progress[slot];
  mine_.producer = progress.producer;
  mine_.next = progress.next;
  mine_.silent_since = progress.silent_since;
  if (progress.failed != 0) mine_.state = GpuQueueState::flushing;
  if (!q.completions.shared) mine_.completions = p_.cq_producers[q.completions.slot];
  if (mine_.state == GpuQueueState::active) mine_.hot = hot_writes_of(q);
}

template <bool constant>
__device__ void EngineWarp<constant>::give_back_queues() {
  if (mine_.exists) {
    GpuProgress& progress = p_.progress[mine_.slot];
    progress.producer = mine_.producer;
    progress.next = mine_.next;
    // With polls_word note_registers() has done it.
    if (!mine_.polls_word) {
      progress.seen[0] = mine_.swapped ? mine_.seen[1] : mine_.seen[0];
      progress.seen[1] = mine_.swapped ? mine_.seen[0] : mine_.seen[1];
    }
    progress.silent_since = mine_.silent_since;
    const GpuRing& ring = tables_.queue(mine_.slot).completions;
    if (!ring.shared) p_.cq_producers[ring.slot] = mine_.completions;
  }
  port::fence<Scope::system>();
  port::sync_warp(kFullWarp);
  if (lane_ != 0) return;
  port::fence<Scope::system>();
  if (port::fetch_add<Scope::gpu, port::Order::acquire_release>(&p_.control->ended, 1u) + 1 != warps_) return;
  port::store_release<Scope::system>(&p_.status->finished, p_.launch);
}

template <bool constant>
__device__ void EngineWarp<constant>::note_work() {
  idle_since_ = 0;
  note_settled();
  if (++works_ % kWorksALook == 1) tell_work(clock_ns());
}

template <bool constant>
__device__ void EngineWarp<constant>::note_settled() {
  settled_ = port::ballot(kFullWarp, mine_.exists && !mine_.polls_word && !mine_.has_rung) == 0;
}

template <bool constant>
__device__ void EngineWarp<constant>::tell_work(std::uint64_t now) {
  if (lane_ == 0) port::store<Scope::gpu>(&p_.control->worked, now);
}

template <bool constant>
__device__ void EngineWarp<constant>::leave_if_idle() {
  const std::uint64_t now = clock_ns();
  if (idle_since_ == 0) {
    idle_since_ = now;
    tell_work(now);
  }
  if (now - idle_since_ < p_.idle_ns || lane_ != 0) return;
  const std::uint64_t others = port::load<Scope::gpu>(&p_.control->worked);
  if (now > others && now - others >= p_.idle_ns) port::store<Scope::gpu>(&p_.control->stop, kStopWord);
}

template <bool constant>
__device__ void EngineWarp<constant>::note_registers() {
  if (mine_.exists && mine_.polls_word) {
    const GpuQueuePair& q = tables_.queue(mine_.slot);
#pragma unroll
    for (unsigned i = 0; i < kGpuRegisters; ++i)
      p_.progress[mine_.slot].seen[i] = port::load<Scope::system>(q.doorbells[i]);
  }
  port::fence<Scope::system>();
}

template <bool constant>
__device__ bool EngineWarp<constant>::look(bool all, Early& early) {
  if (stopping_) note_registers();
  std::uint64_t value = mine_.seen[0];
  std::uint64_t other = mine_.seen[1];
  // All lanes load at once, whatever they look at: a load of its own for some would keep the others waiting.
  if (mine_.exists | mine_.polls_word) value = port::load<Scope::system>(mine_.places[0]);
  if (all & mine_.exists & !mine_.polls_word) other = port::load<Scope::system>(mine_.places[1]);
  const bool news = (value != mine_.seen[0]) | (other != mine_.seen[1]);
  const std::uint32_t any = port::ballot(kFullWarp, news);
  if (any != 0) {
    // What posters stored before they rang is visible behind this.
    acquire_fence(p_.far_queues);
    early.there = news & (mine_.hot.memory != nullptr);
    if (early.there)
      early.block = fetch_block(block_of_ring(mine_.hot.blocks, mine_.hot.block_mask, mine_.next));
    if (news & mine_.exists) take_doorbell(value, other);
    port::sync_warp(kFullWarp);
  }
  if (full_) {
    if (all) stop_if_asked();
    return any != 0;
  }
  if ((any >> kStopLane & 1u) == 0) return any != 0;
  stop();
  return any != 1u << kStopLane;
}

template <bool constant>
__device__ void EngineWarp<constant>::stop_if_asked() {
  if (port::load<Scope::system>(&p_.control->stop) != 0) stop();
}

template <bool constant>
__device__ void EngineWarp<constant>::stop() {
  stopping_ = true;
  unfinished_ = true;
  if (!mine_.exists) mine_.polls_word = false;
}

template <bool constant>
__device__ std::uint16_t EngineWarp<constant>::ahead_of(std::uint32_t index) const {
  return static_cast<std::uint16_t>(index - static_cast<std::uint32_t>(mine_.producer));
}

template <bool constant>
__device__ void EngineWarp<constant>::take_doorbell(std::uint64_t value, std::uint64_t other) {
  // Selections, for a branch would cost as much as ten of them.
  const bool rang = value != mine_.seen[0];
  const bool ours = rang & (mine_.polls_word | (wire::doorbell_qpn(value) == mine_.number));
  const std::uint32_t word = swap_bytes(static_cast<std::uint32_t>(value >> 32));
  const bool told = announce(ours, mine_.polls_word ? word : wire::doorbell_index(value));
  const bool more = (rang & !ours) | (other != mine_.seen[1]);
  mine_.seen[0] = value;
  mine_.has_rung |= ours;
  if (more) take_others(rang & !ours, other, told);
}

template <bool constant>
__device__ void EngineWarp<constant>::take_others(bool strange, std::uint64_t other, bool told) {
  const bool rang = other != mine_.seen[1];
  mine_.seen[1] = other;
  // A doorbell of ours may be hidden behind one of a queue that shares our register: then the record says it.
  // Read at a doorbell of another register, it could be ahead of its WQEs (A2).
  bool hidden = strange || (rang && !mine_.has_rung);
  if (rang && wire::doorbell_qpn(other) == mine_.number) {
    if (announce(true, wire::doorbell_index(other))) told = true;
    const std::uint64_t* place = mine_.places[0];
    mine_.places[0] = mine_.places[1];
    mine_.places[1] = place;
    mine_.seen[1] = mine_.seen[0];
    mine_.seen[0] = other;
    mine_.swapped = !mine_.swapped;
    mine_.has_rung = true;
    hidden = false;
  }
  if (hidden && !told && !mine_.no_record)
    announce(true, swap_bytes(port::load_acquire<Scope::system>(tables_.queue(mine_.slot).record)));
}

template <bool constant>
__device__ bool EngineWarp<constant>::announce(bool asked, std::uint32_t index) {
  const std::uint32_t ahead = ahead_of(index);
  const auto held = static_cast<std::uint32_t>(mine_.producer - mine_.next);
  // Never more outstanding than the queue holds: what says otherwise is old, or nonsense.
  const bool news = asked & (ahead != 0) & (held + ahead <= mine_.block_mask + 1);
  mine_.producer += news ? ahead : 0;
  return news;
}

}  // namespace belfry::softnic::cuda
