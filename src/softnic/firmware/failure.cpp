#include "softnic/firmware/failure.hpp"

#include <algorithm>

#include "belfry/port/memory.hpp"

namespace belfry::softnic {

namespace {

Completion send_completion(const QueuePair& qp, std::uint64_t first_block, wire::WqeOpcode opcode) {
  Completion c;
  c.wqe_opcode = static_cast<std::uint8_t>(opcode);
  c.counter = static_cast<std::uint16_t>(first_block);
  c.qpn = qp.number;
  c.user_index = qp.attributes.user_index;
  return c;
}

/// Completes the oldest WQE of a queue in error. \pre one is posted
void complete_in_error(QueuePair& qp, wire::Syndrome syndrome, std::uint8_t vendor) {
  wire::ControlSegment control;
  std::memcpy(&control, qp.block(qp.completed), sizeof control);
  Completion c = send_completion(qp, qp.completed, control.opcode());
  c.opcode = wire::CqeOpcode::requester_error;
  c.syndrome = syndrome;
  c.vendor = vendor;
  const std::uint32_t blocks =
      std::max(1u, (control.segments() + wire::kSegmentsPerBlock - 1) / wire::kSegmentsPerBlock);
  qp.completed = std::min<std::uint64_t>(qp.completed + blocks, qp.producer);
  qp.next = qp.completed;
  qp.send_cq->push(c);
}

std::size_t flush_sends(QueuePair& qp) {
  std::size_t flushed = 0;
  for (; qp.completed < qp.producer && !qp.send_cq->full(); ++flushed)
    complete_in_error(qp, wire::Syndrome::flushed, kVendorFlushed);
  return flushed;
}

std::size_t flush_receives(QueuePair& qp) {
  std::size_t flushed = 0;
  for (std::uint32_t left = receives_posted(qp); left != 0 && !qp.receive_cq->full(); --left) {
    Completion c;
    c.opcode = wire::CqeOpcode::responder_error;
    c.syndrome = wire::Syndrome::flushed;
    c.vendor = kVendorFlushed;
    c.counter = static_cast<std::uint16_t>(qp.receive_next++);
    c.qpn = qp.number;
    c.user_index = qp.attributes.user_index;
    qp.receive_cq->push(c);
    ++flushed;
  }
  return flushed;
}

}  // namespace

void report(QueuePair& qp, AsyncEvent event) {
  if (qp.attributes.sink) qp.attributes.sink->async(event, qp.number);
}

std::uint32_t receives_posted(const QueuePair& qp) {
  if (qp.attributes.receive_entries == 0 || !qp.attributes.doorbell_record) return 0;
  auto* word = static_cast<std::uint32_t*>(qp.attributes.doorbell_record);  // word 0
  // Acquire: the poster stores the entry before it moves the index.
  const auto index = static_cast<std::uint16_t>(
      swap_bytes(std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire)));
  const auto posted = static_cast<std::uint16_t>(index - static_cast<std::uint16_t>(qp.receive_next));
  return posted <= qp.attributes.receive_entries ? posted : 0;
}

void complete_send(QueuePair& qp, std::uint64_t first_block, std::uint32_t blocks, wire::WqeOpcode opcode,
                   bool signalled, std::uint64_t bytes) {
  qp.completed = first_block + blocks;
  for (std::uint32_t i = 0; i < blocks; ++i)
    port::host_memory::note_read(qp.block(first_block + i), wire::kBlockBytes);
  if (!signalled) return;
  Completion c = send_completion(qp, first_block, opcode);
  c.bytes = static_cast<std::uint32_t>(bytes);
  qp.send_cq->push(c);
}

void fail_send(NicCore& core, QueuePair& qp, const SendFailure& failure) {
  Completion c = send_completion(qp, failure.first_block, failure.opcode);
  c.opcode = wire::CqeOpcode::requester_error;
  c.syndrome = failure.syndrome;
  c.vendor = failure.vendor;
  qp.completed = failure.first_block + failure.blocks;
  qp.send_cq->push(c);
  enter_error(core, qp, failure.syndrome);
}

void enter_error(NicCore& core, QueuePair& qp, wire::Syndrome cause) {
  if (qp.state == QpState::error) return;
  qp.state = QpState::error;
  qp.root_cause = cause;
  ++core.epoch;
  // The receive of a message that will not be finished is flushed with the rest.
  if (qp.responder.open && qp.responder.verb == Verb::send) --qp.receive_next;
  qp.requester.started.clear();
  qp.requester.reads_outstanding = 0;
  qp.requester.deadline = 0;
  qp.requester.not_before = 0;
  qp.responder.open = false;
  core.gpu.note_change();
  if (!qp.on_gpu()) core.flushing.push_back(&qp);  // else the GPU engine flushes it
}

void take_fault(NicCore& core) {
  const InHand faulted = core.in_hand;
  core.in_hand.qp = nullptr;
  core.in_hand.requester = nullptr;
  core.in_hand.cq = nullptr;
  ++core.counters.memory_faults;
  core.gpu_payload.drop();
  if (faulted.cq) return faulted.cq->kill();  // its QPs follow, see fail_queues_of_dead_cqs()
  QueuePair* qp = faulted.qp;
  if (!qp) return;
  qp->responder.owed.clear();  // a READ of what is gone would fault for ever
  if (qp->state == QpState::error) {
    qp->gone = true;
    std::erase(core.flushing, qp);
    return;
  }
  report(*qp, AsyncEvent::qp_fatal);
  // The oldest WQE that is not complete is the one at fault, or waits behind it. Its own ring may be what
  // is gone: then this faults too, and the second fault comes here again.
  const bool sending = qp->can_send() && qp->completed < qp->producer;
  enter_error(core, *qp, wire::Syndrome::local_protection);
  core.in_hand.qp = qp;
  const auto tell = [&] {
    if (sending) complete_in_error(*qp, wire::Syndrome::local_protection, kVendorMemoryGone);
  };
  if (!survive_faults(tell)) take_fault(core);
  // Who asked for it is told that the other end could not do it.
  QueuePair* requester = faulted.requester;
  if (!requester || requester == qp || !requester->can_finish()) return;
  enter_error(core, *requester, wire::Syndrome::remote_operation);
  core.in_hand.qp = requester;
  const auto refuse = [&] {
    complete_in_error(*requester, wire::Syndrome::remote_operation, kVendorRemoteOperation);
  };
  if (!survive_faults(refuse)) take_fault(core);
}

void fail_queues_of_dead_cqs(NicCore& core) {
  core.in_hand.cq_died = false;
  for (const std::uint32_t block : core.owned_blocks) {
    core.qp_blocks[block]->for_each([&](QueuePair& qp) {
      if (qp.state == QpState::reset || qp.state == QpState::error) return;
      if (!qp.send_cq->dead() && !qp.receive_cq->dead()) return;
      report(qp, AsyncEvent::qp_fatal);
      enter_error(core, qp, wire::Syndrome::local_qp_operation);
    });
  }
}

std::size_t flush_errored(NicCore& core) {
  std::size_t flushed = 0;
  for (QueuePair* qp : core.flushing) {
    core.in_hand.qp = qp;
    if (qp->attributes.send_blocks != 0 && qp->send_cq) flushed += flush_sends(*qp);
    if (qp->receive_cq) flushed += flush_receives(*qp);
  }
  return flushed;
}

}  // namespace belfry::softnic
