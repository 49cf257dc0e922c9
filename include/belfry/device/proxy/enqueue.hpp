#pragma once
/// \file
/// Putting descriptors into a ring, under the three protocols.

#include <cstdint>

#include "belfry/device/fault.hpp"
#include "belfry/device/group.hpp"
#include "belfry/device/proxy/policy.hpp"
#include "belfry/device/proxy/ring.hpp"
#include "belfry/device/pulse.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"
#include "belfry/port/time.hpp"
#include "belfry/wire/proxy.hpp"

namespace belfry::device::proxy {

/// What a channel keeps of its ring from call to call. Under Protocol::tuned it is the only producer's place
/// in the ring, in registers: it knows the slots of this lap that are free, and their parity, so that a put
/// compares one address, stores and counts.
struct Producer {
  std::uintptr_t at = 0;     ///< tuned: the next slot's address
  std::uintptr_t end = 0;    ///< tuned: slots from `at` to it are of this lap, and free
  std::uintptr_t zero = 0;   ///< tuned: where slot 0 would be, if slots did not come around
  std::uint64_t room = 0;    ///< tuned: slots below it are free, a lap from where the worker was seen last
  LastBeat worker;           ///< of the worker, as seen last
  std::uint32_t parity = 0;  ///< tuned: this lap's

