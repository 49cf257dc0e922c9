#pragma once
/// \file
/// How producers share a send queue: reserving slots, taking turns, announcing.
///
/// A producer reserves slots, writes its WQEs into them, and publishes: in the order of reservation, each in
/// its turn, which begins when `published` has reached its first slot and ends when it stores its end there.
/// Whoever rings in its turn has thereby seen the stores of all before it, so that one doorbell covers them.

#include <cstdint>

#include "belfry/device/announce.hpp"
#include "belfry/device/gda/completion.hpp"
#include "belfry/device/gda/indices.hpp"
#include "belfry/device/gda/ring.hpp"

namespace belfry::device::gda {

using device::Announce;

/// A batch ends at each quarter of the ring, whatever was asked for: a queue that is full of WQEs which
/// nobody announced would wait for ever.
BELFRY_FN inline bool ends_batch(const SendQueue& queue, std::uint64_t first, std::uint64_t end) {
  const std::uint32_t quarter = queue.log_blocks > 2 ? 1u << (queue.log_blocks - 2u) : 1u;
  // Whether [first, end) passes a quarter's end; a WQE of a whole quarter does.
  return (static_cast<std::uint32_t>(end) & (quarter - 1u)) < static_cast<std::uint32_t>(end - first);
}

/// Slots of a send queue, or why there are none.
struct Slots {
  Status status = Status::done;
  std::uint64_t first = 0;  ///< block
};

namespace detail {

/// A wait for room. The time is asked every turn, also when completions keep coming: others may take what
/// they free. After its end the wait looks once more.
class RoomWait {
 public:
  BELFRY_FN RoomWait(const SendQueue& queue, port::Timeout timeout) : patience_(timeout), forwarder_(queue) {}

  /// One turn: looks at the completion queue. \return whether to go on waiting
  template <class Policy, class Indices>
  BELFRY_FN bool turn(const SendQueue& queue, Indices& indices, Slots& result) {
    if (over_) result.status = Status::queue_full;
    if (indices.fault() != 0 || forwarder_.is_lost()) result.status = Status::completion_error;
    if (result.status != Status::done) return false;
    look<Policy>(queue, indices);
    over_ = patience_.is_over();
    return true;
  }

