#pragma once
/// \file
/// mini-proxy's channel: one ring to a CPU worker, and one peer. The same calls as mini-gda's channel
/// (device/gda/channel.hpp), with the same meaning.

#include <cstdint>
#include <type_traits>

#include "belfry/device/announce.hpp"
#include "belfry/device/proxy/bounds.hpp"
#include "belfry/device/proxy/wait.hpp"
#include "belfry/device/signal.hpp"
#include "belfry/device/together.hpp"

namespace belfry::device::proxy {

inline constexpr port::Timeout kDefaultTimeout = port::Timeout::seconds(10);

/// Under Protocol::tuned a ring has one producer (a thread, or a warp through its lowest lane), which has the
/// only channel on it: the ring's index lives in it until it is destroyed. Under the others any number of
/// threads may have one. Announce is accepted and means nothing: the worker chains what it finds.
template <class Policy>
class Channel {
  static_assert(
      Policy::publish_scope == port::Scope::system ||
          (Policy::publish_scope == port::Scope::gpu && Policy::assume_own_memory),
      "a payload that is published at GPU scope needs assume_own_memory (A1), and nothing less will do");

 public:
  using View = ProxyView;

  /// Rings; each serves every peer.
  BELFRY_FN static std::uint32_t count(const View& view) { return view.ring_count; }

