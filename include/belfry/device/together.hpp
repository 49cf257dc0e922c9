#pragma once
/// \file
/// Runs a call once for a group, and gives every member the answer.

#include "belfry/device/group.hpp"
#include "belfry/device/status.hpp"
#include "belfry/port/step.hpp"

namespace belfry::device {

namespace detail {

BELFRY_FN inline Operation from_lane(std::uint32_t mask, Operation op, std::uint32_t leader) {
  // All but the index in one shuffle.
  const std::uint64_t mine = op.span | std::uint64_t{op.reads} << 32 |
                             static_cast<std::uint64_t>(op.status) << 40 | std::uint64_t{op.peer} << 48;
  const std::uint64_t word = port::shuffle(mask, mine, leader);
  op.index = port::shuffle(mask, op.index, leader);
  op.span = static_cast<std::uint32_t>(word);
  op.reads = ((word >> 32) & 1u) != 0;
  op.status = static_cast<Status>((word >> 40) & 0xff);
  op.peer = static_cast<std::uint16_t>(word >> 48);
  return op;
}

BELFRY_FN inline Outcome from_lane(std::uint32_t mask, Outcome o, std::uint32_t leader) {
  o.status = port::shuffle(mask, o.status, leader);
  if (o.ok()) return o;
  o.syndrome = port::shuffle(mask, o.syndrome, leader);
  o.fault.index = port::shuffle(mask, o.fault.index, leader);
  o.fault.qpn = port::shuffle(mask, o.fault.qpn, leader);
  o.fault.kind = port::shuffle(mask, o.fault.kind, leader);
  o.fault.syndrome = port::shuffle(mask, o.fault.syndrome, leader);
  o.fault.vendor = port::shuffle(mask, o.fault.vendor, leader);
  o.fault.peer = port::shuffle(mask, o.fault.peer, leader);
  return o;
}

BELFRY_FN inline Status from_lane(std::uint32_t mask, Status status, std::uint32_t leader) {
  return port::shuffle(mask, status, leader);
}

/// The answer of a thread that did not make the call itself.
BELFRY_FN inline void leave_to_thread_0(Operation& op) { op.index = kElsewhere; }
BELFRY_FN inline void leave_to_thread_0(Outcome&) {}
BELFRY_FN inline void leave_to_thread_0(Status&) {}

BELFRY_FN inline Status& status_in(Operation& op) { return op.status; }
BELFRY_FN inline Status& status_in(Outcome& o) { return o.status; }
BELFRY_FN inline Status& status_in(Status& s) { return s; }

/// Every thread of the block gets thread 0's status. Only a failure costs more than one barrier.
BELFRY_FN inline Status from_thread_0(Status status) {
  const bool speaks = port::thread_index() == 0;
  if (!port::sync_block_any(speaks && status != Status::done)) return Status::done;
  std::uint32_t bits = 0;
  for (std::uint32_t bit = 0; bit < 3; ++bit)
    if (port::sync_block_any(speaks && ((static_cast<std::uint32_t>(status) >> bit) & 1u) != 0))
      bits |= 1u << bit;
  return static_cast<Status>(bits);
}

}  // namespace detail

template <class Call>
BELFRY_FN auto together(Thread, const Call& call) {
  return call();
}

/// Lanes' stores before come before whatever the lowest lane posts (mutant: warp_before_publication).
template <class Call>
BELFRY_FN auto together(Warp warp, const Call& call) {
  if (port::kept(port::Step::warp_before_publication)) port::sync_warp(warp.mask);
  const std::uint32_t leader = port::first_lane(warp.mask);
  decltype(call()) answer{};
  if (port::lane_index() == leader) answer = call();
  answer = detail::from_lane(warp.mask, answer, leader);
  // And what the leader has waited for is there for all (mutant: warp_after_call).
  if (port::kept(port::Step::warp_after_call)) port::sync_warp(warp.mask);
  return answer;
}

/// The block's stores before come before whatever thread 0 posts (mutant: block_before_publication).
template <class Call>
BELFRY_FN auto together(Block, const Call& call) {
  if (port::kept(port::Step::block_before_publication)) port::sync_block();
  decltype(call()) answer{};
  if (port::thread_index() == 0) {
    answer = call();
  } else {
    detail::leave_to_thread_0(answer);
  }
  detail::status_in(answer) = detail::from_thread_0(detail::status_in(answer));
  return answer;
}

}  // namespace belfry::device
