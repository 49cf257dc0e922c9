#include "softnic/transport/send_packet.hpp"

namespace belfry::softnic {

bool send_packet(NicCore& core, QueuePair& qp, const EncodedHeader& header, FramePart* parts,
                 std::uint32_t payload_parts, std::uint32_t bytes) {
  static constexpr unsigned char kZeros[4] = {};
  core.stage(parts + 1, payload_parts);
  parts[0] = {header.bytes, header.size};
  std::uint32_t count = 1 + payload_parts;
  if (header.pad != 0) parts[count++] = {kZeros, header.pad};
  FrameHeader frame = qp.frame;
  frame.bytes = header.size + bytes + header.pad;
  if (core.fabric->send(qp.context.destination_qpn, frame, {parts, count}) == SendOutcome::full) return false;
  ++core.counters.frames_sent;
  return true;
}

}  // namespace belfry::softnic
