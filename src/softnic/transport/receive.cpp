#include "softnic/transport/receive.hpp"

#include <algorithm>

#include "softnic/firmware/failure.hpp"
#include "softnic/transport/codec.hpp"
#include "softnic/transport/requester.hpp"
#include "softnic/transport/responder.hpp"
#include "softnic/transport/send_packet.hpp"

namespace belfry::softnic {

namespace {

/// Frames that one QP's answers may take before the next QP has its turn.
constexpr std::uint32_t kOwedBudget = 64;

void owe(NicCore& core, QueuePair& qp, const OwedResponse& response) {
  auto& r = qp.responder;
  // A later positive acknowledgement says all that an earlier one says.
  const bool merges = response.kind == OwedResponse::Kind::acknowledge && response.aeth == wire::kAethAck &&
                      !r.owed.empty() && r.owed.back().kind == OwedResponse::Kind::acknowledge &&
                      r.owed.back().aeth == wire::kAethAck;
  if (merges) {
    r.owed.back().psn = response.psn;
  } else {
    r.owed.push_back(response);
  }
  if (!r.in_owed_list) {
    r.in_owed_list = true;
    core.owing.push_back(&qp);
  }
}

void owe_acknowledge(NicCore& core, QueuePair& qp, std::uint32_t psn, std::uint8_t aeth) {
  OwedResponse o;
  o.psn = psn;
  o.aeth = aeth;
  owe(core, qp, o);
}

void owe_nak(NicCore& core, QueuePair& qp, std::uint32_t psn, wire::NakCode code) {
  owe_acknowledge(core, qp, psn, static_cast<std::uint8_t>(wire::kAethNak | static_cast<unsigned>(code)));
}

/// A request asked again takes the place of what is still queued for it, or of the rest of it.
void supersede(ResponderState& r, std::uint32_t psn) {
  std::erase_if(r.owed, [&](const OwedResponse& o) {
    return o.kind != OwedResponse::Kind::acknowledge && wire::psn_distance(psn, o.psn) >= 0;
  });
  for (OwedResponse& o : r.owed) {
    const std::int32_t before = wire::psn_distance(o.psn, psn);
    if (o.kind == OwedResponse::Kind::read && before < static_cast<std::int32_t>(o.psn_count))
      o.psn_count = std::max(o.psns_sent, static_cast<std::uint32_t>(before));
  }
}

void owe_read(NicCore& core, QueuePair& qp, const RequestPacket& p) {
  supersede(qp.responder, p.psn);
  OwedResponse o;
  o.kind = OwedResponse::Kind::read;
  o.psn = p.psn;
  o.psn_count = p.psn_count;
  o.rkey = p.rkey;
  o.address = p.address;
  o.length = p.length;
  owe(core, qp, o);
}

void answer(NicCore& core, QueuePair& qp, const RequestPacket& p, const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::none:
      return;
    case Reply::Kind::ack:
      if (p.ack_request) owe_acknowledge(core, qp, p.psn, wire::kAethAck);
      return;
    case Reply::Kind::duplicate:
      owe_acknowledge(core, qp, (qp.responder.expected_psn - 1) & wire::kPsnMask, wire::kAethAck);
      return;
    case Reply::Kind::rnr:
      owe_acknowledge(core, qp, p.psn, static_cast<std::uint8_t>(wire::kAethRnr | (reply.rnr_timer & 0x1f)));
      return;
    case Reply::Kind::nak: {
      const std::uint32_t psn = reply.nak == wire::NakCode::psn_sequence ? qp.responder.expected_psn : p.psn;
      owe_acknowledge(core, qp, psn,
                      static_cast<std::uint8_t>(wire::kAethNak | static_cast<unsigned>(reply.nak)));
      return;
    }
    case Reply::Kind::data:
      owe_read(core, qp, p);
      return;
    case Reply::Kind::original: {
      supersede(qp.responder, p.psn);
      OwedResponse o;
      o.kind = OwedResponse::Kind::atomic;
      o.psn = p.psn;
      o.original = reply.original;
      owe(core, qp, o);
      return;
    }
  }
}

/// Whether a packet keeps the sizes that the path MTU and the QP's depth demand.
bool well_formed(const QueuePair& qp, const RequestPacket& p) {
  if (p.verb == Verb::read || p.verb == Verb::atomic) {
    std::size_t pending = 0;
    for (const OwedResponse& o : qp.responder.owed) pending += o.kind != OwedResponse::Kind::acknowledge;
    return pending < qp.context.responder_depth;
  }
  return p.last ? p.bytes <= qp.mtu() : p.bytes == qp.mtu();
}

void handle_request(NicCore& core, QueuePair& qp, DecodedPacket& packet) {
  if (!qp.can_receive()) return;
  RequestPacket& p = packet.request;
  p.parts = &packet.payload;
  p.atomic = &packet.atomic;
  p.part_count = p.bytes != 0 ? 1 : 0;
  if (p.verb == Verb::read) p.psn_count = packets_of(p.length, qp.mtu_shift);
  // A packet out of its turn is not judged: it is dropped, or answered again.
  if (p.psn == qp.responder.expected_psn && !well_formed(qp, p)) {
    report(qp, AsyncEvent::qp_request_error);
    enter_error(core, qp, wire::Syndrome::local_access);
    owe_acknowledge(
        core, qp, p.psn,
        static_cast<std::uint8_t>(wire::kAethNak | static_cast<unsigned>(wire::NakCode::invalid_request)));
    return;
  }
  answer(core, qp, p, respond(core, qp, p));
}

void dispatch(NicCore& core, QueuePair& qp, DecodedPacket& packet) {
  switch (packet.kind) {
    case DecodedPacket::Kind::request:
      return handle_request(core, qp, packet);
    case DecodedPacket::Kind::acknowledge:
      return on_acknowledge(core, qp, packet.psn, packet.syndrome);
    case DecodedPacket::Kind::read_response:
      return on_read_response(core, qp, packet.psn, static_cast<const unsigned char*>(packet.payload.data),
                              static_cast<std::uint32_t>(packet.payload.bytes));
    case DecodedPacket::Kind::atomic_response:
      return on_atomic_response(core, qp, packet.psn, packet.original);
  }
}

/// Frames for somebody else's address, or from somebody who is not the connected peer, are dropped.
bool from_peer(const NicCore& core, const QueuePair& qp, const FrameHeader& header) {
  if (qp.state == QpState::reset || qp.state == QpState::init) return false;
  if (header.source_qpn != qp.context.destination_qpn) return false;
  const DeviceIdentity& device = core.devices[qp.attributes.device];
  if (header.dlid != 0 && device.link == LinkLayer::infiniband) return header.dlid == device.lid;
  return header.global != 0 && std::any_of(device.gids.begin(), device.gids.end(),
                                           [&](const GidEntry& e) { return e.gid == header.dgid; });
}

/// \return false where the fabric is full
bool send_read_response(NicCore& core, QueuePair& qp, OwedResponse& o, std::uint32_t& budget) {
  unsigned char* memory = nullptr;
  if (o.length != 0 && core.resolve(o.rkey, qp.attributes.pd, o.address, o.length, kAccessRemoteRead,
                                    &memory) != KeyFault::none) {
    // The key was destroyed while its bytes were being read.
    report(qp, AsyncEvent::qp_access_error);
    enter_error(core, qp, wire::Syndrome::local_access);
    const std::uint32_t psn = (o.psn + o.psns_sent) & wire::kPsnMask;
    o = OwedResponse{};
    o.psn = psn;
    o.aeth = static_cast<std::uint8_t>(wire::kAethNak | static_cast<unsigned>(wire::NakCode::remote_access));
    return true;
  }
  if (!core.gpu_payload.empty() && o.length != 0) {
    const std::uint64_t offset = std::uint64_t{o.psns_sent} * qp.mtu();
    const std::uint64_t most = std::min<std::uint64_t>(o.length - offset, std::uint64_t{budget} * qp.mtu());
    core.gpu_payload.read_ahead({memory + offset, static_cast<std::size_t>(most)});
  }
  while (o.psns_sent < o.psn_count && budget != 0) {
    const std::uint64_t offset = std::uint64_t{o.psns_sent} * qp.mtu();
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(qp.mtu(), o.length - offset));
    const ResponsePosition position{o.psns_sent == 0, o.psns_sent + 1 == o.psn_count};
    const EncodedHeader header =
        encode_read_response(qp.context.destination_qpn, (o.psn + o.psns_sent) & wire::kPsnMask, position,
                             qp.responder.message_count, bytes);
    FramePart parts[3] = {{}, {memory + offset, bytes}, {}};
    if (!send_packet(core, qp, header, parts, 1, bytes)) return false;
    ++o.psns_sent;
    --budget;
  }
  return true;
}

