#pragma once
/// \file
/// mini-gda's channel: one send queue of an RC QP, on which GPU threads build WQEs and ring the NIC.

#include <cstdint>

#include "belfry/device/gda/address.hpp"
#include "belfry/device/gda/post.hpp"
#include "belfry/device/policy.hpp"
#include "belfry/device/signal.hpp"
#include "belfry/device/together.hpp"

namespace belfry::device::gda {

inline constexpr port::Timeout kDefaultTimeout = port::Timeout::seconds(10);

/// A queue to one peer, as the caller uses it. Cheap to make; under Sharing::exclusive it holds the queue's
/// indices until it is destroyed, and its owner (one thread, or a warp through its lowest lane) has the
/// only one. Every call takes a group first (Thread, Warp, Block), returns a status and ends in time.
///
/// Three different things: an operation that is complete (wait, flush) has been acknowledged by the
/// peer's NIC, and its source may be used again; what it wrote is visible at the target only to who has
/// waited for a signal posted after it on the same channel.
template <class Policy>
class Channel {
  static_assert(policy_is_sound<Policy>());

 public:
  using Indices = IndicesOf<Policy>;
  using View = EndpointView;

  /// Queues to each peer.
  BELFRY_FN static std::uint32_t count(const View& view) { return view.queues_a_peer; }

  /// \param index below view.queues_a_peer. Where there is no such queue, or it was set up for another policy
  /// (doorbell mode, completion layout), every call says bad_argument.
  BELFRY_FN Channel(const EndpointView& view, std::uint32_t pe, std::uint32_t index = 0)
      : view_(view),
        queue_(view.queues[exists(view, pe, index) ? pe * view.queues_a_peer + index : 0]),
        indices_(queue_),
        number_(pe * view.queues_a_peer + index),
        pe_(pe),
        exists_(exists(view, pe, index) && queue_.state != nullptr &&
                queue_.doorbell_mode == Policy::doorbell_mode &&
                queue_.completion_layout == Policy::completion_layout) {}
  BELFRY_FN ~Channel() { indices_.write_back(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Writing ------------------------------------------------------------------------------------------

  /// Copies `bytes` from this PE's window to the peer's. Any length: longer than the device's limit becomes
  /// several WQEs, and the operation is all of them.
  template <class Group>
  BELFRY_FN Operation put(Group group, Place remote, Place local, std::uint64_t bytes,
                          Announce announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] { return put_one(remote, local, bytes, announce, timeout); });
  }

  /// The same for each lane of a warp with its own arguments, one doorbell for all: at most view.max_message
  /// bytes a lane. bad_argument also where the lanes' WQEs together need more blocks than the queue has.
  BELFRY_FN Operation put_each(Warp warp, Place remote, Place local, std::uint32_t bytes,
                               Announce announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    if constexpr (kOwnsQueue && Policy::payload == Payload::pointer) {
      bool now = true;
      const bool is_short = (announce == Announce::now) BELFRY_AND peer_is_known_to_hold(remote, bytes)
          BELFRY_AND own_is_known_to_hold(local, bytes) BELFRY_AND(bytes <= view_.max_message)
              BELFRY_AND has_room_for_all(warp);
      if (port::ballot(warp.mask, !is_short) != 0) {
        const bool good = find_both(remote, local, bytes) && bytes <= view_.max_message;
        const Status status = make_room_for_all(warp, good, announce, timeout, now);
        if (status != Status::done) return not_posted(status);
      }
      return post_own_each<Policy>(warp, queue_, indices_, pointer_write(remote, local, bytes), now);
    }
    const bool good = bytes <= view_.max_message && find_both(remote, local, bytes);
    if (port::ballot(warp.mask, !good) != 0) return refused();
    if constexpr (Policy::payload == Payload::inlined) {
      const bool fits = bytes <= inline_limit();
      if (port::ballot(warp.mask, !fits) == 0)
        return post_each<Policy>(warp, queue_, indices_, inline_write(remote, local, bytes), announce,
                                 timeout);
    }
    return post_each<Policy>(warp, queue_, indices_, pointer_write(remote, local, bytes), announce, timeout);
  }

  /// Writes 1 to 8 B from a register.
  template <class Group, class Value>
  BELFRY_FN Operation put_value(Group group, Place remote, Value value, Announce announce = Announce::now,
                                port::Timeout timeout = kDefaultTimeout) {
    static_assert(sizeof(Value) <= 8 && std::is_trivially_copyable_v<Value>);
    return together(group, [&] { return put_value_one(remote, value, announce, timeout); });
  }