  /// \param ring below view.ring_count. Where there is no such ring or peer every call says bad_argument.
  BELFRY_INLINE_FN Channel(const ProxyView& view, std::uint32_t pe, std::uint32_t ring = 0)
      : view_(view),
        ring_(view.rings[ring < view.ring_count ? ring : 0]),
        pe_(pe),
        exists_(has_peer(view, pe) && ring < view.ring_count) {
    if constexpr (Policy::protocol == Protocol::tuned)
      producer_ = enter_ring(*ring_.state, std::uint64_t{1} << ring_.log_slots);
    // So that one check says that there is something to write to: no window is ever looked at.
    if (!exists_) view_.window_count = 0;
  }
  BELFRY_INLINE_FN ~Channel() {
    if constexpr (Policy::protocol == Protocol::tuned)
      leave_ring(ring_.state, producer_.next(), producer_.room - (std::uint64_t{1} << ring_.log_slots));
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Writing ------------------------------------------------------------------------------------------

  template <class Group>
  BELFRY_INLINE_FN Operation put(Group group, Place remote, Place local, std::uint64_t bytes,
                                 Announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    // A thread of its own has nobody to be together with: a lambda would be one call that may stay one.
    if constexpr (std::is_same_v<Group, Thread>) return put_now(remote, local, bytes, timeout);
    return together(group, [&] { return put_now(remote, local, bytes, timeout); });
  }

  BELFRY_FN Operation put_each(Warp warp, Place remote, Place local, std::uint32_t bytes,
                               Announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    const bool good = peer_has(remote, bytes) && own_has(local, bytes);
    if (port::ballot(warp.mask, !good) != 0) return refused();
    publish_payload<Policy>();
    return enqueue_each(warp, two_sided(wire::ProxyOperation::put, remote, local, bytes), timeout);
  }

  template <class Group, class Value>
  BELFRY_INLINE_FN Operation put_value(Group group, Place remote, Value value, Announce = Announce::now,
                                       port::Timeout timeout = kDefaultTimeout) {
    if constexpr (std::is_same_v<Group, Thread>) return put_value_now(remote, value, timeout);
    return together(group, [&] { return put_value_now(remote, value, timeout); });
  }

  template <class Value>
  BELFRY_FN Operation put_value_each(Warp warp, Place remote, Value value, Announce = Announce::now,
                                     port::Timeout timeout = kDefaultTimeout) {
    const bool good = peer_has(remote, sizeof value);
    if (port::ballot(warp.mask, !good) != 0) return refused();
    return enqueue_each(warp, value_request(remote, value), timeout);
  }

  template <class Group>
  BELFRY_FN Operation put_signal(Group group, Place remote, Place local, std::uint64_t bytes, Signal signal,
                                 port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!peer_has(remote, bytes) || !own_has(local, bytes) || !can_signal(signal)) return refused();
      publish_payload<Policy>();
      const auto put = two_sided(wire::ProxyOperation::put, remote, local, bytes);
      if (!port::kept(port::Step::signal_after_payload)) {
        const Operation early = enqueue(signal_request(signal), timeout);
        return early.ok() ? enqueue(put, timeout) : early;
      }
      const Operation payload = enqueue(put, timeout);
      if (!payload.ok()) return payload;
      const Operation last = enqueue(signal_request(signal), timeout);
      return last.ok() ? joined(payload, last) : in_part(payload, last);
    });
  }

  template <class Group>
  BELFRY_FN Operation signal(Group group, Signal signal, port::Timeout timeout = kDefaultTimeout) {
    return together(
        group, [&] { return can_signal(signal) ? enqueue(signal_request(signal), timeout) : refused(); });
  }

  // Reading ------------------------------------------------------------------------------------------

  template <class Group>
  BELFRY_FN Operation get(Group group, Place local, Place remote, std::uint64_t bytes,
                          Announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!peer_has(remote, bytes) || !own_has(local, bytes)) return refused();
      return reading(two_sided(wire::ProxyOperation::get, remote, local, bytes), timeout);
    });
  }

  template <class Group>
  BELFRY_FN Operation fetch_add(Group group, Place result, Place remote, std::uint64_t add,
                                Announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!can_do_atomic(remote) || !own_has(result, 8)) return refused();
      auto request = two_sided(wire::ProxyOperation::fetch_add, remote, result, 8);
      request.value = add;
      return reading(request, timeout);
    });
  }

  template <class Group>
  BELFRY_FN Operation compare_swap(Group group, Place result, Place remote, std::uint64_t compare,
                                   std::uint64_t swap, Announce = Announce::now,
                                   port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!can_do_atomic(remote) || !own_has(result, 8)) return refused();
      auto request = two_sided(wire::ProxyOperation::compare_swap, remote, result, 8);
      request.value = compare;
      request.second_value = swap;
      return reading(request, timeout);
    });
  }

  // Waiting ------------------------------------------------------------------------------------------

  template <class Group>
  BELFRY_FN Outcome wait(Group group, Operation op, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!op.ok() || !exists_ || op.index == kElsewhere) return unposted(op);
      return wait_on(op, timeout);
    });
  }

  BELFRY_FN Outcome test(Operation op) {
    if (!op.ok() || !exists_ || op.index == kElsewhere) return unposted(op);
    return wait_on(op, port::Timeout{0});
  }

  /// Waits for all that is in the ring, to whichever peer.
  template <class Group>
  BELFRY_FN Outcome flush(Group group, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] { return exists_ ? flush_ring(timeout) : unposted(Operation{}); });
  }

  /// Flushes every ring: one worker's count covers all peers of a ring.
  template <class Group>
  BELFRY_FN static Outcome quiet(const View& view, Group group, port::Timeout timeout) {
    Outcome first;
    const port::CallTime time(timeout);
    for (std::uint32_t ring = 0; ring < view.ring_count; ++ring) {
      Channel channel(view, view.pe, ring);
      keep_first(first, together(group, [&] { return channel.flush_ring(time.left()); }));
    }
    return first;
  }
  template <class Group>
  BELFRY_FN static Outcome flush_peer(const View& view, Group group, std::uint32_t pe,
                                      port::Timeout timeout) {
    if (has_peer(view, pe)) return quiet(view, group, timeout);
    Outcome none;
    none.status = Status::bad_argument;
    return none;
  }

  /// Why the ring failed; kind none while it works. worker_lost: for as long as a worker that was seen to
  /// stand still does.
  BELFRY_FN Fault fault() const {
    if (!exists_) return Fault{};
    const std::uint64_t word = port::load<port::Scope::system>(&ring_.words->fault);
    if (word == 0) {
      Pulse pulse(&ring_.words->heartbeat, view_.stall_ns, producer_.worker);
      return producer_.worker.is_lost && pulse.look()
                 ? lost_worker(port::load<port::Scope::system>(&ring_.words->completed))
                 : Fault{};
    }
    detail::acquire_fault();
    return fault_of(*ring_.words, word);
  }

  BELFRY_FN const Ring& ring() const { return ring_; }

 private:
  BELFRY_INLINE_FN static Operation refused() { return not_stored(Status::bad_argument); }
  BELFRY_FN static bool has_peer(const View& view, std::uint32_t pe) {
    return pe < view.pe_count && (pe != view.pe || view.self_queues != 0);
  }
  BELFRY_FN Outcome unposted(Operation op) const {
    Outcome o;
    o.status = op.ok() ? Status::bad_argument : op.status;
    if (o.status != Status::completion_error) return o;
    o.fault = fault();
    // Nothing else refuses an operation. The worker has moved since.
    if (o.fault.kind == Fault::Kind::none)
      o.fault = lost_worker(port::load<port::Scope::system>(&ring_.words->completed));
    return o;
  }
  BELFRY_FN Outcome wait_on(const Operation& op, port::Timeout timeout) {
    const Waited waited = wait_for(view_, ring_, op, timeout, producer_.worker);
    producer_.worker = waited.last;
    return waited.outcome;
  }
  BELFRY_FN Outcome flush_ring(port::Timeout timeout) {
    const std::uint64_t end = Policy::protocol == Protocol::tuned
                                  ? producer_.next()
                                  : port::load<port::Scope::gpu>(&ring_.state->reserved);
    if (end == 0) return Outcome{};
    Operation all;
    all.index = end - 1;
    all.reads = true;
    return wait_on(all, timeout);
  }
  BELFRY_INLINE_FN bool peer_has(Place place, std::uint64_t bytes) { return has(remote_, place, bytes); }
  BELFRY_INLINE_FN bool own_has(Place place, std::uint64_t bytes) { return has(local_, place, bytes); }
  BELFRY_INLINE_FN bool has(WindowBounds& known, Place place, std::uint64_t bytes) {
    if constexpr (!Policy::check_arguments) return exists_;
    if constexpr (Policy::remember_windows) return known.holds(view_, place, bytes);
    return place.window < view_.window_count && view_.windows[place.window].contains(place.offset, bytes);
  }
  BELFRY_FN bool can_do_atomic(Place remote) { return remote.offset % 8 == 0 && peer_has(remote, 8); }
  BELFRY_FN bool can_signal(const Signal& signal) {
    return can_do_atomic(signal.place) &&
           (!Policy::check_arguments ||
            (view_.windows[signal.place.window].flags & kWindowRelaxedOrdering) == 0);
  }

  BELFRY_INLINE_FN wire::ProxyRequest two_sided(wire::ProxyOperation operation, Place remote, Place local,
                                                std::uint64_t bytes) const {
    wire::ProxyRequest r;
    r.operation = operation;
    r.peer = pe_;
    r.remote_window = remote.window;
    r.remote_offset = remote.offset;
    r.local_window = local.window;
    r.local_offset = local.offset;
    r.bytes = bytes;
    return r;
  }
  template <class Value>
  BELFRY_INLINE_FN wire::ProxyRequest value_request(Place remote, Value value) const {
    static_assert(std::is_trivially_copyable_v<Value> &&
                  (sizeof(Value) == 1 || sizeof(Value) == 2 || sizeof(Value) == 4 || sizeof(Value) == 8));
    wire::ProxyRequest r;
    r.operation = wire::ProxyOperation::put_value;
    r.peer = pe_;
    r.remote_window = remote.window;
    r.remote_offset = remote.offset;
    r.bytes = sizeof value;
    memcpy(&r.value, &value, sizeof value);
    return r;
  }
  BELFRY_FN wire::ProxyRequest signal_request(const Signal& signal) const {
    auto r = value_request(signal.place, signal.value);
    r.operation = signal.operation == SignalOperation::set ? wire::ProxyOperation::signal_set
                                                           : wire::ProxyOperation::signal_add;
    return r;
  }

  // Protocol::tuned's puts ask all at once whether anything is out of the ordinary, for on a GPU each branch
  // costs as much as the store. If so they go the long way, which every other protocol goes always.
  static constexpr bool kGoesShort = Policy::protocol == Protocol::tuned && Policy::remember_windows;

  BELFRY_INLINE_FN Operation put_now(Place remote, Place local, std::uint64_t bytes, port::Timeout timeout) {
    const bool is_short = kGoesShort && (fits(remote_, remote, bytes) BELFRY_AND fits(local_, local, bytes)
                                             BELFRY_AND has_slot(producer_));
    if (!is_short) {
      if (!peer_has(remote, bytes) || !own_has(local, bytes)) return refused();
      publish_payload<Policy>();
      return enqueue(two_sided(wire::ProxyOperation::put, remote, local, bytes), timeout);
    }
    publish_payload<Policy>();
    return store_now(two_sided(wire::ProxyOperation::put, remote, local, bytes));
  }
  template <class Value>
  BELFRY_INLINE_FN Operation put_value_now(Place remote, Value value, port::Timeout timeout) {
    const bool is_short = kGoesShort && (fits(remote_, remote, sizeof value) BELFRY_AND has_slot(producer_));
    if (!is_short) {
      if (!peer_has(remote, sizeof value)) return refused();
      return enqueue(value_request(remote, value), timeout);
    }
    return store_now(value_request(remote, value));
  }
  /// Whether one descriptor names it, and it lies in the window that was used last.
  BELFRY_INLINE_FN static bool fits(const WindowBounds& bounds, Place place, std::uint64_t bytes) {
    if constexpr (!Policy::check_arguments) return ((place.offset | bytes) >> 32) == 0;
    return bounds.are_known_to_hold(place, bytes);
  }
  BELFRY_INLINE_FN Operation store_now(const wire::ProxyRequest& request) {
    store_next(producer_, wire::proxy_first_descriptor(request));
    return stored(producer_.next() - 1);
  }
  BELFRY_INLINE_FN Operation enqueue(const wire::ProxyRequest& request, port::Timeout timeout) {
    const std::uint32_t count = wire::proxy_descriptors(request);
    if (Policy::protocol == Protocol::tuned && count == 1) {
      const Status status =
          store_own(ring_, producer_, wire::proxy_first_descriptor(request), timeout, view_.stall_ns);
      return status == Status::done ? stored(producer_.next() - 1) : not_stored(status);
    }
    const RingSlots slots = reserve<Policy::protocol>(ring_, producer_, count, timeout, view_.stall_ns);
    if (slots.status != Status::done) return not_stored(slots.status);
    release_system<Policy>();
    store_request(ring_, slots.first, request);
    return stored(slots.first + count - 1);
  }
  BELFRY_INLINE_FN static Operation not_stored(Status why) {
    Operation op;
    op.status = why;
    return op;
  }
  BELFRY_INLINE_FN Operation stored(std::uint64_t last) const {
    Operation op;
    op.index = last;
    op.peer = static_cast<std::uint16_t>(pe_);
    return op;
  }
  BELFRY_FN Operation reading(const wire::ProxyRequest& request, port::Timeout timeout) {
    Operation op = enqueue(request, timeout);
    op.reads = true;
    return op;
  }

  /// One reservation for all lanes of the mask. Each stores its own descriptors.
  BELFRY_FN Operation enqueue_each(Warp warp, const wire::ProxyRequest& request, port::Timeout timeout) {
    const std::uint32_t leader = port::first_lane(warp.mask);
    const std::uint32_t count = wire::proxy_descriptors(request);
    const std::uint32_t offset = port::sum_below(warp.mask, count);
    const std::uint32_t last = port::last_lane(warp.mask);
    const std::uint32_t total = port::shuffle(warp.mask, offset + count, last);
    RingSlots slots;
    if (port::lane_index() == leader)
      slots = reserve<Policy::protocol>(ring_, producer_, total, timeout, view_.stall_ns);
    Operation op;
    op.status = port::shuffle(warp.mask, slots.status, leader);
    if (!op.ok()) return op;
    const std::uint64_t first = port::shuffle(warp.mask, slots.first, leader) + offset;
    release_system<Policy>();
    // What the leader has acquired of the slots' last producers binds the lanes only now. Under
    // Protocol::baseline it is the fence above that acquires: it stands between the leader's read of the
    // worker's progress and the lanes' stores (mutants: proxy_baseline_release, warp_after_reservation).
    if constexpr (Policy::protocol != Protocol::tuned)
      if (port::kept(port::Step::warp_after_reservation)) port::sync_warp(warp.mask);
    store_request(ring_, first, request);
    return stored(first + count - 1);
  }

  ProxyView view_;
  Ring ring_;
  Producer producer_;
  WindowBounds remote_;
  WindowBounds local_;
  std::uint32_t pe_;
  bool exists_;
};

}  // namespace belfry::device::proxy
