#pragma once
/// \file
/// The CPU thread between a queue's doorbells and the NIC, where there is one.

#include <cstdint>

#include "belfry/device/pulse.hpp"
#include "belfry/device/status.hpp"
#include "belfry/device/view.hpp"

namespace belfry::device::gda {

/// What waits for the NIC waits for that thread too, and asks this once a turn.
class ForwarderWatch {
 public:
  BELFRY_FN explicit ForwarderWatch(const SendQueue& queue) : words_(queue.forwarder), pulse_(nullptr, 0) {}

  BELFRY_FN bool is_lost() {
    if (words_ == nullptr) return false;
    if (!begun_) {
      pulse_ = Pulse(&words_->heartbeat, words_->stall_ns);
      begun_ = true;
    }
    return pulse_.is_lost();
  }

 private:
  const ForwarderWords* words_;
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
