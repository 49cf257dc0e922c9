#include "softnic/transport/codec.hpp"

#include <cstring>

namespace belfry::softnic {

namespace {

using wire::BthOpcode;

/// Writes headers one behind the other.
class Writer {
 public:
  explicit Writer(EncodedHeader& out) : out_(out) {}
  template <class Header>
  void put(const Header& header) {
    std::memcpy(out_.bytes + out_.size, &header, sizeof header);
    out_.size += sizeof header;
  }

 private:
  EncodedHeader& out_;
};

wire::Bth make_bth(BthOpcode opcode, std::uint32_t destination, std::uint32_t psn, bool solicited,
                   bool ack_request, std::uint32_t pad) {
  wire::Bth b{};
  b.opcode = opcode;
  b.flags =
      static_cast<std::uint8_t>(wire::kBthMigration | (solicited ? wire::kBthSolicited : 0u) | (pad << 4));
  b.pkey.set(0xffff);
  b.destination_qp.set(destination & wire::kQpnMask);
  b.ack_psn.set((psn & wire::kPsnMask) | (ack_request ? wire::kBthAckRequest : 0u));
  return b;
}

BthOpcode position_opcode(BthOpcode first, BthOpcode middle, BthOpcode last, BthOpcode only,
                          const RequestPacket& p) {
  // The "with immediate" forms follow their plain ones by 1.
  const auto with_immediate = [&](BthOpcode o) {
    return p.has_immediate ? static_cast<BthOpcode>(static_cast<std::uint8_t>(o) + 1) : o;
  };
  if (p.first && p.last) return with_immediate(only);
  if (p.first) return first;
  return p.last ? with_immediate(last) : middle;
}

BthOpcode opcode_of(const RequestPacket& p) {
  switch (p.verb) {
    case Verb::send:
      return position_opcode(BthOpcode::send_first, BthOpcode::send_middle, BthOpcode::send_last,
                             BthOpcode::send_only, p);
    case Verb::write:
      return position_opcode(BthOpcode::write_first, BthOpcode::write_middle, BthOpcode::write_last,
                             BthOpcode::write_only, p);
    case Verb::read:
      return BthOpcode::read_request;
    case Verb::atomic:
      break;
  }
  switch (p.atomic_opcode) {
    case wire::WqeOpcode::atomic_compare_swap:
      return BthOpcode::compare_swap;
    case wire::WqeOpcode::atomic_fetch_add:
      return BthOpcode::fetch_add;
    case wire::WqeOpcode::atomic_masked_compare_swap:
      return BthOpcode::masked_compare_swap;
    default:
      return BthOpcode::masked_fetch_add;
  }
}

void put_atomic(Writer& writer, const RequestPacket& p) {
  wire::AtomicEth base{};
  base.address.set(p.address);
  base.rkey.set(p.rkey);
  base.swap_or_add.set(p.atomic->swap_or_add);
  base.compare.set(p.atomic->compare);
  const BthOpcode opcode = opcode_of(p);
  if (opcode == BthOpcode::compare_swap || opcode == BthOpcode::fetch_add) {
    writer.put(base);
    return;
  }
  wire::MaskedAtomicEth masked{};
  masked.base = base;
  masked.swap_mask.set(p.atomic->swap_mask);
  masked.compare_mask.set(p.atomic->compare_mask);
  masked.operand_bytes.set(p.atomic->bytes);
  writer.put(masked);
}

wire::Aeth make_aeth(std::uint8_t syndrome, std::uint32_t message_count) {
  wire::Aeth a{};
  a.syndrome_msn.set((static_cast<std::uint32_t>(syndrome) << 24) | (message_count & wire::kPsnMask));
  return a;
}

/// Reads headers one behind the other.
class Reader {
 public:
  Reader(const unsigned char* data, std::size_t bytes) : at_(data), left_(bytes) {}
  template <class Header>
  bool take(Header& header) {
    if (left_ < sizeof header) return false;
    std::memcpy(&header, at_, sizeof header);
    at_ += sizeof header;
    left_ -= sizeof header;
    return true;
  }
  /// The rest is payload and `pad` bytes. \return false where the pad does not fit
  bool payload(std::uint32_t pad, FramePart& out) {
    if (left_ < pad) return false;
    out = {at_, left_ - pad};
    return true;
  }

