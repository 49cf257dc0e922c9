/// \file
/// The packet path of a requester: emission within a window, acknowledgements, and going back after a
/// loss. Between processes, or where faults are planned.

#include <algorithm>

#include "softnic/transport/codec.hpp"
#include "softnic/transport/requester.hpp"
#include "softnic/transport/send_packet.hpp"

namespace belfry::softnic {

namespace {

/// A packet in this many asks for an acknowledgement inside a long message.
constexpr std::uint32_t kAckEvery = 32;
/// One message of the greatest length at the least MTU is 2^22 packets, and may always be out alone.
constexpr std::uint32_t kMostPsnsOut = 1u << 22;

std::uint32_t add_psn(std::uint32_t psn, std::uint32_t count) { return (psn + count) & wire::kPsnMask; }

/// Emission starts again at the first packet that is not acknowledged.
void go_back(QueuePair& qp) {
  auto& q = qp.requester;
  q.emit_index = 0;
  q.emit_packets = 0;
  if (q.started.empty()) return;
  const StartedWqe& s = q.started.front();
  const std::int32_t acknowledged = wire::psn_distance(s.first_psn, q.unacked_psn);
  if (!s.response_needed && acknowledged > 0) q.emit_packets = static_cast<std::uint32_t>(acknowledged);
}

/// A response is missing that something behind it shows to be lost: asked for once, not with each frame
/// that comes behind the gap.
void ask_again(QueuePair& qp, std::uint32_t missing_psn) {
  if (qp.requester.emit_index == 0 || qp.requester.asked_again_psn == missing_psn) return;
  qp.requester.asked_again_psn = missing_psn;
  go_back(qp);
}

void note_progress(NicCore& core, QueuePair& qp) {
  auto& q = qp.requester;
  q.retries_left = qp.context.retry_count;
  q.rnr_retries_left = qp.context.rnr_retry;
  q.deadline = q.started.empty() ? 0 : acknowledge_deadline(core, qp);
}

void fail_front(NicCore& core, QueuePair& qp, wire::Syndrome syndrome, std::uint8_t vendor) {
  const StartedWqe s = qp.requester.started.front();
  fail_send(core, qp, {s.first_block, s.blocks, s.opcode, syndrome, vendor});
}

void complete_front(NicCore& core, QueuePair& qp) {
  auto& q = qp.requester;
  const StartedWqe s = q.started.front();
  q.started.pop_front();
  if (q.emit_index > 0) {
    --q.emit_index;
  } else {
    q.emit_packets = 0;
  }
  if (s.response_needed) --q.reads_outstanding;
  ++core.counters.wqes;
  complete_send(qp, s.first_block, s.blocks, s.opcode, s.signalled, s.response_needed ? s.bytes : 0);
}

/// Completes what needs no (further) answer once every PSN before `up_to` is acknowledged.
void acknowledge_up_to(NicCore& core, QueuePair& qp, std::uint32_t up_to) {
  auto& q = qp.requester;
  bool progress = false;
  while (!q.started.empty() && qp.can_finish()) {
    const StartedWqe& s = q.started.front();
    const std::uint32_t end = add_psn(s.first_psn, s.psn_count);
    if (s.response_needed || wire::psn_distance(end, up_to) < 0) break;
    if (s.psn_count == 0 && q.emit_index == 0) break;  // a NOP that has not had its turn
    complete_front(core, qp);
    progress = true;
  }
  if (!qp.can_finish()) return;
  std::uint32_t unacked = up_to;
  if (!q.started.empty() && q.started.front().response_needed) {
    const StartedWqe& s = q.started.front();
    const std::uint32_t awaited = add_psn(s.first_psn, s.psns_received);
    if (wire::psn_distance(awaited, up_to) > 0) unacked = awaited;
  }
  if (wire::psn_distance(q.unacked_psn, unacked) > 0) {
    q.unacked_psn = unacked;
    progress = true;
  }
  if (progress) note_progress(core, qp);
}

/// \return false where the QP has to wait, or failed
bool start_next(NicCore& core, QueuePair& qp) {
  auto& q = qp.requester;
  if (!qp.can_send() || qp.next >= qp.producer) return false;
  fetch_wqe(core, qp, qp.next);
  SpanList spans;
  std::uint8_t vendor = 0;
  const wire::Syndrome bad = check_wqe(core, qp, spans, &vendor);
  if (bad != wire::Syndrome::none) {
    // Completions keep their order: a WQE that cannot run fails when all before it are complete.
    if (q.started.empty()) fail_send(core, qp, {qp.next, core.wqe.blocks, core.wqe.opcode, bad, vendor});
    return false;
  }
  const DecodedWqe& w = core.wqe;
  if ((w.flags & wire::kWqeFenceMask) != 0 && q.reads_outstanding != 0) return false;
  if (needs_response(w.opcode) && q.reads_outstanding >= qp.context.initiator_depth) return false;
  const std::uint32_t psn_count = w.opcode == wire::WqeOpcode::nop ? 0
                                  : is_atomic(w.opcode)            ? 1
                                                                   : packets_of(w.total_bytes, qp.mtu_shift);
  // READs take a PSN for each packet of their response. Distances on the 24-bit circle have a sign only
  // while less than half of it is out.
  const auto out = static_cast<std::uint32_t>(wire::psn_distance(q.unacked_psn, q.next_psn));
  if (!q.started.empty() && out + psn_count > kMostPsnsOut) return false;
  StartedWqe s;
  s.first_block = qp.next;
  s.blocks = w.blocks;
  s.opcode = w.opcode;
  s.signalled = w.signalled();
  s.response_needed = needs_response(w.opcode);
  s.bytes = w.total_bytes;
  s.first_psn = q.next_psn;
  s.psn_count = psn_count;
  q.next_psn = add_psn(q.next_psn, s.psn_count);
  q.reads_outstanding += s.response_needed ? 1 : 0;
  qp.next += w.blocks;
  q.started.push_back(s);
  q.emit_packets = 0;
  return true;
}

/// The packet of `s` that is next to go out, with its payload in `parts`.
RequestPacket next_packet(const NicCore& core, const QueuePair& qp, const StartedWqe& s,
                          const SpanList& spans, FramePart* parts) {
  const DecodedWqe& w = core.wqe;
  const std::uint32_t mtu = qp.mtu();
  RequestPacket p;
  p.immediate = w.immediate;
  p.rkey = w.remote_key;
  p.address = w.remote_address;
  p.length = w.total_bytes;
  p.ack_request = true;
  if (is_atomic(s.opcode)) {
    p.verb = Verb::atomic;
    p.atomic_opcode = s.opcode;
    p.atomic = &w.atomic;
    p.psn = s.first_psn;
    return p;
  }
  if (s.opcode == wire::WqeOpcode::rdma_read) {
    // What has arrived already is not asked for again.
    p.verb = Verb::read;
    p.psn = add_psn(s.first_psn, s.psns_received);
    p.address += std::uint64_t{s.psns_received} * mtu;
    p.length -= std::uint64_t{s.psns_received} * mtu;
    return p;
  }
  const std::uint32_t number = qp.requester.emit_packets;
  const std::uint64_t offset = std::uint64_t{number} * mtu;
  p.verb = is_write(s.opcode) ? Verb::write : Verb::send;
  p.first = number == 0;
  p.last = number + 1 == s.psn_count;
  p.has_immediate =
      s.opcode == wire::WqeOpcode::rdma_write_immediate || s.opcode == wire::WqeOpcode::send_immediate;
  p.solicited = p.last && (w.flags & wire::kWqeSolicited) != 0;
  p.psn = add_psn(s.first_psn, number);
  p.ack_request = p.last || number % kAckEvery == kAckEvery - 1;
  p.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu, w.total_bytes - offset));
  p.parts = parts;
  p.part_count = slice(spans, offset, p.bytes, parts + 1);  // parts[0] is the header's
  return p;
}