  /// Index of the next slot.
  BELFRY_INLINE_FN std::uint64_t next() const { return (at - zero) / sizeof(port::Vector16); }
};

/// The only producer's place in a ring, as the last one has left it: with no slot known.
/// \param slots of the ring
BELFRY_INLINE_FN Producer enter_ring(const RingState& state, std::uint64_t slots) {
  Producer p;
  p.at = p.end = state.reserved * sizeof(port::Vector16);
  p.room = state.taken + slots;
  return p;
}
/// Leaves it to the next one. Not by a producer that has stored nothing: there may have been another one
/// since.
BELFRY_SLOW_FN void leave_ring(RingState* state, std::uint64_t next, std::uint64_t taken) {
  if (next <= state->reserved) return;
  state->reserved = next;
  state->taken = taken;
}

/// Slots of a ring, or why there are none.
struct RingSlots {
  Status status = Status::done;
  std::uint64_t first = 0;
};

namespace detail {

BELFRY_FN inline std::uint64_t slots_of(const Ring& ring) { return std::uint64_t{1} << ring.log_slots; }
BELFRY_FN inline std::uint64_t parity_of(const Ring& ring, std::uint64_t index) {
  return wire::proxy_parity(index >> ring.log_slots);
}

/// A slot is filled again only once the worker has taken it (mutant: proxy_room).
/// \param end   one past the slots wanted
/// \param limit a lap from the worker's progress
BELFRY_INLINE_FN bool has_room(std::uint64_t end, std::uint64_t limit) {
  return !port::kept(port::Step::proxy_room) || end <= limit;
}

/// The worker's progress, read across PCIe where the ring is a GPU's, by who waits for it.
/// The other end: the worker has read a slot before it counts it (RingReader::give_back()). A slot's only
/// producer needs no more than that: its store depends on the value loaded, and follows its own last one.
BELFRY_FN inline std::uint64_t read_taken(const Ring& ring) {
  return port::poll<port::Scope::system>(ring.taken);
}

/// The progress that producers share, and what it stands for.
BELFRY_FN inline std::uint64_t cached_taken(const Ring& ring) {
  if (!port::kept(port::Step::proxy_acquire_cached)) return port::load<port::Scope::gpu>(&ring.state->taken);
  return port::load_acquire<port::Scope::gpu>(&ring.state->taken);
}
BELFRY_FN inline void keep_taken(const Ring& ring, std::uint64_t taken) {
  if (port::kept(port::Step::proxy_acquire_taken)) port::fence<port::Scope::system>();
  port::fetch_max<port::Scope::gpu>(&ring.state->taken, taken);
}

/// A turn of waiting for room. \return whether to go on
BELFRY_FN inline bool wait_for_room(const Ring& ring, port::Patience& patience, Pulse& pulse,
                                    Status& status) {
  const bool is_late = patience.is_over();
  if (port::load<port::Scope::system>(&ring.words->fault) != 0 ||
      (is_late ? pulse.look() : pulse.is_lost())) {
    status = Status::completion_error;
    return false;
  }
  if (is_late) status = Status::queue_full;
  return !is_late;
}

/// What a producer waits for that has no slot left that it knows of. A copy of what it knows: so nobody takes
/// the channel's address, and its members stay in registers.
struct OwnRoom {
  Ring ring;
  Producer producer;
  std::uint32_t count;
  port::Timeout timeout;
  std::uint64_t stall_ns;
};

/// Waits until `room.count` slots are free. Then `room.producer` knows the free ones of the lap in which slot
/// `stand` lies, and stands at it: at the first of them, or behind those that it takes.
BELFRY_SLOW_FN Status wait_for_own_slots(OwnRoom& room, std::uint64_t stand) {
  Producer& p = room.producer;
  const std::uint64_t end = p.next() + room.count;
  if (!has_room(end, p.room)) {
    Status status = Status::done;
    port::Patience patience(room.timeout);
    Pulse pulse(&room.ring.words->heartbeat, room.stall_ns, p.worker);
    // The first look is no wait, in which a lane gives its CPU away: there mostly is room.
    p.room = port::load<port::Scope::system>(room.ring.taken) + slots_of(room.ring);
    while (!has_room(end, p.room)) {
      if (!wait_for_room(room.ring, patience, pulse, status)) break;
      p.room = read_taken(room.ring) + slots_of(room.ring);
    }
    p.worker = pulse.last();
    if (status != Status::done) return status;
  }
  const std::uint64_t lap = stand & ~(slots_of(room.ring) - 1);
  std::uint64_t limit = lap + slots_of(room.ring);
  if (!has_room(limit, p.room)) limit = p.room;
  p.zero = reinterpret_cast<std::uintptr_t>(room.ring.slots) - lap * sizeof(port::Vector16);
  p.at = p.zero + stand * sizeof(port::Vector16);
  p.end = p.zero + limit * sizeof(port::Vector16);
  p.parity = static_cast<std::uint32_t>(parity_of(room.ring, lap));
  return Status::done;
}

BELFRY_INLINE_FN RingSlots reserve_own(const Ring& ring, Producer& producer, std::uint32_t count,
                                       port::Timeout timeout, std::uint64_t stall_ns) {
  OwnRoom room{ring, producer, count, timeout, stall_ns};
  RingSlots slots;
  slots.first = producer.next();
  slots.status = wait_for_own_slots(room, slots.first + count);
  producer = room.producer;
  return slots;
}

/// Reserves only once there is room: a producer that gives up leaves no hole, at which the worker would stop.
/// A slot's last descriptor was another thread's. It comes before ours through the worker, which has read it
/// (mutants: proxy_acquire_taken, whose fence also releases it to those who find it in the cached progress,
/// and proxy_acquire_cached at those). \tparam cached whether the progress seen last is looked at before the
/// worker's own
template <bool cached>
BELFRY_FN RingSlots reserve_shared(const Ring& ring, Producer& producer, std::uint32_t count,
                                   port::Timeout timeout, std::uint64_t stall_ns) {
  RingSlots slots;
  port::Patience patience(timeout);
  Pulse pulse(&ring.words->heartbeat, stall_ns, producer.worker);
  std::uint64_t seen = port::load<port::Scope::gpu>(&ring.state->reserved);
  for (;;) {
    std::uint64_t taken = cached ? cached_taken(ring) : port::load<port::Scope::system>(ring.taken);
    if (!has_room(seen + count, taken + slots_of(ring))) {
      const std::uint64_t now = read_taken(ring);
      if constexpr (cached)
        if (now > taken) keep_taken(ring, now);
      taken = now;
      if (!has_room(seen + count, taken + slots_of(ring))) {
        const bool goes_on = wait_for_room(ring, patience, pulse, slots.status);
        producer.worker = pulse.last();
        if (!goes_on) return slots;
        seen = port::load<port::Scope::gpu>(&ring.state->reserved);
        continue;
      }
    }
    const std::uint64_t before =
        port::compare_exchange<port::Scope::gpu>(&ring.state->reserved, seen, seen + count);
    if (before == seen) {
      slots.first = seen;
      return slots;
    }
    seen = before;
  }
}

}  // namespace detail

/// Slots for `count` descriptors in a row.
/// \param stall_ns ProxyView::stall_ns: a worker that stands so long is lost, and with it the room
/// \return also completion_error: the ring has failed, or its worker is lost
template <Protocol protocol>
BELFRY_INLINE_FN RingSlots reserve(const Ring& ring, Producer& producer, std::uint32_t count,
                                   port::Timeout timeout, std::uint64_t stall_ns) {
  if constexpr (protocol == Protocol::tuned) {
    return detail::reserve_own(ring, producer, count, timeout, stall_ns);
  } else {
    return detail::reserve_shared<protocol == Protocol::shared_tuned>(ring, producer, count, timeout,
                                                                      stall_ns);
  }
}

namespace detail {

BELFRY_INLINE_FN void store_descriptor(const Ring& ring, std::uint64_t index, port::Vector16 descriptor) {
  descriptor.low |= parity_of(ring, index);
  port::store_16(ring.slots + (index & (slots_of(ring) - 1)), descriptor);
}

/// By value: a request whose address nobody takes stays in registers.
BELFRY_SLOW_FN void store_rest(Ring ring, std::uint64_t first, wire::ProxyRequest request) {
  const std::uint32_t count = wire::proxy_descriptors(request);
  for (std::uint32_t i = 1; i < count; ++i)
    store_descriptor(ring, first + i, wire::proxy_descriptor(request, i));
}

}  // namespace detail

/// Stores a request's descriptors into their slots. Each is valid by itself as soon as it is there; the
/// worker goes on to the next slot only then, so their order does not matter.
BELFRY_INLINE_FN void store_request(const Ring& ring, std::uint64_t first,
                                    const wire::ProxyRequest& request) {
  detail::store_descriptor(ring, first, wire::proxy_first_descriptor(request));
  if (wire::proxy_descriptors(request) > 1) detail::store_rest(ring, first, request);
}

/// Protocol::tuned: whether the next slot is known to be free.
BELFRY_INLINE_FN bool has_slot(const Producer& producer) {
  // Never a ring apart: 32 bits tell.
  return static_cast<std::uint32_t>(producer.at) != static_cast<std::uint32_t>(producer.end);
}

/// Stores into it. \param descriptor without its parity
BELFRY_INLINE_FN void store_next(Producer& producer, port::Vector16 descriptor) {
  descriptor.low |= producer.parity;
  port::store_16(reinterpret_cast<port::Vector16*>(producer.at), descriptor);
  producer.at += sizeof(port::Vector16);
}

namespace detail {

/// Waits for the next slot, which is not taken yet, and stores into it. All of it in here: what a caller
/// keeps for a store that comes after a call is kept in memory, by those also that need not wait.
BELFRY_SLOW_FN Status wait_and_store(OwnRoom& room, port::Vector16 descriptor) {
  const Status status = wait_for_own_slots(room, room.producer.next());
  if (status == Status::done) store_next(room.producer, descriptor);
  return status;
}

}  // namespace detail

/// The same, and waits for the slot where that is not known.
BELFRY_INLINE_FN Status store_own(const Ring& ring, Producer& producer, port::Vector16 descriptor,
                                  port::Timeout timeout, std::uint64_t stall_ns) {
  if (has_slot(producer)) {
    store_next(producer, descriptor);
    return Status::done;
  }
  detail::OwnRoom room{ring, producer, 1, timeout, stall_ns};
  const Status status = detail::wait_and_store(room, descriptor);
  producer = room.producer;
  return status;
}

/// Makes a put's payload visible before the descriptor that will name it (mutant:
/// proxy_payload_before_descriptor). The other end is the NIC, which the worker tells after it has seen the
/// descriptor.
template <class Policy>
BELFRY_FN void publish_payload() {
  if constexpr (Policy::form == Form::payload_published) {
    if (port::kept(port::Step::proxy_payload_before_descriptor)) port::fence<Policy::publish_scope>();
  }
}

/// The control's release of system scope, whatever the form (mutant: proxy_baseline_release). It comes after
/// the slots are reserved and before anything is stored to them, so it is also the acquire of what the
/// relaxed read of the worker's progress stands for: the slots' last descriptors.
template <class Policy>
BELFRY_FN void release_system() {
  if constexpr (Policy::protocol == Protocol::baseline)
    if (port::kept(port::Step::proxy_baseline_release)) port::fence<port::Scope::system>();
}

}  // namespace belfry::device::proxy
