#pragma once
/// \file
/// Stage one of the NIC: noticing doorbells.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic {

/// Looks at every doorbell page, announces new WQEs to their QPs and arms CQs. \return QPs with news
std::size_t scan_doorbells(NicCore& core);

/// What of a register counts as seen after `value` was found there and looked at. A value that announced
/// nothing (a forked child rang the page that it shares with us) is taken away: its owner may ring the very
/// same one later, and that must be a change.
std::uint64_t seen_after_look(std::atomic_ref<std::uint64_t> at, std::uint64_t value, bool announced);

/// Clears what a QP (or CQ) last rang on a page, so that the same value rung again is a change again:
/// its queue is reset, or its number may be reused.
void forget_doorbells_of_qp(Uar& uar, std::uint32_t qpn);
void forget_doorbells_of_cq(Uar& uar, std::uint32_t cqn);

}  // namespace belfry::softnic