/// Fetches the WQE of an outstanding operation again. An application may have changed its bytes meanwhile:
/// rights and lengths are judged by what the WQE says now, so what was started must be what it still says.
wire::Syndrome fetch_again(NicCore& core, QueuePair& qp, const StartedWqe& s, SpanList& spans,
                           std::uint8_t* vendor) {
  fetch_wqe(core, qp, s.first_block);
  const wire::Syndrome bad = check_wqe(core, qp, spans, vendor);
  if (bad != wire::Syndrome::none) return bad;
  const bool same = core.wqe.opcode == s.opcode && core.wqe.total_bytes == s.bytes;
  return same ? wire::Syndrome::none : wire::Syndrome::local_qp_operation;
}

/// Fetches what this turn's packets of `s` hold of GPU memory, as far as it lies in one piece.
void read_ahead(NicCore& core, const QueuePair& qp, const StartedWqe& s, const SpanList& spans,
                std::size_t done) {
  const auto& q = qp.requester;
  const std::int32_t out = wire::psn_distance(q.unacked_psn, add_psn(s.first_psn, q.emit_packets));
  const std::uint64_t window = out < kPacketWindow ? static_cast<std::uint64_t>(kPacketWindow - out) : 0;
  const std::uint64_t packets = std::min<std::uint64_t>(window, kTurnBudget - done);
  const std::uint64_t offset = std::uint64_t{q.emit_packets} * qp.mtu();
  if (packets == 0 || offset >= s.bytes) return core.gpu_payload.forget_ahead();
  FramePart parts[kMaxSpans];
  if (slice(spans, offset, std::min(packets * qp.mtu(), s.bytes - offset), parts) != 0)
    core.gpu_payload.read_ahead(parts[0]);
}

