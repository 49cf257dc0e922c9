#pragma once
/// \file
/// Stage one of the NIC: noticing doorbells.

#include <cstddef>

#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic {

/// Looks at every doorbell page, announces new WQEs to their QPs and arms CQs. \return QPs with news
std::size_t scan_doorbells(NicCore& core);

/// Clears what a QP (or CQ) last rang on a page, so that the same value rung again is a change again:
/// its queue is reset, or its number may be reused.
void forget_doorbells_of_qp(Uar& uar, std::uint32_t qpn);
void forget_doorbells_of_cq(Uar& uar, std::uint32_t cqn);

}  // namespace belfry::softnic
