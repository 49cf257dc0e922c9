#pragma once
/// \file
/// What a requester sends and a responder answers, before it is laid out as headers. Two QPs of one
/// process hand these to each other directly; between processes codec.hpp turns them into frames.

#include <cstdint>

#include "belfry/wire/infiniband.hpp"
#include "softnic/fabric/fabric.hpp"
#include "softnic/firmware/wqe_decode.hpp"

namespace belfry::softnic {

enum class Verb : std::uint8_t { write, send, read, atomic };

/// One request packet; on the direct path one part of a message, which may span many PSNs.
struct RequestPacket {
  Verb verb = Verb::write;
  bool first = true;
  bool last = true;
  bool has_immediate = false;
  bool solicited = false;
  bool ack_request = false;
  wire::WqeOpcode atomic_opcode = wire::WqeOpcode::nop;
  std::uint32_t psn = 0;
  std::uint32_t psn_count = 1;  ///< packets it stands for; READ: of its response
  std::uint64_t address = 0;    ///< first packet of WRITE, READ and atomics
  std::uint32_t rkey = 0;
  std::uint64_t length = 0;  ///< of the whole message (RETH)
  Be32 immediate{};
  const AtomicOperands* atomic = nullptr;  ///< Verb::atomic only
  const FramePart* parts = nullptr;
  std::uint32_t part_count = 0;
  std::uint32_t bytes = 0;  ///< payload in this packet
};

/// How a responder answers one request packet.
struct Reply {
  enum class Kind : std::uint8_t {
    none,       ///< dropped: nothing is said, the requester's timer decides
    ack,        ///< accepted
    data,       ///< READ accepted: the bytes are at `data`
    original,   ///< atomic done: its former value
    rnr,        ///< no receive posted: come back after `rnr_timer`
    nak,        ///< refused
    duplicate,  ///< seen before; acknowledged again
  };
  Kind kind = Kind::none;
  wire::NakCode nak = wire::NakCode::psn_sequence;
  std::uint8_t rnr_timer = 0;
  const unsigned char* data = nullptr;
  std::uint64_t original = 0;
};

/// Packets that a message of `bytes` takes. \param mtu_shift log2 of the path MTU (a division costs as
/// much as all the rest of a small write's bookkeeping)
inline std::uint32_t packets_of(std::uint64_t bytes, unsigned mtu_shift) {
  return bytes == 0 ? 1u : static_cast<std::uint32_t>((bytes + (1ull << mtu_shift) - 1) >> mtu_shift);
}

}  // namespace belfry::softnic
