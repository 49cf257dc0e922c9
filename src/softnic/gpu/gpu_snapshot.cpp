#include "softnic/gpu/gpu_snapshot.hpp"

#include <algorithm>
#include <set>

#include "belfry/wire/infiniband.hpp"
#include "softnic/firmware/nic_core.hpp"
#include "softnic/gpu/gpu_pins.hpp"
#include "softnic/transport/requester.hpp"

namespace belfry::softnic {

namespace {

GpuQueueState state_of(const QueuePair& qp) {
  if (qp.can_send()) return GpuQueueState::active;
  return qp.state == QpState::error ? GpuQueueState::flushing : GpuQueueState::idle;
}

static_assert(kGpuRegisters == wire::kUarRegistersPerPage);

class Snapshot {
 public:
  Snapshot(NicCore& core, MemoryOwner gpu) : core_(core), gpu_(gpu) {}

  GpuTables take() {
    tables_.queues.resize(core_.gpu_queue_slots.size());
    tables_.cq_generations.resize(core_.gpu_cq_slots.size());
    for (QueuePair* qp : core_.gpu_qps) add(*qp);
    add_keys();
    return std::move(tables_);
  }

 private:
  void touch(const void* address, std::uint64_t bytes) {
    if (address != nullptr) tables_.host_ranges.push_back({const_cast<void*>(address), bytes});
  }

  GpuRing ring_of(const CompletionQueue& cq) {
    const CqAttributes& a = cq.attributes();
    GpuRing ring;
    ring.entries = static_cast<unsigned char*>(a.buffer);
    ring.record = static_cast<const std::uint32_t*>(a.doorbell_record);
    ring.slot = cq.gpu_slot;
    ring.log_entries = a.log_entries;
    ring.entry_bytes = a.entry_bytes;
    ring.collapsed = a.collapsed;
    ring.ignore_overrun = a.ignore_overrun;
    // A queue without receives completes nothing but sends, and yet counts twice.
    ring.shared = cq.sending_queues > 1 || cq.receives;
    ring.far = a.buffer_owner != gpu_;
    tables_.cq_generations[cq.gpu_slot] = cq.gpu_generation;
    if (!is_gpu(a.buffer_owner)) touch(a.buffer, std::uint64_t{a.entry_bytes} << a.log_entries);
    if (!is_gpu(a.record_owner)) touch(a.doorbell_record, sizeof(wire::CqDoorbellRecord));
    return ring;
  }

  void add(QueuePair& qp) {
    const QpAttributes& a = qp.attributes;
    GpuQueuePair& q = tables_.queues[qp.gpu_slot];
    q.generation = qp.gpu_generation;
    if (qp.engine != gpu_) return;
    q.blocks = static_cast<const unsigned char*>(a.send_queue);
    q.block_mask = a.send_blocks - 1;
    q.number = qp.number;
    q.record =
        a.doorbell_record != nullptr ? static_cast<const std::uint32_t*>(a.doorbell_record) + 1 : nullptr;
    q.user_index = a.user_index;
    q.pd = a.pd;
    q.state = state_of(qp);
    q.no_record = a.no_record;
    q.far = a.queues_owner != gpu_ || (a.doorbell_record != nullptr && a.record_owner != gpu_);
    q.polls_record = !a.no_record && core_.config.gpu.poll == GpuPoll::record;
    q.unordered_writes = core_.config.gpu.unordered_writes;
    q.max_message = core_.config.limits.max_message;
    q.retry_ns = qp.context.timeout == 0
                     ? ~0ull
                     : std::max<std::uint64_t>(kLeastTimeout, 4096ull << qp.context.timeout) *
                           (qp.context.retry_count + 1u);
    q.slid = qp.context.path.dlid;
    q.completions = ring_of(*qp.send_cq);
    pds_.insert(a.pd);
    if (!is_gpu(a.record_owner)) touch(a.doorbell_record, sizeof(wire::QpDoorbellRecord));
    touch(qp.uar->page, wire::kUarBytes);
    watch(q, qp);
    if (QueuePair* peer = find_direct_peer(core_, qp)) add_peer(q, qp, *peer);
  }

  void watch(GpuQueuePair& q, const QueuePair& qp) {
    GpuWatch& watch = tables_.watched.emplace_back();
    watch.slot = qp.gpu_slot;
    for (unsigned i = 0; i < kGpuRegisters; ++i) {
      const std::uint64_t* on_gpu = qp.uar->gpu_registers[i];
      const unsigned char* in_page = qp.uar->page + wire::kUarFirstRegister + i * wire::kUarRegisterBytes;
      q.doorbells[i] = on_gpu != nullptr ? on_gpu : reinterpret_cast<const std::uint64_t*>(in_page);
      watch.doorbells[i] = q.doorbells[i];
      watch.on_gpu[i] = on_gpu != nullptr;
    }
  }

  void add_peer(GpuQueuePair& q, const QueuePair& qp, const QueuePair& peer) {
    q.reachable = peer.responder.expected_psn == qp.requester.next_psn;
    q.reads = qp.context.initiator_depth != 0 && peer.context.responder_depth != 0;
    q.peer_pd = peer.attributes.pd;
    q.peer_access = peer.context.access;
    q.peer_slot = qp.gpu_slot;
    q.peer_number = peer.number;
    q.peer_user_index = peer.attributes.user_index;
    q.rnr_ns = 1000ull * wire::kRnrTimerMicroseconds[peer.context.min_rnr_timer & 31];
    q.rnr_retries = qp.context.rnr_retry == 7 ? ~0u : qp.context.rnr_retry;
    pds_.insert(q.peer_pd);
    if (!peer.on_gpu() || peer.attributes.receive_entries == 0) return;
    q.peer_elsewhere = peer.engine != gpu_;
    if (q.peer_elsewhere) return;
    q.peer_slot = peer.gpu_slot;
    q.peer_receives = true;
    q.peer_receive_entries = peer.attributes.receive_entries;
    q.peer_receive_record = static_cast<const std::uint32_t*>(peer.attributes.doorbell_record);
    q.peer_completions = ring_of(*peer.receive_cq);
  }

  void add_keys() {
    tables_.keys = core_.keys;
    for (MkeyEntry& key : tables_.keys) {
      key.near = key.owner == gpu_;
      if (key.key != 0 && !is_gpu(key.owner) && pds_.contains(key.pd)) touch(key.memory, key.length);
    }
  }

  NicCore& core_;
  const MemoryOwner gpu_;  ///< the engine's
  GpuTables tables_;
  std::set<std::uint32_t> pds_;  ///< whose keys the engine may meet
};

}  // namespace

GpuTables take_gpu_snapshot(NicCore& core, MemoryOwner gpu) { return Snapshot(core, gpu).take(); }

void drop_keys(GpuTables& tables, const std::vector<HostRange>& refused) {
  for (MkeyEntry& key : tables.keys) {
    const HostRange memory{key.memory, key.length};
    if (key.key != 0 && !is_gpu(key.owner) &&
        std::any_of(refused.begin(), refused.end(), [&](const HostRange& r) { return overlap(r, memory); }))
      key.key = 0;
  }
}

void drop_far_keys(GpuTables& tables, const std::set<MemoryOwner>& reachable) {
  for (MkeyEntry& key : tables.keys)
    if (is_gpu(key.owner) && !key.near && !reachable.contains(key.owner)) key.key = 0;
}

}  // namespace belfry::softnic
