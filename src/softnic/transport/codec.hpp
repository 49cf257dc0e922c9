#pragma once
/// \file
/// Packets as InfiniBand transport headers, and back. What arrives is a stranger's bytes: nothing is
/// read past its end, and what makes no sense is refused.

#include "softnic/transport/packet.hpp"

namespace belfry::softnic {

/// Largest header in front of a payload, and the pad behind it.
inline constexpr std::size_t kMaxHeaderBytes = 12 + 48 + 4;

struct EncodedHeader {
  unsigned char bytes[kMaxHeaderBytes];
  std::uint32_t size = 0;
  std::uint32_t pad = 0;  ///< zero bytes owed behind the payload, 0..3
};

EncodedHeader encode_request(const RequestPacket& packet, std::uint32_t destination_qpn);

/// Where in its response a READ packet stands.
struct ResponsePosition {
  bool first;
  bool last;
};
EncodedHeader encode_read_response(std::uint32_t destination_qpn, std::uint32_t psn,
                                   ResponsePosition position, std::uint32_t message_count,
                                   std::uint32_t bytes);
EncodedHeader encode_atomic_response(std::uint32_t destination_qpn, std::uint32_t psn,
                                     std::uint32_t message_count, std::uint64_t original);
EncodedHeader encode_acknowledge(std::uint32_t destination_qpn, std::uint32_t psn, std::uint8_t syndrome,
                                 std::uint32_t message_count);

/// Any packet, decoded.
struct DecodedPacket {
  enum class Kind : std::uint8_t { request, read_response, atomic_response, acknowledge };
  Kind kind;
  std::uint32_t destination_qpn;
  RequestPacket request;  ///< request: its pointers are for the caller to set to the members below
  AtomicOperands atomic;  ///< request of an atomic
  FramePart payload;      ///< request, read_response
  std::uint32_t psn;
  std::uint8_t syndrome;   ///< acknowledge
  std::uint64_t original;  ///< atomic_response
};

/// \return false where the bytes are no packet that RC knows
bool decode_packet(const unsigned char* data, std::size_t bytes, DecodedPacket& out);

}  // namespace belfry::softnic
