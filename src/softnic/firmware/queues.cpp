/// \file
/// Control calls that make, change and destroy CQs and QPs.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>

#include "softnic/firmware/doorbell.hpp"
#include "softnic/firmware/failure.hpp"
#include "softnic/firmware/nic_core.hpp"
#include "softnic/transport/requester.hpp"

namespace belfry::softnic {

namespace {

bool aligned(const void* p, std::size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

bool valid(const CqAttributes& a, const Limits& limits) {
  return a.buffer && aligned(a.buffer, 64) && a.log_entries <= 31 &&
         (1u << a.log_entries) <= limits.cq_entries && (a.entry_bytes == 64 || a.entry_bytes == 128) &&
         aligned(a.doorbell_record, 8);
}

bool valid_ring(const void* ring, std::uint32_t entries, std::uint32_t most, std::size_t alignment) {
  if (entries == 0) return true;
  return ring && aligned(ring, alignment) && std::has_single_bit(entries) && entries <= most;
}

bool valid(const QpAttributes& a, const Limits& limits) {
  if (!valid_ring(a.send_queue, a.send_blocks, limits.send_queue_blocks, wire::kBlockBytes)) return false;
  if (!valid_ring(a.receive_queue, a.receive_entries, limits.receive_entries, wire::kSegmentBytes))
    return false;
  if (a.receive_entries != 0 &&
      (a.receive_stride == 0 || a.receive_stride % wire::kSegmentBytes != 0 || a.receive_stride > 1024))
    return false;
  if (!aligned(a.doorbell_record, 8)) return false;
  // Without a record only the doorbell's index is left, and receives have no doorbell.
  return a.doorbell_record || (a.no_record && a.receive_entries == 0);
}

/// Gives a QP a QPN nobody in the fabric has. \return null where none is left
QueuePair* place(NicCore& core, std::unique_ptr<QueuePair> qp) {
  for (std::uint32_t block : core.owned_blocks) {
    SlotTable<QueuePair>& table = *core.qp_blocks[block];
    if (table.size() < kQpnsPerBlock) return table.insert(std::move(qp));
  }
  const Result<std::uint32_t> block = core.fabric->claim_block();
  if (!block) return nullptr;
  core.qp_blocks[*block] = std::make_unique<SlotTable<QueuePair>>(*block << kQpnBlockBits, kQpnsPerBlock);
  core.owned_blocks.push_back(*block);
  return core.qp_blocks[*block]->insert(std::move(qp));
}

/// \return whether `cq` may take completions of a queue: its entries are written by the CPU, or by the GPU
/// one GPU's engine, and not by two of them
bool may_complete(const CompletionQueue& cq, MemoryOwner engine) {
  if (!is_gpu(engine)) return cq.gpu_generation == 0 && !is_gpu(cq.attributes().buffer_owner);
  return cq.gpu_generation != 0 ? cq.engine == engine : cq.users == 0;
}

void hand_to_gpu(NicCore& core, CompletionQueue& cq, MemoryOwner engine) {
  if (cq.gpu_generation != 0) return;
  cq.engine = engine;
  cq.gpu_slot = core.gpu_cq_slots.take();
  cq.gpu_generation = ++core.gpu_generations;
}

void hand_to_gpu(NicCore& core, QueuePair& qp) {
  qp.gpu_slot = core.gpu_queue_slots.take();
  qp.gpu_generation = ++core.gpu_generations;
  hand_to_gpu(core, *qp.send_cq, qp.engine);
  hand_to_gpu(core, *qp.receive_cq, qp.engine);
  ++qp.send_cq->sending_queues;
  if (qp.attributes.receive_entries != 0) qp.receive_cq->receives = true;
  ++qp.uar->gpu_users;
  core.gpu_qps.push_back(&qp);
}

void take_from_gpu(NicCore& core, QueuePair& qp) {
  core.gpu_queue_slots.free(qp.gpu_slot);
  --qp.send_cq->sending_queues;
  --qp.uar->gpu_users;
  std::erase(core.gpu_qps, &qp);
}

/// Everything a reset QP forgets; attributes, number and CQs stay.
void reset(NicCore& core, QueuePair& qp) {
  core.forget(qp);
  forget_doorbells_of_qp(*qp.uar, qp.number);
  qp.state = QpState::reset;
  qp.context = {};
  qp.direct = qp.established = false;
  qp.producer = qp.next = qp.completed = qp.receive_next = 0;
  qp.requester = {};
  qp.responder = {};
  qp.root_cause = wire::Syndrome::none;
  qp.gone = false;
  if (qp.on_gpu()) qp.gpu_generation = ++core.gpu_generations;
}

bool valid(const NicCore& core, const QueuePair& qp, const QpModify& m) {
  const auto& gids = core.devices[qp.attributes.device].gids;
  if (m.path_mtu && !(std::has_single_bit(*m.path_mtu) && *m.path_mtu >= 256 && *m.path_mtu <= 4096))
    return false;
  if (m.path_mtu && *m.path_mtu > core.devices[qp.attributes.device].active_mtu) return false;
  if (m.path && m.path->global && m.path->sgid_index >= gids.size()) return false;
  if (m.port && *m.port != 1) return false;
  if (m.destination_qpn && *m.destination_qpn > wire::kQpnMask) return false;
  const std::uint32_t depth = core.config.limits.read_atomic_depth;
  if (m.initiator_depth && *m.initiator_depth > depth) return false;
  if (m.responder_depth && *m.responder_depth > depth) return false;
  if (m.timeout && *m.timeout > 31) return false;
  if (m.retry_count && *m.retry_count > 7) return false;
  if (m.rnr_retry && *m.rnr_retry > 7) return false;
  return !m.min_rnr_timer || *m.min_rnr_timer <= 31;
}

template <class T>
void apply(T& field, const std::optional<T>& change) {
  if (change) field = *change;
}

void apply(QpSnapshot& c, const QpModify& m) {
  apply(c.access, m.access);
  apply(c.pkey_index, m.pkey_index);
  apply(c.port, m.port);
  apply(c.path, m.path);
  apply(c.path_mtu, m.path_mtu);
  apply(c.destination_qpn, m.destination_qpn);
  if (m.receive_psn) c.receive_psn = *m.receive_psn & wire::kPsnMask;
  if (m.send_psn) c.send_psn = *m.send_psn & wire::kPsnMask;
  apply(c.initiator_depth, m.initiator_depth);
  apply(c.responder_depth, m.responder_depth);
  apply(c.min_rnr_timer, m.min_rnr_timer);
  apply(c.timeout, m.timeout);
  apply(c.retry_count, m.retry_count);
  apply(c.rnr_retry, m.rnr_retry);
  apply(c.drained_event, m.drained_event);
}

void connect(NicCore& core, QueuePair& qp) {
  const DeviceIdentity& device = core.devices[qp.attributes.device];
  const PathAttributes& path = qp.context.path;
  qp.frame = {};
  qp.frame.source_qpn = qp.number;
  qp.frame.slid = device.lid;
  qp.frame.dlid = path.dlid;
  qp.frame.global = path.global;
  qp.frame.sl = path.sl;
  qp.frame.traffic_class = path.traffic_class;
  if (path.global) {
    qp.frame.sgid = device.gids[path.sgid_index].gid;
    qp.frame.dgid = path.dgid;
  }
  const bool ours = core.qp_blocks[qp.context.destination_qpn >> kQpnBlockBits] != nullptr;
  qp.direct = ours && core.config.direct_loopback && !core.config.faults.any();
  qp.mtu_shift = static_cast<unsigned>(std::countr_zero(std::max(256u, qp.context.path_mtu)));
  qp.responder.expected_psn = qp.context.receive_psn;
}

void enter(NicCore& core, QueuePair& qp, QpState state) {
  const QpState from = qp.state;
  switch (state) {
    case QpState::reset:
      return reset(core, qp);
    case QpState::error:
      return enter_error(core, qp, wire::Syndrome::flushed);
    case QpState::rtr:
      connect(core, qp);
      break;
    case QpState::rts:
      if (from == QpState::rtr) {
        auto& q = qp.requester;
        q.next_psn = q.unacked_psn = q.sent_psn = qp.context.send_psn;
        q.retries_left = qp.context.retry_count;
        q.rnr_retries_left = qp.context.rnr_retry;
      }
      break;
    default:
      break;
  }
  qp.state = state;
  qp.drain_reported = false;
  if (!qp.on_gpu() && (state == QpState::sqd || has_send_work(qp))) core.queue_sending(qp);
}

}  // namespace

Result<std::uint32_t> Nic::create_cq(const CqAttributes& a) {
  NicCore& core = *impl_;
  ControlLock guard(core, ControlLock::While::a_poll_waits);
  if (a.device >= core.devices.size() || !valid(a, core.config.limits)) return Errno{EINVAL};
  Uar* uar = core.uars.find(a.uar);
  if (!uar) return Errno{EINVAL};
  auto cq = std::make_unique<CompletionQueue>(a, core.in_hand);
  CompletionQueue* made = core.cqs.insert(std::move(cq));
  if (!made) return Errno{ENOMEM};
  if (a.doorbell_record && !is_gpu(a.record_owner)) {
    auto* arm = static_cast<std::uint32_t*>(a.doorbell_record) + 1;
    std::atomic_ref<std::uint32_t>(*arm).store(wire::kCqNeverArmed, std::memory_order_relaxed);
  }
  // One whose record lies in GPU memory cannot be armed.
  if (!is_gpu(a.record_owner)) uar->cqs.push_back(made);
  return made->number;
}

int Nic::resize_cq(std::uint32_t cqn, void* buffer, unsigned log_entries) {
  ControlLock guard(*impl_);
  CompletionQueue* cq = impl_->cqs.find(cqn);
  if (!cq || cq->gpu_generation != 0 || is_gpu(cq->attributes().buffer_owner)) return EINVAL;
  CqAttributes wanted = cq->attributes();
  wanted.buffer = buffer;
  wanted.log_entries = log_entries;
  if (!valid(wanted, impl_->config.limits) || !cq->can_resize(log_entries)) return EINVAL;
  cq->resize(buffer, log_entries);
  return 0;
}

int Nic::destroy_cq(std::uint32_t cqn) {
  ControlLock guard(*impl_);
  CompletionQueue* cq = impl_->cqs.find(cqn);
  if (!cq) return EINVAL;
  if (cq->users != 0) return EBUSY;
  Uar& uar = *impl_->uars.find(cq->attributes().uar);
  std::erase(uar.cqs, cq);
  forget_doorbells_of_cq(uar, cqn);
  if (cq->gpu_generation != 0) impl_->gpu_cq_slots.free(cq->gpu_slot);
  impl_->cqs.erase(cqn);
  return 0;
}

Result<std::uint32_t> Nic::create_qp(const QpAttributes& a) {
  NicCore& core = *impl_;
  // Starts it with its first queue, which takes no lock of the NIC's.
  const MemoryOwner engine = is_gpu(a.queues_owner) ? core.gpu.engine_for(a.queues_owner) : kHostMemory;
  if (is_gpu(a.queues_owner) && !is_gpu(engine)) return Errno{EOPNOTSUPP};
  ControlLock guard(core);
  ProtectionDomain* pd = core.pds.find(a.pd);
  Uar* uar = core.uars.find(a.uar);
  CompletionQueue* send_cq = core.cqs.find(a.send_cq);
  CompletionQueue* receive_cq = core.cqs.find(a.receive_cq);
  if (!pd || !uar || !send_cq || !receive_cq || pd->device != a.device || !valid(a, core.config.limits))
    return Errno{EINVAL};
  if (pd->owner != a.owner || send_cq->attributes().owner != a.owner ||
      receive_cq->attributes().owner != a.owner)
    return Errno{EINVAL};
  if (!may_complete(*send_cq, engine) || !may_complete(*receive_cq, engine) ||
      (is_gpu(a.record_owner) && !is_gpu(engine)))
    return Errno{EINVAL};
  if (core.qps_used >= core.config.limits.qps) return Errno{ENOMEM};
  auto qp = std::make_unique<QueuePair>(a);
  qp->uar = uar;
  qp->send_cq = send_cq;
  qp->receive_cq = receive_cq;
  qp->engine = engine;
  QueuePair* made = place(core, std::move(qp));
  if (!made) return Errno{ENOMEM};
  ++core.qps_used;
  ++core.epoch;
  ++pd->users;
  ++send_cq->users;
  ++receive_cq->users;
  if (made->on_gpu()) {
    hand_to_gpu(core, *made);
    core.gpu.note_change();
  } else {
    uar->qps.push_back(made);
  }
  return made->number;
}

int Nic::modify_qp(std::uint32_t qpn, const QpModify& change) {
  bool tells_gpu = false;
  {
    ControlLock guard(*impl_);
    QueuePair* qp = impl_->find_qp(qpn);
    if (!qp || !valid(*impl_, *qp, change)) return EINVAL;
    apply(qp->context, change);
    ++impl_->epoch;
    impl_->gpu.note_change();
    if (change.state && (*change.state != qp->state || *change.state == QpState::reset)) {
      // Once a queue is ready kernels may wait for it, and some of what the GPU engine needs for new tables
      // would wait for them.
      tells_gpu = qp->on_gpu() && (*change.state == QpState::rts || *change.state == QpState::reset ||
                                   *change.state == QpState::error);
      enter(*impl_, *qp, *change.state);
    }
  }
  if (tells_gpu) impl_->gpu.settle();
  return 0;
}

Result<QpSnapshot> Nic::query_qp(std::uint32_t qpn) {
  ControlLock guard(*impl_, ControlLock::While::a_poll_waits);
  const QueuePair* qp = impl_->find_qp(qpn);
  if (!qp) return Errno{EINVAL};
  QpSnapshot s = qp->context;
  s.state = qp->state;
  s.send_producer = qp->producer;
  s.send_consumer = qp->completed;
  if (qp->state == QpState::rts || qp->state == QpState::sqd) s.send_psn = qp->requester.next_psn;
  if (qp->can_receive()) s.receive_psn = qp->responder.expected_psn;
  return s;
}

int Nic::destroy_qp(std::uint32_t qpn) {
  const int error = forget_qp(qpn);
  if (error == 0) impl_->gpu.settle();
  return error;
}

int Nic::forget_qp(std::uint32_t qpn) {
  NicCore& core = *impl_;
  ControlLock guard(core);
  QueuePair* qp = core.find_qp(qpn);
  if (!qp) return EINVAL;
  core.forget(*qp);
  if (qp->on_gpu()) take_from_gpu(core, *qp);
  core.gpu.note_change();
  std::erase(qp->uar->qps, qp);
  if (qp->uar->recent == qp) qp->uar->recent = nullptr;
  forget_doorbells_of_qp(*qp->uar, qpn);
  --qp->send_cq->users;
  --qp->receive_cq->users;
  --core.pds.find(qp->attributes.pd)->users;
  --core.qps_used;
  core.qp_blocks[qpn >> kQpnBlockBits]->erase(qpn);
  return 0;
}

}  // namespace belfry::softnic