 private:
  port::Patience patience_;
  ForwarderWatch forwarder_;
  bool over_ = false;
};

BELFRY_FN inline bool has_room(const SendQueue& queue, std::uint64_t end, std::uint64_t consumer) {
  // Never more than a ring and a WQE apart: 32 bits tell.
  return !port::kept(port::Step::check_space) ||
         static_cast<std::uint32_t>(end) - static_cast<std::uint32_t>(consumer) <= 1u << queue.log_blocks;
}

}  // namespace detail

/// Slots of a queue that is the caller's own. A slot is free once the WQE in it is known to be complete: the
/// NIC does not read it any more (mutant: check_space).
template <class Policy>
BELFRY_FN Slots reserve(const SendQueue& queue, OwnedIndices& indices, std::uint32_t blocks,
                        port::Timeout timeout) {
  Slots slots;
  slots.first = indices.producer();
  if (detail::has_room(queue, slots.first + blocks, indices.consumer())) return slots;
  detail::RoomWait wait(queue, timeout);
  while (!detail::has_room(queue, slots.first + blocks, indices.retired()))
    if (!wait.turn<Policy>(queue, indices, slots)) break;
  return slots;
}

namespace detail {

/// Slots of a shared queue, however long that takes.
template <class Policy, port::Scope scope>
BELFRY_FN Slots wait_for_slots(const SendQueue& queue, SharedIndices<scope>& indices, std::uint32_t blocks,
                               port::Timeout timeout) {
  Slots slots;
  RoomWait wait(queue, timeout);
  slots.first = port::load<scope>(&indices.state()->reserved);
  for (;;) {
    const std::uint64_t end = slots.first + blocks;
    const std::uint64_t published = indices.published();
    if (!has_room(queue, end, published) ||
        (!has_room(queue, end, indices.consumer()) &&
         !has_room(queue, end, indices.retired(slots.first, published)))) {
      if (!wait.turn<Policy>(queue, indices, slots)) return slots;
      slots.first = port::load<scope>(&indices.state()->reserved);
      continue;
    }
    const std::uint64_t before = port::compare_exchange<scope>(&indices.state()->reserved, slots.first, end);
    if (before == slots.first) return slots;
    slots.first = before;
  }
}

}  // namespace detail

/// Slots of a shared queue. They are taken only once there is room for them: who gives up holds nothing, and
/// so nobody waits for its turn. The first attempt starts from what this thread knows: where nobody else has
/// posted since, all that is reserved is published.
template <class Policy, port::Scope scope>
BELFRY_FN Slots reserve(const SendQueue& queue, SharedIndices<scope>& indices, std::uint32_t blocks,
                        port::Timeout timeout) {
  Slots slots;
  slots.first = indices.known_published();
  // 64 bits: what a thread knows can be older than 32 bits tell.
  if (slots.first + blocks > indices.known_limit()) {
    indices.look(std::uint64_t{1} << queue.log_blocks);
    slots.first = indices.known_published();
  }
  if ((slots.first + blocks <= indices.known_limit() || !port::kept(port::Step::check_space)) &&
      port::compare_exchange<scope>(&indices.state()->reserved, slots.first, slots.first + blocks) ==
          slots.first)
    return slots;
  return detail::wait_for_slots<Policy>(queue, indices, blocks, timeout);
}

/// Publishes blocks [first, end) of the caller's own queue.
/// \param last first block of the last WQE among them
template <class Policy>
BELFRY_FN Status publish(const SendQueue& queue, OwnedIndices& indices, std::uint64_t, std::uint64_t end,
                         std::uint64_t last, bool announce, port::Timeout) {
  if (announce) ring_in_order<Policy::ordering, Policy::doorbell_mode>(queue, end);
  indices.publish(last, end, announce);
  return Status::done;
}

namespace detail {

/// Waits for the turn of `first`, and acquires it: the stores of those before come before what follows
/// (mutants: wait_turn, acquire_turn). On a queue that has failed nobody needs one. A turn that never comes
/// is given up at last: nothing after it can be published, and the queue says so to all. \param fences
/// whether the caller's next step is a fence, which acquires, too
template <class Policy, port::Scope scope>
BELFRY_FN Status take_turn(SharedIndices<scope>& indices, std::uint64_t first, bool fences,
                           port::Timeout timeout) {
  // What reserving has found, or this thread has published itself.
  if (indices.known_published() == first || !port::kept(port::Step::wait_turn)) return Status::done;
  constexpr port::Timeout kLeast = Policy::turn_timeout;
  port::Patience patience(timeout.ns < kLeast.ns ? kLeast : timeout);
  const std::uint64_t* published = &indices.state()->published;
  while (port::poll<scope>(published) != first) {
    if (indices.fault() != 0) return Status::completion_error;
    if (!patience.is_over()) continue;
    indices.latch(fault_word(Fault::Kind::abandoned, first, wire::Syndrome::none, 0));
    return Status::completion_error;
  }
  // Nobody else stores there now. To load it again is cheaper on a GPU than a fence.
  if (!fences && port::kept(port::Step::acquire_turn)) port::load_acquire<scope>(published);
  return Status::done;
}

}  // namespace detail

/// Publishes blocks [first, end) of a shared queue in their turn.
/// The other end is the next producer: it polls `published`, and its acquire after makes our stores come
/// before its doorbell (mutants: wait_turn, acquire_turn, release_turn). The end of a turn releases our
/// doorbell too, so that doorbells reach the NIC in the order of the turns. Under Publication::lock the lock
/// does both.
template <class Policy, port::Scope scope>
BELFRY_FN Status publish(const SendQueue& queue, SharedIndices<scope>& indices, std::uint64_t first,
                         std::uint64_t end, std::uint64_t last, bool announce, port::Timeout timeout) {
  QueueState* state = indices.state();
  constexpr bool kHandsOff = Policy::publication == Publication::handoff;
  if constexpr (kHandsOff) {
    // An ordering that begins with a fence of GPU scope or more acquires the turn with it.
    const bool fences = announce && begins_with_fence(Policy::ordering, Policy::doorbell_mode);
    const Status turn = detail::take_turn<Policy>(indices, first, fences, timeout);
    if (turn != Status::done) return turn;
  }
  port::store<scope>(&state->goal, last + 1);
  if (announce) {
    port::store<scope>(&state->signaled_goal, last + 1);
    ring_in_order<Policy::ordering, Policy::doorbell_mode>(queue, end);
  }
  if (kHandsOff && port::kept(port::Step::release_turn)) {
    port::store_release<scope>(&state->published, end);
  } else {
    port::store<scope>(&state->published, end);
  }
  indices.know_published(end);
  return Status::done;
}

/// \return 0: the caller has the lock
template <port::Scope scope>
BELFRY_FN std::uint32_t try_lock(QueueState* state) {
  if (!port::kept(port::Step::lock_acquire)) return port::exchange<scope>(&state->lock, 1u);
  return port::exchange<scope, port::Order::acquire>(&state->lock, 1u);
}

/// The doorbell lock of Publication::lock: one producer at a time from reservation to doorbell. Its holder
/// follows all that the holders before him did (mutants: lock_acquire, lock_release).
template <port::Scope scope>
BELFRY_FN Status take_lock(QueueState* state, port::Timeout timeout) {
  port::Patience patience(timeout);
  while (try_lock<scope>(state) != 0) {
    do {
      if (patience.is_over()) return Status::queue_full;
    } while (port::poll<scope>(&state->lock) != 0);
  }
  return Status::done;
}

template <port::Scope scope>
BELFRY_FN void release_lock(QueueState* state) {
  if (port::kept(port::Step::lock_release)) {
    port::store_release<scope>(&state->lock, 0u);
  } else {
    port::store<scope>(&state->lock, 0u);
  }
}

}  // namespace belfry::device::gda