  template <class Value>
  BELFRY_FN Operation put_value_each(Warp warp, Place remote, Value value, Announce announce = Announce::now,
                                     port::Timeout timeout = kDefaultTimeout) {
    static_assert(sizeof(Value) <= 8 && std::is_trivially_copyable_v<Value>);
    if constexpr (kOwnsQueue) {
      bool now = true;
      const bool is_short = (announce == Announce::now) BELFRY_AND peer_is_known_to_hold(remote, sizeof value)
          BELFRY_AND has_room_for_all(warp);
      if (port::ballot(warp.mask, !is_short) != 0) {
        const bool good = find_peer(remote, sizeof value);
        const Status status = make_room_for_all(warp, good, announce, timeout, now);
        if (status != Status::done) return not_posted(status);
      }
      return post_own_each<Policy>(warp, queue_, indices_, value_write(used_.known_remote(remote), value),
                                   now);
    }
    const bool good = find_peer(remote, sizeof value);
    if (port::ballot(warp.mask, !good) != 0) return refused();
    return post_each<Policy>(warp, queue_, indices_, value_write(used_.known_remote(remote), value), announce,
                             timeout);
  }

  /// put(), and then the signal on the same queue: whoever sees the signal sees the whole payload.
  /// \param timeout of the payload, and again of the signal
  template <class Group>
  BELFRY_FN Operation put_signal(Group group, Place remote, Place local, std::uint64_t bytes, Signal signal,
                                 port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!can_signal(signal)) return refused();
      // A signal in front of what it stands for (mutant: signal_after_payload).
      if (!port::kept(port::Step::signal_after_payload)) {
        const Operation early = signal_one(signal, timeout);
        return early.ok() ? put_one(remote, local, bytes, Announce::now, timeout) : early;
      }
      const Operation payload = put_one(remote, local, bytes, Announce::later, timeout);
      if (!payload.ok()) return payload;
      const Operation last = signal_one(signal, timeout);
      return last.ok() ? joined(payload, last) : in_part(payload, last);
    });
  }

  /// A signal alone: it covers everything posted to this channel before.
  template <class Group>
  BELFRY_FN Operation signal(Group group, Signal signal, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] { return can_signal(signal) ? signal_one(signal, timeout) : refused(); });
  }

  // Reading ------------------------------------------------------------------------------------------

  /// Copies `bytes` from the peer's window to this PE's. What it brought is there once wait() has said done.
  template <class Group>
  BELFRY_FN Operation get(Group group, Place local, Place remote, std::uint64_t bytes,
                          Announce announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!find_both(remote, local, bytes)) return refused();
      return in_pieces(
          bytes, announce, timeout,
          [&](std::uint64_t at, std::uint32_t piece, Announce when, port::Timeout left) {
            const Read read{used_.known_remote(remote + at), used_.known_local(local + at), piece};
            Operation op = post<Policy>(queue_, indices_, read, when, left);
            op.reads = true;
            return op;
          });
    });
  }

  /// Adds to the peer's 8 B word; the old value goes to `result`, in this PE's byte order.
  template <class Group>
  BELFRY_FN Operation fetch_add(Group group, Place result, Place remote, std::uint64_t add,
                                Announce announce = Announce::now, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!can_do_atomic(remote) || !own_has(result, 8)) return refused();
      const FetchAdd wqe{remote_of(remote), local_of(result), add};
      Operation op = post<Policy>(queue_, indices_, wqe, announce, timeout);
      op.reads = true;
      return op;
    });
  }

  /// Stores `swap` in the peer's 8 B word if it is `compare`; the old value goes to `result`.
  template <class Group>
  BELFRY_FN Operation compare_swap(Group group, Place result, Place remote, std::uint64_t compare,
                                   std::uint64_t swap, Announce announce = Announce::now,
                                   port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!can_do_atomic(remote) || !own_has(result, 8)) return refused();
      const CompareSwap wqe{remote_of(remote), local_of(result), compare, swap};
      Operation op = post<Policy>(queue_, indices_, wqe, announce, timeout);
      op.reads = true;
      return op;
    });
  }

  // Waiting ------------------------------------------------------------------------------------------

  /// Waits for an operation of this channel, which must have been announced (Announce::now, a later one, or
  /// flush). An operation that was not posted answers with its own status, and with the queue's fault if that
  /// is why.
  template <class Group>
  BELFRY_FN Outcome wait(Group group, Operation op, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      if (!op.ok() || !exists_ || op.index == kElsewhere) return unposted(op);
      return wait_for<Policy>(queue_, indices_, op.index, op.reads, timeout, op.span);
    });
  }

  /// Looks once. \return done, completion_error, or timed_out where it is still under way
  BELFRY_FN Outcome test(Operation op) {
    if (!op.ok() || !exists_ || op.index == kElsewhere) return unposted(op);
    return wait_for<Policy>(queue_, indices_, op.index, op.reads, port::Timeout{0}, op.span);
  }

  /// Announces and waits for all that was published on the queue, by whomever. Where nothing that completes
  /// visibly covers it, a NOP does. What gets and atomics among it brought is there then.
  template <class Group>
  BELFRY_FN Outcome flush(Group group, port::Timeout timeout = kDefaultTimeout) {
    return together(group, [&] {
      const Outcome outcome = flush_one(timeout);
      // (mutant: acquire_flush)
      if (outcome.ok() && port::kept(port::Step::acquire_flush)) port::fence<port::Scope::system>();
      return outcome;
    });
  }

  /// Flushes every queue to one peer; what device::Endpoint offers.
  template <class Group>
  BELFRY_FN static Outcome flush_peer(const View& view, Group group, std::uint32_t pe,
                                      port::Timeout timeout) {
    Outcome first;
    const port::CallTime time(timeout);
    for (std::uint32_t index = 0; index < view.queues_a_peer; ++index) {
      Channel channel(view, pe, index);
      keep_first(first, channel.flush(group, time.left()));
    }
    return first;
  }
  template <class Group>
  BELFRY_FN static Outcome quiet(const View& view, Group group, port::Timeout timeout) {
    Outcome first;
    const port::CallTime time(timeout);
    for (std::uint32_t pe = 0; pe < view.pe_count; ++pe)
      if (view.queues[pe * view.queues_a_peer].state != nullptr)
        keep_first(first, flush_peer(view, group, pe, time.left()));
    return first;
  }

  /// Why the queue failed; kind none while it works.
  BELFRY_FN Fault fault() const {
    if (!exists_) return Fault{};
    if (const std::uint64_t word = indices_.fault(); word != 0) {
      indices_.acquire_fault();
      return decode_fault(word, indices_.consumer(), queue_.qpn);
    }
    if (!has_dead_forwarder(queue_)) return Fault{};
    return forwarder_fault(queue_, indices_.consumer());
  }

  BELFRY_FN const SendQueue& queue() const { return queue_; }
  BELFRY_FN Indices& indices() { return indices_; }

 private:
  BELFRY_FN static bool exists(const EndpointView& view, std::uint32_t pe, std::uint32_t index) {
    return pe < view.pe_count && index < view.queues_a_peer;
  }
  BELFRY_FN static Operation not_posted(Status why) {
    Operation op;
    op.status = why;
    return op;
  }
  BELFRY_FN static Operation refused() { return not_posted(Status::bad_argument); }
  BELFRY_FN Outcome unposted(Operation op) const {
    Outcome o;
    o.status = op.ok() ? Status::bad_argument : op.status;
    if (o.status != Status::completion_error) return o;
    o.fault = fault();
    // A queue that does not take WQEs any more, and has no fault: its doorbells are not forwarded.
    if (o.fault.kind == Fault::Kind::none) o.fault = forwarder_fault(queue_, indices_.consumer());
    return o;
  }
  BELFRY_FN bool peer_has(Place place, std::uint64_t bytes) {
    return !Policy::check_arguments || used_.peer_holds(view_, pe_, place, bytes);
  }
  BELFRY_FN bool own_has(Place place, std::uint64_t bytes) {
    return !Policy::check_arguments || used_.own_holds(view_, place, bytes);
  }
  /// Never where the channel does not exist: it uses no window then.
  BELFRY_FN bool peer_is_known_to_hold(Place place, std::uint64_t bytes) const {
    return used_.peer_is_known_to_hold(place, Policy::check_arguments ? bytes : 0);
  }
  BELFRY_FN bool own_is_known_to_hold(Place place, std::uint64_t bytes) const {
    return used_.own_is_known_to_hold(place, Policy::check_arguments ? bytes : 0);
  }
  // The same, and looks. Then the windows are those used last, whether anything is checked or not.

  BELFRY_FN bool find_peer(Place place, std::uint64_t bytes) {
    if (!exists_ || !peer_has(place, bytes)) return false;
    remote_of(place);
    return true;
  }
  BELFRY_FN bool find_both(Place remote, Place local, std::uint64_t bytes) {
    if (!find_peer(remote, bytes) || !own_has(local, bytes)) return false;
    local_of(local);
    return true;
  }

  /// Room for a WQE of each lane: what the lowest one says of its queue; the others have nothing to say.
  BELFRY_FN bool has_room_for_all(Warp warp) const {
    return (port::lane_index() != port::first_lane(warp.mask)) |
           has_own_room<Policy>(queue_, indices_, port::count_lanes(warp.mask));
  }
  /// \param good whether the caller's arguments are; no lane posts where another one's are not
  BELFRY_FN Status make_room_for_all(Warp warp, bool good, Announce announce, port::Timeout timeout,
                                     bool& now) {
    if (port::ballot(warp.mask, !good) != 0) return Status::bad_argument;
    const std::uint32_t leader = port::first_lane(warp.mask);
    Status status = Status::done;
    if (port::lane_index() == leader)
      status = make_own_room<Policy>(queue_, indices_, port::count_lanes(warp.mask), announce, timeout, now);
    now = port::shuffle(warp.mask, now ? 1u : 0u, leader) != 0;
    return port::shuffle(warp.mask, status, leader);
  }

  BELFRY_FN Remote remote_of(Place place) { return used_.remote_of(view_, pe_, place); }
  BELFRY_FN Local local_of(Place place) { return used_.local_of(view_, place); }
  BELFRY_FN bool can_do_atomic(Place remote) {
    return exists_ && remote.offset % 8 == 0 && peer_has(remote, 8);
  }
  BELFRY_FN bool can_signal(const Signal& signal) {
    return can_do_atomic(signal.place) &&
           (!Policy::check_arguments ||
            (view_.windows[signal.place.window].flags & kWindowRelaxedOrdering) == 0);
  }
  BELFRY_FN std::uint32_t inline_limit() const {
    return Policy::max_inline < view_.max_inline ? Policy::max_inline : view_.max_inline;
  }

  // Of windows that find_peer() or find_both() has found, or that are known.

  BELFRY_FN PointerWrite pointer_write(Place remote, Place local, std::uint64_t bytes) const {
    return {used_.known_remote(remote), used_.known_local(local), static_cast<std::uint32_t>(bytes)};
  }
  BELFRY_FN InlineWrite inline_write(Place remote, Place local, std::uint64_t bytes) const {
    const auto source = reinterpret_cast<const std::byte*>(used_.known_local(local).address);
    return {used_.known_remote(remote), source, static_cast<std::uint32_t>(bytes)};
  }
  template <class Value>
  BELFRY_FN static ValueWrite value_write(Remote remote, Value value) {
    ValueWrite write;
    write.remote = remote;
    memcpy(&write.value, &value, sizeof value);
    write.bytes = sizeof value;
    return write;
  }

  template <class Value>
  BELFRY_FN Operation put_value_one(Place remote, Value value, Announce announce, port::Timeout timeout) {
    if constexpr (kOwnsQueue) {
      bool now = true;
      if (!((announce == Announce::now) BELFRY_AND peer_is_known_to_hold(remote, sizeof value)
                BELFRY_AND has_own_room<Policy>(queue_, indices_, 1))) {
        if (!find_peer(remote, sizeof value)) return refused();
        const Status status = make_own_room<Policy>(queue_, indices_, 1, announce, timeout, now);
        if (status != Status::done) return not_posted(status);
      }
      return post_own<Policy>(queue_, indices_, value_write(used_.known_remote(remote), value), now);
    }
    if (!find_peer(remote, sizeof value)) return refused();
    return post<Policy>(queue_, indices_, value_write(used_.known_remote(remote), value), announce, timeout);
  }

  /// Posts pieces of at most the device's limit, announcing with the last.
  template <class Post>
  BELFRY_FN Operation in_pieces(std::uint64_t bytes, Announce announce, port::Timeout timeout,
                                const Post& post_piece) {
    if (bytes <= view_.max_message)
      return post_piece(0, static_cast<std::uint32_t>(bytes), announce, timeout);
    const port::CallTime time(timeout);
    Operation posted;
    for (std::uint64_t at = 0;; at += view_.max_message) {
      const std::uint64_t left = bytes - at;
      const bool last = left <= view_.max_message;
      const std::uint32_t piece = static_cast<std::uint32_t>(last ? left : view_.max_message);
      const Operation op = post_piece(at, piece, last ? announce : Announce::later, time.left());
      if (!op.ok()) return at == 0 ? op : in_part(posted, op);
      posted = at == 0 ? op : joined(posted, op);
      if (last) return posted;
    }
  }

  BELFRY_FN Operation put_one(Place remote, Place local, std::uint64_t bytes, Announce announce,
                              port::Timeout timeout) {
    if constexpr (kOwnsQueue) {
      const bool is_short = (announce == Announce::now) BELFRY_AND peer_is_known_to_hold(remote, bytes)
          BELFRY_AND own_is_known_to_hold(local, bytes) BELFRY_AND has_own_room<Policy>(queue_, indices_, 1);
      if constexpr (Policy::payload == Payload::pointer) {
        if (is_short BELFRY_AND(bytes <= view_.max_message))
          return post_own<Policy>(queue_, indices_, pointer_write(remote, local, bytes), true);
      } else if (is_short) {
        const auto* source = reinterpret_cast<const std::byte*>(used_.known_local(local).address);
        if (ShortInlineWrite::fits(source, bytes) BELFRY_AND(bytes <= inline_limit()))
          return post_own<Policy>(
              queue_, indices_,
              ShortInlineWrite{used_.known_remote(remote), source, static_cast<std::uint32_t>(bytes)}, true);
      }
    }
    if (!find_both(remote, local, bytes)) return refused();
    if constexpr (Policy::payload == Payload::inlined) {
      if (bytes <= inline_limit())
        return post<Policy>(queue_, indices_, inline_write(remote, local, bytes), announce, timeout);
    }
    return in_pieces(bytes, announce, timeout,
                     [&](std::uint64_t at, std::uint32_t piece, Announce when, port::Timeout left) {
                       const PointerWrite write = pointer_write(remote + at, local + at, piece);
                       return post<Policy>(queue_, indices_, write, when, left);
                     });
  }

  BELFRY_FN Operation signal_one(const Signal& signal, port::Timeout timeout) {
    if (signal.operation == SignalOperation::set)
      return post<Policy>(queue_, indices_, value_write(remote_of(signal.place), signal.value), Announce::now,
                          timeout);
    const FetchAdd wqe{remote_of(signal.place), gda::local_of(view_, view_.sink + std::uint64_t{8} * number_),
                       signal.value};
    return post<Policy>(queue_, indices_, wqe, Announce::now, timeout);
  }

  BELFRY_FN Outcome flush_one(port::Timeout timeout) {
    if (!exists_) return unposted(Operation{});
    std::uint64_t goal, signaled_goal;
    if constexpr (Policy::sharing == Sharing::exclusive) {
      goal = indices_.goal();
      signaled_goal = indices_.signaled_goal();
    } else {
      // Both only grow, and the goal is at least what the caller knows of. Where they are equal, that one is
      // announced; where one of them is older than the other it costs a NOP.
      constexpr port::Scope kScope = sharing_scope(Policy::sharing);
      signaled_goal = port::load<kScope>(&indices_.state()->signaled_goal);
      goal = port::load<kScope>(&indices_.state()->goal);
    }
    if (goal == signaled_goal) {
      if (indices_.consumer() >= goal) return Outcome{};
      return wait_for<Policy>(queue_, indices_, goal - 1, false, timeout);
    }
    const Operation nop = post<Policy>(queue_, indices_, Nop{}, Announce::now, timeout);
    if (nop.status == Status::completion_error) return failed_outcome(queue_, indices_, goal - 1);
    return nop.ok() ? wait_for<Policy>(queue_, indices_, nop.index, false, timeout) : unposted(nop);
  }

  static constexpr bool kOwnsQueue = Policy::sharing == Sharing::exclusive;

  EndpointView view_;
  SendQueue queue_;
  Indices indices_;
  UsedWindows used_;
  std::uint32_t number_;
  std::uint32_t pe_;
  bool exists_;
};

}  // namespace belfry::device::gda