/// Emits packets of the WQE at emit_index. \return false where the QP has to wait
bool emit(NicCore& core, QueuePair& qp, std::size_t& done) {
  auto& q = qp.requester;
  StartedWqe& s = q.started[q.emit_index];
  SpanList spans;
  std::uint8_t vendor = 0;
  const wire::Syndrome bad = fetch_again(core, qp, s, spans, &vendor);
  if (bad != wire::Syndrome::none) {
    // Its keys or bytes went away under it, before or during a retransmission.
    if (q.emit_index == 0) fail_front(core, qp, bad, vendor);
    return false;
  }
  FramePart parts[kMaxSpans + 2];
  const std::uint32_t packets = s.response_needed ? 1 : s.psn_count;
  if (!core.gpu_payload.empty() && !s.response_needed) read_ahead(core, qp, s, spans, done);
  while (q.emit_packets < packets) {
    const RequestPacket p = next_packet(core, qp, s, spans, parts);
    if (!s.response_needed && wire::psn_distance(q.unacked_psn, p.psn) >= kPacketWindow) return false;
    if (done >= kTurnBudget) return false;
    const EncodedHeader header = encode_request(p, qp.context.destination_qpn);
    if (!send_packet(core, qp, header, parts, p.part_count, p.bytes)) return false;
    ++done;
    ++q.emit_packets;
    const std::uint32_t end = s.response_needed ? add_psn(s.first_psn, s.psn_count) : add_psn(p.psn, 1);
    if (wire::psn_distance(q.sent_psn, end) > 0) {
      q.sent_psn = end;
    } else {
      ++core.counters.retransmissions;
    }
    if (q.deadline == 0) q.deadline = acknowledge_deadline(core, qp);
  }
  ++q.emit_index;
  q.emit_packets = 0;
  return true;
}

/// \return false where the QP failed
bool expire(NicCore& core, QueuePair& qp) {
  auto& q = qp.requester;
  ++core.counters.timeouts;
  if (q.retries_left == 0) {
    fail_front(core, qp, wire::Syndrome::transport_retry_exceeded, kVendorRetryExceeded);
    return false;
  }
  --q.retries_left;
  q.deadline = acknowledge_deadline(core, qp);
  q.asked_again_psn = ~0u;
  go_back(qp);
  return true;
}

/// The READ or atomic whose response may come now, or null. Whatever stands before it is acknowledged
/// by the response.
StartedWqe* awaited_response(NicCore& core, QueuePair& qp, std::uint32_t psn) {
  auto& q = qp.requester;
  const auto at =
      std::find_if(q.started.begin(), q.started.end(), [](const StartedWqe& s) { return s.response_needed; });
  if (at == q.started.end()) return nullptr;
  if (wire::psn_distance(at->first_psn, psn) < 0 || wire::psn_distance(psn, q.sent_psn) <= 0) return nullptr;
  acknowledge_up_to(core, qp, at->first_psn);
  if (!qp.can_finish() || q.started.empty() || !q.started.front().response_needed) return nullptr;
  StartedWqe& s = q.started.front();
  const std::uint32_t awaited = add_psn(s.first_psn, s.psns_received);
  const std::int32_t ahead = wire::psn_distance(awaited, psn);
  if (ahead > 0) ask_again(qp, awaited);
  return ahead == 0 ? &s : nullptr;
}

/// Finds the memory that a response goes to. \return false where the QP failed
bool fetch_target(NicCore& core, QueuePair& qp, const StartedWqe& s, SpanList& spans) {
  std::uint8_t vendor = 0;
  const wire::Syndrome bad = fetch_again(core, qp, s, spans, &vendor);
  if (bad != wire::Syndrome::none) fail_front(core, qp, bad, vendor);
  return bad == wire::Syndrome::none;
}

