#pragma once
/// \file
/// One WQE, or one for each lane of a warp, from reservation to doorbell.

#include "belfry/device/gda/publication.hpp"
#include "belfry/device/gda/wqe.hpp"
#include "belfry/device/group.hpp"
#include "belfry/port/lane.hpp"

namespace belfry::device::gda {

namespace detail {

template <class Policy>
inline constexpr bool kLocks =
    Policy::sharing != Sharing::exclusive&& Policy::publication == Publication::lock;

/// Blocks of the largest WQE that a policy builds: inline payload, or no more than an atomic.
template <class Policy>
inline constexpr std::uint32_t kLargestWqe = Policy::payload == Payload::inlined
                                                 ? wire::wqe_blocks(2 +
                                                                    wire::inline_segments(Policy::max_inline))
                                                 : 1;

/// Lock and slots. \return without the lock where there are no slots
template <class Policy, class Indices>
BELFRY_FN Slots claim(const SendQueue& queue, Indices& indices, std::uint32_t blocks, port::Timeout timeout) {
  Slots slots;
  if constexpr (kLocks<Policy>) {
    slots.status = take_lock<sharing_scope(Policy::sharing)>(indices.state(), timeout);
    if (slots.status != Status::done) return slots;
  }
  slots = reserve<Policy>(queue, indices, blocks, timeout);
  if constexpr (kLocks<Policy>) {
    if (slots.status != Status::done) release_lock<sharing_scope(Policy::sharing)>(indices.state());
  }
  return slots;
}

/// The lock is held until its holder's WQE is published (mutant: lock_until_published).
template <class Policy, class Indices>
BELFRY_FN Status end_post(const SendQueue& queue, Indices& indices, std::uint64_t first, std::uint64_t end,
                          std::uint64_t last, bool announce, port::Timeout timeout) {
  [[maybe_unused]] constexpr port::Scope kScope = sharing_scope(Policy::sharing);
  if constexpr (kLocks<Policy>)
    if (!port::kept(port::Step::lock_until_published)) release_lock<kScope>(indices.state());
  const Status status = publish<Policy>(queue, indices, first, end, last, announce, timeout);
  if constexpr (kLocks<Policy>)
    if (port::kept(port::Step::lock_until_published)) release_lock<kScope>(indices.state());
  return status;
}

/// A NOP that announces what is published and was left for later. Not post(): a GPU's code must not recurse.
template <class Policy, class Indices>
BELFRY_FN Status announce_owed(const SendQueue& queue, Indices& indices, port::Timeout timeout) {
  const Slots slots = claim<Policy>(queue, indices, 1, timeout);
  if (slots.status != Status::done) return slots.status;
  build(queue, slots.first, Nop{}, true);
  return end_post<Policy>(queue, indices, slots.first, slots.first + 1, slots.first, true, timeout);
}

template <class Policy, class Indices>
BELFRY_FN Slots begin_post(const SendQueue& queue, Indices& indices, std::uint32_t blocks,
                           port::Timeout timeout) {
  Slots slots;
  if constexpr (Policy::sharing == Sharing::exclusive) {
    // Nearly always there is room. Whatever follows is long, and out of the way.
    slots.first = indices.producer();
    if (has_room(queue, slots.first + blocks, indices.consumer())) return slots;
  }
  const std::uint32_t size = 1u << queue.log_blocks;
  if (blocks > size) {
    slots.status = Status::bad_argument;  // no wait would ever make room
    return slots;
  }
  // Up to a quarter of the ring may wait for an announcement (ends_batch), and of the WQE in front of it,
  // whose completion frees no more than its first block, the others. Who needs more than the rest would wait
  // for ever behind them.
  if (blocks + kLargestWqe<Policy> - 1 > size - size / 4 && indices.owes_doorbell()) {
    slots.status = announce_owed<Policy>(queue, indices, timeout);
    if (slots.status != Status::done) return slots;
  }
  return claim<Policy>(queue, indices, blocks, timeout);
}

/// Where each lane's blocks begin among those of its warp.
struct Share {
  std::uint32_t offset = 0;       ///< of the caller's
  std::uint32_t last_offset = 0;  ///< of the highest lane's
  std::uint32_t total = 0;
};

/// Lanes need to ask each other only where their WQEs can differ in size.
template <class Wqe>
BELFRY_FN Share share_of(std::uint32_t mask, [[maybe_unused]] std::uint32_t blocks) {
  Share share;
  if constexpr (Wqe::one_block) {
    share.offset = port::count_lanes(mask & ((1u << port::lane_index()) - 1u));
    share.total = port::count_lanes(mask);
    share.last_offset = share.total - 1;
  } else {
    const std::uint32_t last_lane = port::last_lane(mask);
    share.offset = port::sum_below(mask, blocks);
    share.last_offset = port::shuffle(mask, share.offset, last_lane);
    share.total = share.last_offset + port::shuffle(mask, blocks, last_lane);
  }
  return share;
}

/// The leader's slots for all lanes, in one shuffle: an index has no use for its upper 8 bits.
BELFRY_FN inline Slots from_leader(std::uint32_t mask, Slots slots, std::uint32_t leader) {
  constexpr std::uint32_t kStatusShift = 56;
  const std::uint64_t mine = slots.first | static_cast<std::uint64_t>(slots.status) << kStatusShift;
  const std::uint64_t word = port::shuffle(mask, mine, leader);
  slots.status = static_cast<Status>(word >> kStatusShift);
  slots.first = word & ((std::uint64_t{1} << kStatusShift) - 1);
  return slots;
}

}  // namespace detail

// What follows is the whole price of a put on a queue of the caller's own, on a GPU, where a branch costs as
// much as a store. So whatever is out of the ordinary (another window than the last, a full queue, an
// announcement for later) is asked for at once, made good, and the rest is straight.

/// Whether there is room for `blocks` more, as far as the caller knows.
template <class Policy>
BELFRY_INLINE_FN bool has_own_room(const SendQueue& queue, const OwnedIndices& indices,
                                   std::uint32_t blocks) {
  return detail::has_room(queue, indices.producer() + blocks, indices.consumer());
}

/// Waits for that room. \param now set to whether what comes there is announced
template <class Policy>
BELFRY_FN Status make_own_room(const SendQueue& queue, OwnedIndices& indices, std::uint32_t blocks,
                               Announce announce, port::Timeout timeout, bool& now) {
  const Slots slots = detail::begin_post<Policy>(queue, indices, blocks, timeout);
  now = announce == Announce::now || ends_batch(queue, slots.first, slots.first + blocks);
  return slots.status;
}

/// Posts a WQE of one block, for which there is room.
template <class Policy, class Wqe>
BELFRY_INLINE_FN Operation post_own(const SendQueue& queue, OwnedIndices& indices, const Wqe& wqe, bool now) {
  static_assert(Wqe::one_block);
  Operation op;
  op.index = indices.producer();
  build(queue, op.index, wqe, now);
  op.status = publish<Policy>(queue, indices, op.index, op.index + 1, op.index, now, port::Timeout{0});
  return op;
}

/// The same for each lane of a warp, whose lowest one owns the queue.
template <class Policy, class Wqe>
BELFRY_INLINE_FN Operation post_own_each(Warp warp, const SendQueue& queue, OwnedIndices& indices,
                                         const Wqe& wqe, bool now) {
  static_assert(Wqe::one_block);
  const std::uint32_t leader = port::first_lane(warp.mask);
  const detail::Share share = detail::share_of<Wqe>(warp.mask, 1);
  Operation op;
  const std::uint64_t first = port::shuffle(warp.mask, indices.producer(), leader);
  op.index = first + share.offset;
  build(queue, op.index, wqe, now && share.offset == share.last_offset);
  if (port::kept(port::Step::warp_before_publication)) port::sync_warp(warp.mask);
  if (port::lane_index() == leader)
    publish<Policy>(queue, indices, first, first + share.total, first + share.last_offset, now,
                    port::Timeout{0});
  return op;
}

/// Posts one WQE.
template <class Policy, class Indices, class Wqe>
BELFRY_FN Operation post(const SendQueue& queue, Indices& indices, const Wqe& wqe, Announce announce,
                         port::Timeout timeout) {
  Operation op;
  const std::uint32_t blocks = wire::wqe_blocks(wqe.segments());
  const Slots slots = detail::begin_post<Policy>(queue, indices, blocks, timeout);
  op.status = slots.status;
  if (!op.ok()) return op;
  const std::uint64_t end = slots.first + blocks;
  const bool now = announce == Announce::now || ends_batch(queue, slots.first, end);
  build(queue, slots.first, wqe, now);
  op.index = slots.first;
  op.status = detail::end_post<Policy>(queue, indices, slots.first, end, slots.first, now, timeout);
  return op;
}

/// Posts one WQE for each lane of a warp, with one reservation, one doorbell and one completion for all.
/// The lowest lane of the mask reserves and publishes; under Sharing::exclusive it is the one that owns the
/// queue.
template <class Policy, class Indices, class Wqe>
BELFRY_FN Operation post_each(Warp warp, const SendQueue& queue, Indices& indices, const Wqe& wqe,
                              Announce announce, port::Timeout timeout) {
  const std::uint32_t leader = port::first_lane(warp.mask);
  const detail::Share share = detail::share_of<Wqe>(warp.mask, wire::wqe_blocks(wqe.segments()));
  const bool leads = port::lane_index() == leader;

  Slots slots;
  if (leads) slots = detail::begin_post<Policy>(queue, indices, share.total, timeout);
  slots = detail::from_leader(warp.mask, slots, leader);
  // What the leader has acquired of the slots' last writers binds the lanes only now (mutant:
  // warp_after_reservation).
  if constexpr (Policy::sharing != Sharing::exclusive)
    if (port::kept(port::Step::warp_after_reservation)) port::sync_warp(warp.mask);
  Operation op;
  op.status = slots.status;
  if (!op.ok()) return op;
  const std::uint64_t first = slots.first;
  const std::uint64_t end = first + share.total;
  const bool now = announce == Announce::now || ends_batch(queue, first, end);
  build(queue, first + share.offset, wqe, now && share.offset == share.last_offset);
  // The lanes' stores come before the doorbell of the one that rings for them (mutant:
  // warp_before_publication).
  if (port::kept(port::Step::warp_before_publication)) port::sync_warp(warp.mask);
  if (leads)
    op.status = detail::end_post<Policy>(queue, indices, first, end, first + share.last_offset, now, timeout);
  // The owner of a queue has no turn to wait for, and so nothing to tell.
  if constexpr (Policy::sharing != Sharing::exclusive)
    op.status = port::shuffle(warp.mask, op.status, leader);
  op.index = first + share.offset;
  return op;
}

}  // namespace belfry::device::gda
