#pragma once
/// \file
/// The mailboxes that take an RC QP to RTS. Pure: a plan in, bytes out.

#include <array>
#include <cstdint>

#include "belfry/host/connection.hpp"
#include "belfry/host/memory.hpp"
#include "belfry/wire/prm_qp.hpp"

namespace belfry::host {

using ModifyQpMailbox = std::array<std::uint8_t, wire::prm::ModifyQpIn::kBytes>;

/// What an Ethernet path needs beyond the plan.
struct EthernetPath {
  std::array<std::uint8_t, 6> mac{};  ///< of the peer, or of the router to it
  std::uint16_t udp_source_port = 0;  ///< RoCE v2
};

struct TransitionFacts {
  std::uint32_t qpn = 0;
  std::uint8_t port = 1;
  std::uint8_t gid_index = 0;  ///< of this end
  std::uint32_t send_psn = 0;
  Access remote_access = Access::none;
  EthernetPath ethernet;  ///< Ethernet only
};

ModifyQpMailbox make_reset_to_init(const TransitionFacts& facts);
ModifyQpMailbox make_init_to_rtr(const TransitionFacts& facts, const ConnectionPlan& plan);
ModifyQpMailbox make_rtr_to_rts(const TransitionFacts& facts, const ConnectionPlan& plan);

/// Depths travel as logarithms: the largest power of two that is not above `depth`, 7 at most.
/// 0 (no reads at all) cannot be said and becomes 1.
std::uint8_t log_depth(std::uint8_t depth);

}  // namespace belfry::host