void finish_response(NicCore& core, QueuePair& qp, std::uint32_t psn) {
  auto& q = qp.requester;
  q.unacked_psn = add_psn(psn, 1);
  if (q.started.front().psns_received == q.started.front().psn_count) complete_front(core, qp);
  if (!qp.can_finish()) return;
  note_progress(core, qp);
  acknowledge_up_to(core, qp, q.unacked_psn);
}

}  // namespace

void on_acknowledge(NicCore& core, QueuePair& qp, std::uint32_t psn, std::uint8_t syndrome) {
  auto& q = qp.requester;
  const std::uint8_t kind = syndrome & wire::kAethKindMask;
  const bool positive = kind == 0;
  // A NAK names the PSN that was expected: all before it have arrived.
  const std::uint32_t up_to = positive ? add_psn(psn, 1) : psn;
  if (!qp.can_finish() || q.started.empty()) return;
  if (wire::psn_distance(q.unacked_psn, up_to) < 0 || wire::psn_distance(up_to, q.sent_psn) < 0) return;
  acknowledge_up_to(core, qp, up_to);
  if (!qp.can_finish() || q.started.empty()) return;
  if (positive) {
    // An acknowledgement from behind an unanswered READ: its response was lost.
    if (wire::psn_distance(q.unacked_psn, up_to) > 0) ask_again(qp, q.unacked_psn);
    return;
  }
  if (kind == wire::kAethRnr) {
    if (take_rnr(core, qp, syndrome & 0x1f)) {
      go_back(qp);
    } else {
      fail_front(core, qp, wire::Syndrome::rnr_retry_exceeded, kVendorRnrExceeded);
    }
    return;
  }
  if (kind != wire::kAethNak) return;  // a reserved kind
  const auto code = static_cast<wire::NakCode>(syndrome & 0x1f);
  if (code == wire::NakCode::psn_sequence) {
    if (q.retries_left == 0) {
      fail_front(core, qp, wire::Syndrome::transport_retry_exceeded, kVendorRetryExceeded);
      return;
    }
    --q.retries_left;
    go_back(qp);
    return;
  }
  const SendFailure failure = failure_of_nak(q.started.front(), code);
  fail_send(core, qp, failure);
}

void on_read_response(NicCore& core, QueuePair& qp, std::uint32_t psn, const unsigned char* data,
                      std::uint32_t bytes) {
  if (!qp.can_finish()) return;
  StartedWqe* s = awaited_response(core, qp, psn);
  if (!s || s->opcode != wire::WqeOpcode::rdma_read) return;
  const std::uint64_t offset = std::uint64_t{s->psns_received} * qp.mtu();
  if (bytes != std::min<std::uint64_t>(qp.mtu(), s->bytes - offset)) {
    fail_front(core, qp, wire::Syndrome::bad_response, kVendorLocalLength);
    return;
  }
  SpanList spans;
  if (!fetch_target(core, qp, *s, spans)) return;
  core.scatter(spans, offset, data, bytes);
  if (s->psns_received + 1 == s->psn_count) core.gpu_payload.flush();
  ++s->psns_received;
  finish_response(core, qp, psn);
}

void on_atomic_response(NicCore& core, QueuePair& qp, std::uint32_t psn, std::uint64_t original) {
  if (!qp.can_finish()) return;
  StartedWqe* s = awaited_response(core, qp, psn);
  if (!s || !is_atomic(s->opcode)) return;
  SpanList spans;
  if (!fetch_target(core, qp, *s, spans)) return;
  deliver_original(core, spans, core.wqe.atomic, original);
  s->psns_received = 1;
  finish_response(core, qp, psn);
}

std::size_t run_packets(NicCore& core, QueuePair& qp) {
  auto& q = qp.requester;
  const bool due = q.deadline != 0 && !core.more_mail && core.time() >= q.deadline && !q.started.empty();
  if (due && !expire(core, qp)) return 1;
  std::size_t done = 0;
  while (done < kTurnBudget) {
    if (q.emit_index == q.started.size() && !start_next(core, qp)) break;
    if (!emit(core, qp, done)) break;
    // A NOP completes as soon as nothing stands before it.
    acknowledge_up_to(core, qp, q.unacked_psn);
    if (!qp.can_finish()) return done + 1;
  }
  if (qp.can_finish() && q.deadline != 0 && q.deadline != ~0ull) core.arm_timer(q.deadline);
  return done;
}

}  // namespace belfry::softnic
