/// \file
/// The direct path: requester and responder are QPs of one process, and hand packets to each other as
/// function calls. PSNs, rights, RNR and timers are the same as on the wire.

#include "softnic/transport/requester.hpp"
#include "softnic/transport/responder.hpp"

namespace belfry::softnic {

namespace {

/// How far ahead of execution the ring is prefetched: about a cross-core miss at 20 M WQEs a second.
constexpr unsigned kPrefetchBlocks = 8;

static_assert(kDirectPartBytes <= kGpuStagedBytes);

/// Only what is announced: a block its poster is still writing would be torn from the poster's cache.
void prefetch(const QueuePair& qp, std::uint64_t block) {
  if (block < qp.producer) __builtin_prefetch(qp.block(block));
}

bool reaches(const NicCore& core, const QueuePair& from, const QueuePair& to) {
  const DeviceIdentity& target = core.devices[to.attributes.device];
  const PathAttributes& path = from.context.path;
  if (target.link == LinkLayer::infiniband && path.dlid != 0) return path.dlid == target.lid;
  if (!path.global) return false;
  for (const GidEntry& entry : target.gids)
    if (entry.gid == path.dgid) return true;
  return false;
}

}  // namespace

QueuePair* find_direct_peer(NicCore& core, QueuePair& qp) {
  if (qp.peer_epoch != core.epoch) {
    qp.peer_epoch = core.epoch;
    QueuePair* peer = core.find_qp(qp.context.destination_qpn);
    const bool connected =
        peer && peer->context.destination_qpn == qp.number && peer->can_receive() && reaches(core, qp, *peer);
    qp.peer = connected ? peer : nullptr;
  }
  return qp.peer;
}

namespace {

/// What became of one WQE's turn.
enum class Turn { complete, part, wait, failed };

StartedWqe started_of(const NicCore& core, const QueuePair& qp) {
  StartedWqe s;
  s.first_block = qp.next;
  s.blocks = core.wqe.blocks;
  s.opcode = core.wqe.opcode;
  s.signalled = core.wqe.signalled();
  s.bytes = core.wqe.total_bytes;
  return s;
}

/// The peer took a packet: every retry is to be had again.
void note_answer(QueuePair& qp) {
  qp.requester.deadline = 0;
  qp.requester.retries_left = qp.context.retry_count;
  qp.requester.rnr_retries_left = qp.context.rnr_retry;
}

void finish(NicCore& core, QueuePair& qp) {
  qp.requester.emit_packets = 0;
  note_answer(qp);
  qp.next += core.wqe.blocks;
  complete_send(qp, qp.next - core.wqe.blocks, core.wqe.blocks, core.wqe.opcode, core.wqe.signalled(),
                needs_response(core.wqe.opcode) ? core.wqe.total_bytes : 0);
}

/// A packet that nobody answered: the first loss starts the timer, each expiry costs a retry.
Turn lose(NicCore& core, QueuePair& qp) {
  auto& q = qp.requester;
  if (q.deadline != 0) {  // run_direct() comes here only after it has passed
    ++core.counters.timeouts;
    if (q.retries_left == 0) {
      fail_send(core, qp,
                {qp.next, core.wqe.blocks, core.wqe.opcode, wire::Syndrome::transport_retry_exceeded,
                 kVendorRetryExceeded});
      return Turn::failed;
    }
    --q.retries_left;
    ++core.counters.retransmissions;
  }
  q.deadline = acknowledge_deadline(core, qp);
  core.arm_timer(q.deadline);
  return Turn::wait;
}

Turn take_reply(NicCore& core, QueuePair& qp, const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::ack:
    case Reply::Kind::data:
    case Reply::Kind::original:
      note_answer(qp);
      return Turn::part;
    case Reply::Kind::rnr:
      if (take_rnr(core, qp, reply.rnr_timer)) return Turn::wait;
      fail_send(core, qp,
                {qp.next, core.wqe.blocks, core.wqe.opcode, wire::Syndrome::rnr_retry_exceeded,
                 kVendorRnrExceeded});
      return Turn::failed;
    case Reply::Kind::nak:
      // With both ends in one process a sequence error is two ends set up with other PSNs: no retry
      // can mend it, and the timer says so in the end.
      if (reply.nak == wire::NakCode::psn_sequence) return lose(core, qp);
      fail_send(core, qp, failure_of_nak(started_of(core, qp), reply.nak));
      return Turn::failed;
    case Reply::Kind::none:
    case Reply::Kind::duplicate:
      break;
  }
  return lose(core, qp);
}

/// Fills in what every packet of the WQE in hand says.
RequestPacket packet_of_wqe(const NicCore& core, const QueuePair& qp) {
  const DecodedWqe& w = core.wqe;
  RequestPacket p;
  p.verb = is_write(w.opcode)    ? Verb::write
           : is_send(w.opcode)   ? Verb::send
           : is_atomic(w.opcode) ? Verb::atomic
                                 : Verb::read;
  p.has_immediate =
      w.opcode == wire::WqeOpcode::rdma_write_immediate || w.opcode == wire::WqeOpcode::send_immediate;
  p.solicited = (w.flags & wire::kWqeSolicited) != 0;
  p.immediate = w.immediate;
  p.address = w.remote_address;
  p.rkey = w.remote_key;
  p.length = w.total_bytes;
  p.psn = (qp.requester.next_psn) & wire::kPsnMask;
  return p;
}

Turn execute_push(NicCore& core, QueuePair& qp, QueuePair& peer, const SpanList& spans) {
  auto& q = qp.requester;
  const std::uint32_t total_packets = packets_of(core.wqe.total_bytes, qp.mtu_shift);
  const std::uint64_t offset = std::uint64_t{q.emit_packets} << qp.mtu_shift;
  const std::uint64_t left = core.wqe.total_bytes - offset;
  const std::uint32_t bytes = static_cast<std::uint32_t>(left < kDirectPartBytes ? left : kDirectPartBytes);

  FramePart parts[kMaxSpans];
  RequestPacket p = packet_of_wqe(core, qp);
  p.first = q.emit_packets == 0;
  p.last = bytes == left;
  p.psn_count = p.last ? total_packets - q.emit_packets : bytes >> qp.mtu_shift;
  p.parts = parts;
  p.part_count = slice(spans, offset, bytes, parts);
  core.vouch(parts, p.part_count);  // a source that is gone is this queue's fault, not its peer's
  p.bytes = bytes;
  const Reply reply = respond(core, peer, p);
  core.gpu_payload.flush();  // while the peer is in hand: the memory is its
  core.in_hand.qp = &qp;
  const Turn turn = take_reply(core, qp, reply);
  if (turn != Turn::part) return turn;
  q.next_psn = (q.next_psn + p.psn_count) & wire::kPsnMask;
  q.emit_packets += p.psn_count;
  return p.last ? Turn::complete : Turn::part;
}

Turn execute_read(NicCore& core, QueuePair& qp, QueuePair& peer, const SpanList& spans) {
  auto& q = qp.requester;
  const std::uint64_t offset = std::uint64_t{q.emit_packets} << qp.mtu_shift;
  const std::uint64_t left = core.wqe.total_bytes - offset;
  RequestPacket p = packet_of_wqe(core, qp);
  // A part is a READ of its own, as a retried READ resumes in the middle.
  p.address += offset;
  p.length = left < kDirectPartBytes ? left : kDirectPartBytes;
  p.psn_count = packets_of(p.length, qp.mtu_shift);
  const Reply reply = respond(core, peer, p);
  const FramePart source{reply.data, static_cast<std::size_t>(p.length)};
  if (reply.kind == Reply::Kind::data) {
    // Where the source is gone, it is the peer's fault, not that of the queue that reads it.
    core.vouch(&source, 1);
  }
  core.in_hand.qp = &qp;
  const Turn turn = take_reply(core, qp, reply);
  if (turn != Turn::part) return turn;
  if (p.length != 0) core.scatter(spans, offset, static_cast<const unsigned char*>(source.data), p.length);
  core.gpu_payload.flush();
  q.next_psn = (q.next_psn + p.psn_count) & wire::kPsnMask;
  q.emit_packets += p.psn_count;
  return p.length == left ? Turn::complete : Turn::part;
}

Turn execute_atomic_wqe(NicCore& core, QueuePair& qp, QueuePair& peer, const SpanList& spans) {
  RequestPacket p = packet_of_wqe(core, qp);
  p.atomic_opcode = core.wqe.opcode;
  p.atomic = &core.wqe.atomic;
  const Reply reply = respond(core, peer, p);
  core.in_hand.qp = &qp;
  const Turn turn = take_reply(core, qp, reply);
  if (turn != Turn::part) return turn;
  deliver_original(core, spans, core.wqe.atomic, reply.original);
  qp.requester.next_psn = (qp.requester.next_psn + 1) & wire::kPsnMask;
  return Turn::complete;
}

/// A WQE is fetched again for each part of its message, and an application may have changed it meanwhile:
/// a message that has begun goes on only as what it was.
bool is_what_began(const NicCore& core, QueuePair& qp) {
  auto& q = qp.requester;
  if (q.emit_packets == 0) {
    q.part_opcode = core.wqe.opcode;
    q.part_bytes = core.wqe.total_bytes;
  }
  return q.part_opcode == core.wqe.opcode && q.part_bytes == core.wqe.total_bytes;
}

Turn execute_wqe(NicCore& core, QueuePair& qp) {
  SpanList spans;
  std::uint8_t vendor = 0;
  const wire::Syndrome bad = check_wqe(core, qp, spans, &vendor);
  if (bad != wire::Syndrome::none) {
    fail_send(core, qp, {qp.next, core.wqe.blocks, core.wqe.opcode, bad, vendor});
    return Turn::failed;
  }
  if (!is_what_began(core, qp)) {
    fail_send(
        core, qp,
        {qp.next, core.wqe.blocks, core.wqe.opcode, wire::Syndrome::local_qp_operation, kVendorBadSize});
    return Turn::failed;
  }
  if (core.wqe.opcode == wire::WqeOpcode::nop) return Turn::complete;
  QueuePair* peer = find_direct_peer(core, qp);
  if (!peer) return lose(core, qp);
  if (is_atomic(core.wqe.opcode)) return execute_atomic_wqe(core, qp, *peer, spans);
  if (core.wqe.opcode == wire::WqeOpcode::rdma_read) return execute_read(core, qp, *peer, spans);
  return execute_push(core, qp, *peer, spans);
}

/// The commonest WQE, a small WRITE of one piece in one block, with everything in order, without the
/// general path's descriptions. It has the same checks and effects; whatever is not plainly in order is
/// left, untouched, to the general path, which knows what to say about it.
bool write_at_once(NicCore& core, QueuePair& qp) {
  const unsigned char* block = qp.block(qp.next);
  wire::ControlSegment control;
  wire::RemoteAddressSegment remote;
  wire::DataSegment data;
  std::memcpy(&control, block, sizeof control);
  std::memcpy(&remote, block + 16, sizeof remote);
  std::memcpy(&data, block + 32, sizeof data);
  const std::uint32_t segments = control.segments();
  if (control.opcode() != wire::WqeOpcode::rdma_write || control.qpn() != qp.number || segments < 3 ||
      segments > 4)
    return false;
  QueuePair* peer = find_direct_peer(core, qp);
  auto& q = qp.requester;
  if (!peer || q.emit_packets != 0 || peer->responder.open || peer->responder.expected_psn != q.next_psn ||
      !peer->established || !(peer->context.access & kAccessRemoteWrite))
    return false;

  const unsigned char* from = block + 36;
  const std::uint32_t count = data.byte_count.get();
  const std::uint32_t bytes = count & ~wire::kInlineFlag;
  if (bytes == 0 || bytes > qp.mtu()) return false;
  if (count & wire::kInlineFlag) {
    if (bytes > segments * wire::kSegmentBytes - 36) return false;
  } else {
    unsigned char* local;
    if (segments != 3 || core.resolve(data.lkey.get(), qp.attributes.pd, data.address.get(), bytes, 0,
                                      &local) != KeyFault::none)
      return false;
    from = local;
  }
  unsigned char* to;
  if (core.resolve(remote.rkey.get(), peer->attributes.pd, remote.address.get(), bytes, kAccessRemoteWrite,
                   &to) != KeyFault::none)
    return false;

  if (!core.gpu_payload.empty() && (core.gpu_payload.holds(to) || core.gpu_payload.holds(from))) return false;
  const FramePart source{from, bytes};
  touch(&source, 1);
  core.in_hand.qp = peer;
  move_payload(to, from, bytes);
  core.in_hand.qp = &qp;
  q.next_psn = (q.next_psn + 1) & wire::kPsnMask;
  auto& r = peer->responder;
  r.expected_psn = q.next_psn;
  r.message_count = (r.message_count + 1) & wire::kPsnMask;
  r.nak_sent = false;
  note_answer(qp);
  ++core.counters.wqes;
  complete_send(qp, qp.next, 1, wire::WqeOpcode::rdma_write, control.signalled(), 0);
  ++qp.next;
  return true;
}

}  // namespace

std::size_t run_direct(NicCore& core, QueuePair& qp) {
  std::size_t done = 0;
  core.in_hand.requester = &qp;
  for (unsigned ahead = 1; ahead < kPrefetchBlocks; ++ahead) prefetch(qp, qp.next + ahead);
  // A draining queue finishes the message that it is in, and starts none.
  while (done < kTurnBudget && qp.next < qp.producer && (qp.can_send() || qp.requester.emit_packets != 0)) {
    const std::uint64_t deadline = qp.requester.deadline;
    if (deadline != 0 && core.time() < deadline) {
      if (deadline != ~0ull) core.arm_timer(deadline);
      break;
    }
    prefetch(qp, qp.next + kPrefetchBlocks);
    if (qp.can_send() && write_at_once(core, qp)) {
      ++done;
      continue;
    }
    fetch_wqe(core, qp, qp.next);
    const Turn turn = execute_wqe(core, qp);
    if (turn == Turn::wait) break;
    ++done;
    if (turn == Turn::failed) break;
    if (turn == Turn::part) return done;  // large message: others have their turn
    ++core.counters.wqes;
    finish(core, qp);
    if (!qp.can_send()) break;
  }
  return done;
}

}  // namespace belfry::softnic
