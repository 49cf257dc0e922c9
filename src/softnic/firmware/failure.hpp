#pragma once
/// \file
/// How queues fail: error completions, the error state, flushes.

#include <cstdint>

#include "softnic/firmware/nic_core.hpp"
#include "softnic/firmware/vendor_syndromes.hpp"

namespace belfry::softnic {

/// A WQE that ends a queue, and why.
struct SendFailure {
  std::uint64_t first_block;
  std::uint32_t blocks;
  wire::WqeOpcode opcode;
  wire::Syndrome syndrome;
  std::uint8_t vendor;
};

/// Completes one WQE in error and puts its QP into the error state.
void fail_send(NicCore& core, QueuePair& qp, const SendFailure& failure);

/// Puts a QP into the error state: what is posted, and what will be, is flushed.
void enter_error(NicCore& core, QueuePair& qp, wire::Syndrome cause);

void report(QueuePair& qp, AsyncEvent event);

/// Blames a memory fault on whatever was in hand: its WQE, QP or CQ fails; what faults again while it
/// fails is not touched any more.
void take_fault(NicCore& core);

/// A QP whose completions cannot be told has failed: every user of a CQ that died goes to error.
void fail_queues_of_dead_cqs(NicCore& core);

/// Flushes what QPs in error hold, as far as their CQs have room. \return entries flushed
std::size_t flush_errored(NicCore& core);

/// Completes a WQE that succeeded, if it is signalled, and frees its blocks.
void complete_send(QueuePair& qp, std::uint64_t first_block, std::uint32_t blocks, wire::WqeOpcode opcode,
                   bool signalled, std::uint64_t bytes);

/// Receive entries that are posted and not used. 0 also where the record makes no sense.
std::uint32_t receives_posted(const QueuePair& qp);

}  // namespace belfry::softnic
