#pragma once
/// \file
/// The CPU thread between a queue's doorbells and the NIC, where there is one.

#include <cstdint>

#include "belfry/device/pulse.hpp"
#include "belfry/device/status.hpp"
#include "belfry/device/view.hpp"

namespace belfry::device::gda {

/// What waits for the NIC waits for that thread too, and asks this once a turn. What was seen of its
/// heartbeat stays with the queue, so that many short waits find a stall as one long one does.
class ForwarderWatch {
 public:
  BELFRY_FN explicit ForwarderWatch(const SendQueue& queue)
      : words_(queue.forwarder), state_(queue.state), pulse_(nullptr, 0) {}

  BELFRY_FN bool is_lost() {
    if (words_ == nullptr) return false;
    if (!begun_) {
      pulse_ = Pulse(&words_->heartbeat, words_->stall_ns, seen_before());
      begun_ = true;
    }
    const LastBeat before = pulse_.last();
    const bool lost = pulse_.is_lost();
    if (pulse_.last().since_ns != before.since_ns) keep(pulse_.last());
    return lost;
  }

 private:
  // One word, which pollers of a shared queue may replace in any order: the beat's lower half, and when it
  // was seen first, in units of a millisecond or so. A beat that is found again after a multiple of 2^32
  // passes for a stall, at odds of 1 to 4e9.
  static constexpr unsigned kTimeShift = 20;

  BELFRY_FN LastBeat seen_before() const {
    LastBeat last;
    const std::uint64_t seen = port::load<port::Scope::gpu>(&state_->forwarder_seen);
    if (seen == 0) return last;
    const std::uint64_t beat = port::load<port::Scope::system>(&words_->heartbeat);
    if (static_cast<std::uint32_t>(beat) != static_cast<std::uint32_t>(seen)) return last;
    const std::uint64_t now = port::now_ns();
    const std::uint32_t units =
        static_cast<std::uint32_t>(now >> kTimeShift) - static_cast<std::uint32_t>(seen >> 32);
    last.beat = beat;
    // No longer ago than it was.
    last.since_ns = now - (static_cast<std::uint64_t>(units == 0 ? 0 : units - 1) << kTimeShift);
    return last;
  }
  BELFRY_FN void keep(const LastBeat& last) {
    port::store<port::Scope::gpu>(
        &state_->forwarder_seen, (last.since_ns >> kTimeShift) << 32 | static_cast<std::uint32_t>(last.beat));
  }

  const ForwarderWords* words_;
  QueueState* state_;
  Pulse pulse_;
  bool begun_ = false;
};

/// The fault of a queue whose doorbells nobody forwards.
/// \param index of what was waited for
BELFRY_FN inline Fault forwarder_fault(const SendQueue& queue, std::uint64_t index) {
  Fault f;
  f.kind = Fault::Kind::worker_lost;
  f.index = index;
  f.qpn = queue.qpn;
  return f;
}

/// Whether that thread has ended, as it said itself.
BELFRY_FN inline bool has_dead_forwarder(const SendQueue& queue) {
  return queue.forwarder != nullptr &&
         port::load<port::Scope::system>(&queue.forwarder->heartbeat) == kDeadBeat;
}

}  // namespace belfry::device::gda
