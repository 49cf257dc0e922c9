#include "softnic/transport/responder.hpp"

#include <algorithm>

#include "softnic/firmware/failure.hpp"

namespace belfry::softnic {

namespace {

Reply nak(wire::NakCode code) {
  Reply r;
  r.kind = Reply::Kind::nak;
  r.nak = code;
  return r;
}

Reply of_kind(Reply::Kind kind) {
  Reply r;
  r.kind = kind;
  return r;
}

/// Refuses a request: the responder's QP fails too, and its owner is told why.
Reply refuse(NicCore& core, QueuePair& qp, wire::NakCode code) {
  report(qp, code == wire::NakCode::remote_access     ? AsyncEvent::qp_access_error
             : code == wire::NakCode::invalid_request ? AsyncEvent::qp_request_error
                                                      : AsyncEvent::qp_fatal);
  enter_error(core, qp, wire::Syndrome::local_access);
  return nak(code);
}

Reply not_ready(NicCore& core, QueuePair& qp) {
  // What follows the refused packet is dropped without a word: a sequence NAK for each would use up the
  // requester's retries, which an RNR pause must not.
  qp.responder.nak_sent = true;
  Reply r = of_kind(Reply::Kind::rnr);
  r.rnr_timer = qp.context.min_rnr_timer;
  ++core.counters.rnr_naks;
  return r;
}

void accept(QueuePair& qp, const RequestPacket& p) {
  auto& r = qp.responder;
  r.expected_psn = (r.expected_psn + p.psn_count) & wire::kPsnMask;
  r.nak_sent = false;
  if (p.last) r.message_count = (r.message_count + 1) & wire::kPsnMask;
}

bool push_receive(NicCore& core, QueuePair& qp, const Completion& completion) {
  if (qp.receive_cq->push(completion)) return true;
  report(qp, AsyncEvent::qp_fatal);
  enter_error(core, qp, wire::Syndrome::local_qp_operation);
  return false;
}

Completion receive_completion(const QueuePair& qp, std::uint64_t index) {
  Completion c;
  c.counter = static_cast<std::uint16_t>(index);
  c.qpn = qp.number;
  c.user_index = qp.attributes.user_index;
  c.remote_qpn = qp.context.destination_qpn;
  c.slid = qp.context.path.dlid;
  return c;
}

/// A receive that cannot take its message: completes in error here, and the sender is refused.
Reply fail_receive(NicCore& core, QueuePair& qp, wire::Syndrome syndrome, std::uint8_t vendor,
                   wire::NakCode code) {
  Completion c = receive_completion(qp, qp.responder.receive_index);
  c.opcode = wire::CqeOpcode::responder_error;
  c.syndrome = syndrome;
  c.vendor = vendor;
  qp.receive_cq->push(c);
  qp.responder.open = false;  // this receive is complete: the flush begins behind it
  enter_error(core, qp, syndrome);
  return nak(code);
}

/// Resolves the memory of the receive WQE in hand, as far as its keys are good.
void resolve_receive(NicCore& core, QueuePair& qp) {
  auto& r = qp.responder;
  r.key_epoch = core.key_epoch;
  r.spans.clear();
  r.span_fault = false;
  const std::uint32_t stride = qp.attributes.receive_stride;
  const auto* entry = static_cast<const unsigned char*>(qp.attributes.receive_queue) +
                      (r.receive_index & (qp.attributes.receive_entries - 1)) * stride;
  const std::uint32_t segments = std::min(stride / wire::kSegmentBytes, kMaxSpans);
  for (std::uint32_t i = 0; i < segments; ++i) {
    wire::DataSegment segment;
    std::memcpy(&segment, entry + i * wire::kSegmentBytes, sizeof segment);
    if (segment.lkey.get() == wire::kInvalidLkey) break;
    const std::uint32_t bytes = segment.byte_count.get() & ~wire::kInlineFlag;
    if (bytes == 0) continue;
    unsigned char* memory;
    if (core.resolve(segment.lkey.get(), qp.attributes.pd, segment.address.get(), bytes, kAccessLocalWrite,
                     &memory) != KeyFault::none) {
      r.span_fault = true;
      break;
    }
    r.spans.add(memory, bytes);
  }
}

/// Takes the next receive WQE: it is open until its message is complete. \pre one is posted
void take_receive(NicCore& core, QueuePair& qp) {
  auto& r = qp.responder;
  r.receive_index = qp.receive_next++;
  r.received = 0;
  r.open = true;
  r.verb = Verb::send;
  resolve_receive(core, qp);
}

Reply respond_send(NicCore& core, QueuePair& qp, const RequestPacket& p) {
  auto& r = qp.responder;
  if (p.first) {
    if (receives_posted(qp) == 0) return not_ready(core, qp);
    take_receive(core, qp);
  } else if (r.key_epoch != core.key_epoch) {
    resolve_receive(core, qp);  // a key went while the message came
  }
  if (r.received + p.bytes > r.spans.bytes) {
    if (r.span_fault)
      return fail_receive(core, qp, wire::Syndrome::local_protection, kVendorLocalProtection,
                          wire::NakCode::remote_operation);
    return fail_receive(core, qp, wire::Syndrome::local_length, kVendorLocalLength,
                        wire::NakCode::invalid_request);
  }
  for (std::uint32_t i = 0; i < p.part_count; ++i) {
    core.scatter(r.spans, r.received, static_cast<const unsigned char*>(p.parts[i].data), p.parts[i].bytes);
    r.received += p.parts[i].bytes;
  }
  if (p.last) core.gpu_payload.flush();
  r.open = !p.last;
  r.verb = Verb::send;
  accept(qp, p);
  if (p.last) {
    Completion c = receive_completion(qp, r.receive_index);
    c.opcode = p.has_immediate ? wire::CqeOpcode::responder_send_immediate : wire::CqeOpcode::responder_send;
    c.bytes = static_cast<std::uint32_t>(r.received);
    c.immediate = p.immediate;
    c.solicited = p.solicited;
    push_receive(core, qp, c);
  }
  return of_kind(Reply::Kind::ack);
}

/// Where what is left of the WRITE in hand goes. \return false where key, bounds or rights forbid it
bool resolve_write(NicCore& core, QueuePair& qp) {
  auto& r = qp.responder;
  r.key_epoch = core.key_epoch;
  r.write_to = nullptr;
  return r.write_left == 0 || core.resolve(r.write_key, qp.attributes.pd, r.write_address, r.write_left,
                                           kAccessRemoteWrite, &r.write_to) == KeyFault::none;
}

/// First packet of a WRITE: the whole target is checked before a byte moves.
bool open_write(NicCore& core, QueuePair& qp, const RequestPacket& p) {
  auto& r = qp.responder;
  if (!(qp.context.access & kAccessRemoteWrite)) return false;
  r.write_key = p.rkey;
  r.write_address = p.address;
  r.write_left = p.length;
  r.received = 0;
  return resolve_write(core, qp);
}

Reply respond_write(NicCore& core, QueuePair& qp, const RequestPacket& p) {
  auto& r = qp.responder;
  // Before anything moves: a packet that needs a receive must find one, or come again whole.
  if (p.last && p.has_immediate && receives_posted(qp) == 0) return not_ready(core, qp);
  // A key that went while the message came grants nothing any more.
  const bool granted = p.first                         ? open_write(core, qp, p)
                       : r.key_epoch != core.key_epoch ? resolve_write(core, qp)
                                                       : true;
  if (!granted) return refuse(core, qp, wire::NakCode::remote_access);
  if (p.bytes > r.write_left || (p.last && p.bytes != r.write_left))
    return refuse(core, qp, wire::NakCode::invalid_request);
  for (std::uint32_t i = 0; i < p.part_count; ++i) {
    core.move(r.write_to, static_cast<const unsigned char*>(p.parts[i].data), p.parts[i].bytes);
    r.write_to += p.parts[i].bytes;
  }
  if (p.last) core.gpu_payload.flush();
  r.write_address += p.bytes;
  r.write_left -= p.bytes;
  r.received += p.bytes;
  r.open = !p.last;
  r.verb = Verb::write;
  accept(qp, p);
  if (p.last && p.has_immediate) {
    Completion c = receive_completion(qp, qp.receive_next++);
    c.opcode = wire::CqeOpcode::responder_write_immediate;
    c.bytes = static_cast<std::uint32_t>(r.received);
    c.immediate = p.immediate;
    c.solicited = p.solicited;
    push_receive(core, qp, c);
  }
  return of_kind(Reply::Kind::ack);
}

/// \param again the request was seen before: nothing advances, and nothing is held against the peer
Reply respond_read(NicCore& core, QueuePair& qp, const RequestPacket& p, bool again) {
  unsigned char* memory = nullptr;
  const bool granted = (qp.context.access & kAccessRemoteRead) != 0 &&
                       (p.length == 0 || core.resolve(p.rkey, qp.attributes.pd, p.address, p.length,
                                                      kAccessRemoteRead, &memory) == KeyFault::none);
  if (!granted) return again ? of_kind(Reply::Kind::none) : refuse(core, qp, wire::NakCode::remote_access);
  if (!again) accept(qp, p);
  Reply r = of_kind(Reply::Kind::data);
  r.data = memory;
  return r;
}

Reply respond_atomic(NicCore& core, QueuePair& qp, const RequestPacket& p) {
  if (!(qp.context.access & kAccessRemoteAtomic)) return refuse(core, qp, wire::NakCode::remote_access);
  if (p.address % p.atomic->bytes != 0) return refuse(core, qp, wire::NakCode::invalid_request);
  unsigned char* memory = nullptr;
  if (core.resolve(p.rkey, qp.attributes.pd, p.address, p.atomic->bytes, kAccessRemoteAtomic, &memory) !=
          KeyFault::none ||
      reinterpret_cast<std::uintptr_t>(memory) % p.atomic->bytes != 0)
    return refuse(core, qp, wire::NakCode::remote_access);
  Reply r = of_kind(Reply::Kind::original);
  r.original = execute_atomic(core, p.atomic_opcode, *p.atomic, memory);
  auto& saved = qp.responder.atomics;
  saved.push_back({p.psn, r.original});
  if (saved.size() > std::max<std::size_t>(1, qp.context.responder_depth)) saved.pop_front();
  accept(qp, p);
  return r;
}

/// A request from before expected_psn: its answer was lost. Nothing is done twice.
Reply respond_duplicate(NicCore& core, QueuePair& qp, const RequestPacket& p) {
  ++core.counters.duplicates;
  if (p.verb == Verb::read) return respond_read(core, qp, p, true);
  if (p.verb == Verb::atomic) {
    for (const ReceivedAtomic& a : qp.responder.atomics) {
      if (a.psn != p.psn) continue;
      Reply r = of_kind(Reply::Kind::original);
      r.original = a.original;
      return r;
    }
    return of_kind(Reply::Kind::none);
  }
  return of_kind(Reply::Kind::duplicate);
}

bool in_sequence(const ResponderState& r, const RequestPacket& p) {
  if (p.first == r.open) return false;  // a message begins inside another, or goes on without one
  return p.first || p.verb == r.verb;
}

}  // namespace

Reply respond(NicCore& core, QueuePair& qp, const RequestPacket& p) {
  if (!qp.can_receive()) return {};
  core.in_hand.qp = &qp;
  if (!qp.established) {
    qp.established = true;
    if (qp.state == QpState::rtr) report(qp, AsyncEvent::communication_established);
  }
  auto& r = qp.responder;
  const std::int32_t ahead = wire::psn_distance(r.expected_psn, p.psn);
  if (ahead > 0) {
    // One NAK for a gap: the requester goes back, and what it had under way is dropped here.
    if (r.nak_sent) return {};
    r.nak_sent = true;
    ++core.counters.sequence_naks;
    return nak(wire::NakCode::psn_sequence);
  }
  if (ahead < 0) return respond_duplicate(core, qp, p);
  const bool answered = p.verb == Verb::read || p.verb == Verb::atomic;
  if (!in_sequence(r, p) || p.length > core.config.limits.max_message ||
      (answered && qp.context.responder_depth == 0))
    return refuse(core, qp, wire::NakCode::invalid_request);
  switch (p.verb) {
    case Verb::send:
      return respond_send(core, qp, p);
    case Verb::write:
      return respond_write(core, qp, p);
    case Verb::read:
      return respond_read(core, qp, p, false);
    case Verb::atomic:
      return respond_atomic(core, qp, p);
  }
  return {};
}

}  // namespace belfry::softnic