/// \return false where the fabric is full or the turn is over
bool send_first_owed(NicCore& core, QueuePair& qp, std::uint32_t& budget) {
  OwedResponse& o = qp.responder.owed.front();
  const std::uint32_t to = qp.context.destination_qpn;
  if (o.kind == OwedResponse::Kind::read) {
    if (!send_read_response(core, qp, o, budget)) return false;
    if (o.kind == OwedResponse::Kind::read) {
      if (o.psns_sent < o.psn_count) return false;
      qp.responder.owed.pop_front();
      return true;
    }
  }
  const EncodedHeader header = o.kind == OwedResponse::Kind::atomic
                                   ? encode_atomic_response(to, o.psn, qp.responder.message_count, o.original)
                                   : encode_acknowledge(to, o.psn, o.aeth, qp.responder.message_count);
  FramePart parts[2];
  if (!send_packet(core, qp, header, parts, 0, 0)) return false;
  --budget;
  qp.responder.owed.pop_front();
  return true;
}

}  // namespace

void PacketReceiver::receive(const FrameHeader& header, const std::byte* data) {
  DecodedPacket packet;
  if (!decode_packet(reinterpret_cast<const unsigned char*>(data), header.bytes, packet)) {
    ++core_.counters.frames_ignored;
    return;
  }
  QueuePair* qp = core_.find_qp(packet.destination_qpn);
  if (!qp || !from_peer(core_, *qp, header)) {
    ++core_.counters.frames_ignored;
    return;
  }
  ++core_.counters.frames_received;
  if (qp != qp_) settle();
  qp_ = qp;
  psn_ = packet.psn;
  is_request_ = packet.kind == DecodedPacket::Kind::request;
  core_.in_hand.qp = qp;
  // Here, not around the fabric's poll: the fabric must be able to finish what it is doing.
  if (survive_faults([&] { dispatch(core_, *qp, packet); })) return;
  take_fault(core_);
  if (packet.kind == DecodedPacket::Kind::request)
    owe_nak(core_, *qp, packet.psn, wire::NakCode::remote_operation);
}

void PacketReceiver::settle() {
  if (qp_ == nullptr || !core_.gpu_payload.pending()) return;
  core_.in_hand.qp = qp_;
  if (survive_faults([&] { core_.gpu_payload.flush(); })) return;
  take_fault(core_);
  if (is_request_) owe_nak(core_, *qp_, psn_, wire::NakCode::remote_operation);
}

std::size_t send_owed(NicCore& core) {
  std::size_t sent = 0;
  for (std::size_t i = 0; i < core.owing.size();) {
    QueuePair& qp = *core.owing[i];
    core.in_hand.qp = &qp;
    std::uint32_t budget = kOwedBudget;
    while (!qp.responder.owed.empty() && budget != 0 && send_first_owed(core, qp, budget)) {
    }
    sent += kOwedBudget - budget;
    if (qp.responder.owed.empty()) {
      qp.responder.in_owed_list = false;
      core.owing[i] = core.owing.back();
      core.owing.pop_back();
    } else {
      ++i;
    }
  }
  return sent;
}

}  // namespace belfry::softnic
