#pragma once
/// \file
/// How a warp of the engine begins and ends, and how it looks at doorbells.

#include "softnic/cuda/engine_warp.cuh"

namespace belfry::softnic::cuda {

template <bool constant>
__device__ void EngineWarp<constant>::take_queues() {
  take_queue();
  full_ = port::ballot(kFullWarp, lane_ == kStopLane && mine_.exists) != 0;
  if (lane_ != kStopLane || full_) return;
  // It looks for the end as others look at records.
  mine_.record = &p_.control->stop;
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
#pragma unroll
  for (unsigned i = 0; i < kGpuRegisters; ++i) mine_.doorbells[i] = q.doorbells[i];
  mine_.record = q.record;
  mine_.number = q.number;
  mine_.block_mask = q.block_mask;
  mine_.no_record = q.no_record;
  mine_.polls_word = q.polls_record;
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
#pragma unroll
    for (unsigned i = 0; i < kGpuRegisters; ++i) progress.seen[i] = mine_.seen[i];
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
  if (++works_ % kWorksALook == 1) tell_work(clock_ns());
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
  if (mine_.exists && mine_.polls_word) read_registers(mine_.seen);
  port::fence<Scope::system>();
}

template <bool constant>
__device__ bool EngineWarp<constant>::look(bool all) {
  if (stopping_) note_registers();
  std::uint64_t rung[kGpuRegisters] = {mine_.seen[0], mine_.seen[1]};
  std::uint32_t word = 0;
  // All loads are under way before the first is looked at.
  if (mine_.polls_word) word = port::load<Scope::system>(mine_.record);
  if (mine_.exists && !mine_.polls_word) {
    if (all) {
      read_registers(rung);
    } else if (mine_.second_rings) {
      rung[1] = read_register(1);
    } else {
      rung[0] = read_register(0);
    }
  }
  if (all && full_) stop_if_asked();
  const bool news = mine_.polls_word ? ahead_of(swap_bytes(word)) != 0
                                     : rung[0] != mine_.seen[0] || rung[1] != mine_.seen[1];
  const std::uint32_t any = port::ballot(kFullWarp, news);
  if (any == 0) return false;
  // What posters stored before they rang is visible behind this.
  acquire_fence(p_.far_queues);
  if (news && mine_.exists) take_doorbell(rung, word);
  port::sync_warp(kFullWarp);
  if (full_ || (any >> kStopLane & 1u) == 0) return true;
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
__device__ std::uint64_t EngineWarp<constant>::read_register(unsigned i) const {
  return port::load<Scope::system>(mine_.doorbells[i]);
}

template <bool constant>
__device__ void EngineWarp<constant>::read_registers(std::uint64_t (&rung)[kGpuRegisters]) const {
#pragma unroll
  for (unsigned i = 0; i < kGpuRegisters; ++i) rung[i] = read_register(i);
}

template <bool constant>
__device__ void EngineWarp<constant>::take_doorbell(const std::uint64_t (&rung)[kGpuRegisters],
                                                    std::uint32_t word) {
  if (mine_.polls_word) {
    announce(swap_bytes(word));
    return;
  }
  bool told = mine_.no_record;
  bool others[kGpuRegisters] = {};
#pragma unroll
  for (unsigned i = 0; i < kGpuRegisters; ++i) {
    if (rung[i] == mine_.seen[i]) continue;
    mine_.seen[i] = rung[i];
    if (wire::doorbell_qpn(rung[i]) == mine_.number) {
      mine_.second_rings = i == 1;
      mine_.has_rung = true;
      if (announce(wire::doorbell_index(rung[i]))) told = true;
    } else {
      others[i] = true;
    }
  }
  // A doorbell of ours may be hidden behind one of a queue that shares our register: then the record says it.
  // Read at a doorbell of another register, it could be ahead of its WQEs (A2).
  const bool hidden = (others[0] && !(mine_.has_rung && mine_.second_rings)) ||
                      (others[1] && !(mine_.has_rung && !mine_.second_rings));
  if (!told && hidden) announce(swap_bytes(port::load_acquire<Scope::system>(mine_.record)));
}

template <bool constant>
__device__ bool EngineWarp<constant>::announce(std::uint32_t index) {
  const std::uint16_t ahead = ahead_of(index);
  // Never more outstanding than the queue holds: what says otherwise is old, or nonsense.
  if (ahead == 0 || mine_.producer + ahead - mine_.next > mine_.block_mask + 1) return false;
  mine_.producer += ahead;
  return true;
}

}  // namespace belfry::softnic::cuda
