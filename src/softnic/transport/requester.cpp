#include "softnic/transport/requester.hpp"

#include <algorithm>

namespace belfry::softnic {

void fetch_wqe(NicCore& core, const QueuePair& qp, std::uint64_t block) {
  const unsigned char* at = qp.block(block);
  std::memcpy(core.image, at, wire::kBlockBytes);
  wire::ControlSegment control;
  std::memcpy(&control, core.image, sizeof control);
  std::uint32_t available = wire::kBlockBytes;
  // Blocks that no doorbell has announced are not fetched, whatever DS says.
  const std::uint64_t announced = (qp.producer - block) * wire::kBlockBytes;
  const std::uint32_t wanted = control.segments() * wire::kSegmentBytes;
  for (std::uint32_t done = wire::kBlockBytes; done < wanted && done < announced; done += wire::kBlockBytes) {
    std::memcpy(core.image + done, qp.block(block + done / wire::kBlockBytes), wire::kBlockBytes);
    available = done + wire::kBlockBytes;
  }
  decode_wqe(core.image, available, core.wqe);
  if (core.wqe.error == wire::Syndrome::none && control.qpn() != qp.number) {
    core.wqe.error = wire::Syndrome::local_qp_operation;
    core.wqe.vendor_error = kVendorWrongQueue;
  }
}

namespace {

wire::Syndrome resolve_pieces(NicCore& core, const QueuePair& qp, SpanList& spans) {
  DecodedWqe& wqe = core.wqe;
  const std::uint32_t rights = needs_response(wqe.opcode) ? kAccessLocalWrite : 0u;
  for (std::uint32_t i = 0; i < wqe.piece_count; ++i) {
    const Piece& piece = wqe.pieces[i];
    if (piece.inline_data) {
      // Inline data cannot receive a result.
      if (rights != 0) return wire::Syndrome::local_qp_operation;
      spans.add(const_cast<unsigned char*>(piece.inline_data), piece.bytes);
      continue;
    }
    unsigned char* memory;
    if (core.resolve(piece.key, qp.attributes.pd, piece.address, piece.bytes, rights, &memory) !=
        KeyFault::none)
      return wire::Syndrome::local_protection;
    spans.add(memory, piece.bytes);
  }
  return wire::Syndrome::none;
}

}  // namespace

wire::Syndrome check_wqe(NicCore& core, const QueuePair& qp, SpanList& spans, std::uint8_t* vendor) {
  const DecodedWqe& wqe = core.wqe;
  spans.clear();
  *vendor = wqe.vendor_error;
  if (wqe.error != wire::Syndrome::none) return wqe.error;
  if (wqe.total_bytes > core.config.limits.max_message) {
    *vendor = kVendorLocalLength;
    return wire::Syndrome::local_length;
  }
  if (needs_response(wqe.opcode) && qp.context.initiator_depth == 0) {
    *vendor = kVendorNoDepth;
    return wire::Syndrome::local_qp_operation;
  }
  const wire::Syndrome s = resolve_pieces(core, qp, spans);
  *vendor = s == wire::Syndrome::local_protection ? kVendorLocalProtection : kVendorBadSize;
  return s;
}

SendFailure failure_of_nak(const StartedWqe& wqe, wire::NakCode code) {
  SendFailure f{wqe.first_block, wqe.blocks, wqe.opcode, wire::Syndrome::remote_operation,
                kVendorRemoteOperation};
  if (code == wire::NakCode::invalid_request) {
    f.syndrome = wire::Syndrome::remote_invalid_request;
    f.vendor = kVendorRemoteInvalid;
  } else if (code == wire::NakCode::remote_access) {
    f.syndrome = wire::Syndrome::remote_access;
    f.vendor = kVendorRemoteAccess;
  }
  return f;
}

std::uint64_t acknowledge_deadline(NicCore& core, const QueuePair& qp) {
  if (qp.context.timeout == 0) return ~0ull;
  return core.time() + std::max<std::uint64_t>(kLeastTimeout, 4096ull << qp.context.timeout);
}

bool take_rnr(NicCore& core, QueuePair& qp, std::uint8_t timer) {
  auto& q = qp.requester;
  if (qp.context.rnr_retry != 7) {  // 7 stands for ever
    if (q.rnr_retries_left == 0) return false;
    --q.rnr_retries_left;
  }
  q.retries_left = qp.context.retry_count;  // the peer answered: the path is there
  q.not_before = core.time() + 1000ull * wire::kRnrTimerMicroseconds[timer & 31];
  q.deadline = 0;
  core.arm_timer(q.not_before);
  return true;
}

void deliver_original(NicCore& core, const SpanList& spans, const AtomicOperands& atomic,
                      std::uint64_t original) {
  // In host order, as devices that report IBV_ATOMIC_HCA with native results do.
  core.scatter(spans, 0, reinterpret_cast<const unsigned char*>(&original), atomic.bytes);
  core.gpu_payload.flush();
}

bool has_send_work(const QueuePair& qp) {
  if (qp.can_send() && qp.next < qp.producer) return true;
  return qp.can_finish() && (!qp.requester.started.empty() || qp.requester.emit_packets != 0);
}

std::size_t run_send_queue(NicCore& core, QueuePair& qp) {
  if (!qp.can_finish()) return 0;
  core.in_hand.qp = &qp;
  if (qp.requester.not_before != 0) {
    if (core.time() < qp.requester.not_before) {
      core.arm_timer(qp.requester.not_before);
      return 0;
    }
    qp.requester.not_before = 0;
  }
  return qp.direct ? run_direct(core, qp) : run_packets(core, qp);
}

}  // namespace belfry::softnic
