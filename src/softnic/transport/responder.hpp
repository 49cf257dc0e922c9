#pragma once
/// \file
/// The receiving half of RC: checks each request against PSN, queue state, rights and bounds, moves its
/// payload, and says how to answer.

#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic {

/// Handles one request packet for `qp`. A refusal (NAK) puts the QP into the error state, as RC demands.
/// A READ's reply points at the bytes; an atomic is executed here, once.
Reply respond(NicCore& core, QueuePair& qp, const RequestPacket& packet);

/// Executes an atomic on memory that was checked. \return the former value
std::uint64_t execute_atomic(NicCore& core, wire::WqeOpcode opcode, const AtomicOperands& operands,
                             unsigned char* memory);

}  // namespace belfry::softnic