 private:
  const unsigned char* at_;
  std::size_t left_;
};

bool decode_push(Reader& reader, BthOpcode opcode, std::uint32_t pad, DecodedPacket& out) {
  RequestPacket& p = out.request;
  const auto code = static_cast<std::uint8_t>(opcode);
  const bool write = code >= static_cast<std::uint8_t>(BthOpcode::write_first);
  p.verb = write ? Verb::write : Verb::send;
  // first, middle, last, last+imm, only, only+imm, in this order for both verbs
  const unsigned position = write ? code - static_cast<unsigned>(BthOpcode::write_first) : code;
  p.first = position == 0 || position >= 4;
  p.last = position >= 2;
  p.has_immediate = position == 3 || position == 5;
  if (write && p.first) {
    wire::Reth reth;
    if (!reader.take(reth)) return false;
    p.address = reth.address.get();
    p.rkey = reth.rkey.get();
    p.length = reth.length.get();
  }
  if (p.has_immediate) {
    wire::ImmediateHeader header;
    if (!reader.take(header)) return false;
    p.immediate = header.immediate;
  }
  if (!reader.payload(pad, out.payload)) return false;
  p.bytes = static_cast<std::uint32_t>(out.payload.bytes);
  return true;
}

bool decode_atomic(Reader& reader, BthOpcode opcode, DecodedPacket& out) {
  RequestPacket& p = out.request;
  p.verb = Verb::atomic;
  wire::AtomicEth base;
  if (opcode == BthOpcode::compare_swap || opcode == BthOpcode::fetch_add) {
    if (!reader.take(base)) return false;
    out.atomic = {base.swap_or_add.get(), base.compare.get(), ~0ull, ~0ull, 8};
    p.atomic_opcode = opcode == BthOpcode::fetch_add ? wire::WqeOpcode::atomic_fetch_add
                                                     : wire::WqeOpcode::atomic_compare_swap;
  } else {
    wire::MaskedAtomicEth masked;
    if (!reader.take(masked)) return false;
    base = masked.base;
    const std::uint32_t bytes = masked.operand_bytes.get();
    if (bytes != 4 && bytes != 8) return false;
    out.atomic = {base.swap_or_add.get(), base.compare.get(), masked.swap_mask.get(),
                  masked.compare_mask.get(), bytes};
    p.atomic_opcode = opcode == BthOpcode::masked_fetch_add ? wire::WqeOpcode::atomic_masked_fetch_add
                                                            : wire::WqeOpcode::atomic_masked_compare_swap;
  }
  p.address = base.address.get();
  p.rkey = base.rkey.get();
  return true;
}

bool decode_read_request(Reader& reader, DecodedPacket& out) {
  wire::Reth reth;
  if (!reader.take(reth)) return false;
  RequestPacket& p = out.request;
  p.verb = Verb::read;
  p.address = reth.address.get();
  p.rkey = reth.rkey.get();
  p.length = reth.length.get();
  return true;
}

bool decode_response(Reader& reader, BthOpcode opcode, std::uint32_t pad, DecodedPacket& out) {
  wire::Aeth aeth{};
  if (opcode != BthOpcode::read_response_middle && !reader.take(aeth)) return false;
  if (opcode == BthOpcode::acknowledge) {
    out.kind = DecodedPacket::Kind::acknowledge;
    out.syndrome = static_cast<std::uint8_t>(aeth.syndrome_msn.get() >> 24);
    return true;
  }
  if (opcode == BthOpcode::atomic_acknowledge) {
    wire::AtomicAckEth ack;
    if (!reader.take(ack)) return false;
    out.kind = DecodedPacket::Kind::atomic_response;
    out.original = ack.original.get();
    return true;
  }
  out.kind = DecodedPacket::Kind::read_response;
  return reader.payload(pad, out.payload);
}

}  // namespace

EncodedHeader encode_request(const RequestPacket& p, std::uint32_t destination_qpn) {
  EncodedHeader out;
  Writer writer(out);
  out.pad = (4 - (p.bytes & 3)) & 3;
  writer.put(make_bth(opcode_of(p), destination_qpn, p.psn, p.solicited, p.ack_request, out.pad));
  if (p.verb == Verb::atomic) {
    put_atomic(writer, p);
  } else if (p.verb == Verb::read || (p.verb == Verb::write && p.first)) {
    wire::Reth reth{};
    reth.address.set(p.address);
    reth.rkey.set(p.rkey);
    reth.length.set(static_cast<std::uint32_t>(p.length));
    writer.put(reth);
  }
  if (p.has_immediate && p.last) writer.put(wire::ImmediateHeader{p.immediate});
  return out;
}

EncodedHeader encode_read_response(std::uint32_t destination_qpn, std::uint32_t psn,
                                   ResponsePosition position, std::uint32_t message_count,
                                   std::uint32_t bytes) {
  const BthOpcode opcode =
      position.first ? (position.last ? BthOpcode::read_response_only : BthOpcode::read_response_first)
                     : (position.last ? BthOpcode::read_response_last : BthOpcode::read_response_middle);
  EncodedHeader out;
  Writer writer(out);
  out.pad = (4 - (bytes & 3)) & 3;
  writer.put(make_bth(opcode, destination_qpn, psn, false, false, out.pad));
  if (opcode != BthOpcode::read_response_middle) writer.put(make_aeth(wire::kAethAck, message_count));
  return out;
}

EncodedHeader encode_atomic_response(std::uint32_t destination_qpn, std::uint32_t psn,
                                     std::uint32_t message_count, std::uint64_t original) {
  EncodedHeader out;
  Writer writer(out);
  writer.put(make_bth(BthOpcode::atomic_acknowledge, destination_qpn, psn, false, false, 0));
  writer.put(make_aeth(wire::kAethAck, message_count));
  writer.put(wire::AtomicAckEth{Be64(original)});
  return out;
}

EncodedHeader encode_acknowledge(std::uint32_t destination_qpn, std::uint32_t psn, std::uint8_t syndrome,
                                 std::uint32_t message_count) {
  EncodedHeader out;
  Writer writer(out);
  writer.put(make_bth(BthOpcode::acknowledge, destination_qpn, psn, false, false, 0));
  writer.put(make_aeth(syndrome, message_count));
  return out;
}

bool decode_packet(const unsigned char* data, std::size_t bytes, DecodedPacket& out) {
  Reader reader(data, bytes);
  wire::Bth bth;
  if (!reader.take(bth)) return false;
  const std::uint32_t pad = (bth.flags >> 4) & 3;
  const std::uint32_t ack_psn = bth.ack_psn.get();
  out = DecodedPacket{};
  out.destination_qpn = bth.destination_qp.get() & wire::kQpnMask;
  out.psn = ack_psn & wire::kPsnMask;
  out.kind = DecodedPacket::Kind::request;
  out.request.psn = out.psn;
  out.request.solicited = (bth.flags & wire::kBthSolicited) != 0;
  out.request.ack_request = (ack_psn & wire::kBthAckRequest) != 0;
  if (bth.opcode <= BthOpcode::write_only_immediate) return decode_push(reader, bth.opcode, pad, out);
  if (bth.opcode == BthOpcode::read_request) return decode_read_request(reader, out);
  if (bth.opcode <= BthOpcode::atomic_acknowledge) return decode_response(reader, bth.opcode, pad, out);
  if (bth.opcode == BthOpcode::compare_swap || bth.opcode == BthOpcode::fetch_add ||
      bth.opcode == BthOpcode::masked_compare_swap || bth.opcode == BthOpcode::masked_fetch_add)
    return decode_atomic(reader, bth.opcode, out);
  return false;
}

}  // namespace belfry::softnic
