#pragma once

#include "softnic/firmware/nic_core.hpp"
#include "softnic/transport/codec.hpp"

namespace belfry::softnic {

/// Hands one packet to the fabric. Memory of its payload that is gone faults here, before the fabric has it.
/// An unreachable peer is a loss like any other: a timer finds out.
/// \param parts room for the header, then the payload in `payload_parts` parts, then room for the padding
/// \param bytes of payload
/// \return false where the fabric has no room
bool send_packet(NicCore& core, QueuePair& qp, const EncodedHeader& header, FramePart* parts,
                 std::uint32_t payload_parts, std::uint32_t bytes);

}  // namespace belfry::softnic
