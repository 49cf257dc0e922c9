#pragma once
/// \file
/// Which changes of state a reliable connection allows, and which attributes each must or may carry.
/// Source: InfiniBand Architecture Specification volume 1, chapter 11.2.5.2 (tables of Modify Queue
/// Pair), as Linux applies it (drivers/infiniband/core/verbs.c, ib_modify_qp_is_ok).

#include <cstdint>

#include "softnic/firmware/control.hpp"

namespace belfry::softnic {

/// Attributes of MODIFY_QP, the bits of enum ibv_qp_attr_mask.
enum QpMask : std::uint32_t {
  kQpState = 1u << 0,
  kQpCurrentState = 1u << 1,
  kQpNotifyWhenDrained = 1u << 2,
  kQpAccess = 1u << 3,
  kQpPkeyIndex = 1u << 4,
  kQpPort = 1u << 5,
  kQpQkey = 1u << 6,
  kQpPath = 1u << 7,
  kQpPathMtu = 1u << 8,
  kQpTimeout = 1u << 9,
  kQpRetryCount = 1u << 10,
  kQpRnrRetry = 1u << 11,
  kQpReceivePsn = 1u << 12,
  kQpInitiatorDepth = 1u << 13,
  kQpAlternatePath = 1u << 14,
  kQpMinRnrTimer = 1u << 15,
  kQpSendPsn = 1u << 16,
  kQpResponderDepth = 1u << 17,
  kQpPathMigration = 1u << 18,
  kQpCapacity = 1u << 19,
  kQpDestination = 1u << 20,
  kQpRateLimit = 1u << 25,
};

/// Whether a reliable connection may go from `from` to `to` with the attributes of `mask`.
bool transition_allowed(QpState from, QpState to, std::uint32_t mask);

}  // namespace belfry::softnic
