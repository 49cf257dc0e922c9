#pragma once
/// \file
/// Waiting for the worker's count.

#include "belfry/device/proxy/enqueue.hpp"

namespace belfry::device::proxy {

namespace detail {

/// What a fault means for the operation whose last request ends at `index`, and its first `span` slots
/// before.
BELFRY_FN inline Outcome failed_outcome(const Ring& ring, std::uint64_t word, std::uint64_t index,
                                        std::uint32_t span = 0) {
  Outcome o;
  o.status = Status::completion_error;
  // The worker wrote the QPN first.
  port::fence<port::Scope::system>();
  const auto qpn = static_cast<std::uint32_t>(port::load<port::Scope::system>(&ring.words->fault_qpn));
  o.fault = decode_fault(word, port::load<port::Scope::system>(&ring.words->completed), qpn);
  const bool is_root =
      o.fault.kind == Fault::Kind::root && o.fault.index <= index && index - o.fault.index <= span;
  o.syndrome = is_root ? o.fault.syndrome : wire::Syndrome::flushed;
  return o;
}

/// Watches a worker's heartbeat while somebody waits for it.
class Pulse {
 public:
  BELFRY_FN Pulse(const Ring& ring, std::uint64_t stall_ns) : ring_(ring), stall_ns_(stall_ns) {}

  /// To be asked once a turn. \return whether the worker has stood still for too long
  BELFRY_FN bool is_lost() {
    if (turns_++ % kTurnsBetweenLooks != 0 || stall_ns_ == 0) return false;
    const std::uint64_t now = port::now_ns();
    const std::uint64_t beat = port::load<port::Scope::system>(&ring_.words->heartbeat);
    if (since_ns_ == 0 || beat != beat_) {
      beat_ = beat;
      since_ns_ = now;
      return false;
    }
    return now - since_ns_ >= stall_ns_;
  }

 private:
  static constexpr std::uint32_t kTurnsBetweenLooks = 64;
  const Ring& ring_;
  std::uint64_t stall_ns_;
  std::uint64_t beat_ = 0;
  std::uint64_t since_ns_ = 0;
  std::uint32_t turns_ = 0;
};

}  // namespace detail

/// Waits until the descriptor at `index`, and all before it, are complete.
/// The other end: the worker has polled the CQE before it counts (mutant: proxy_count_in_order).
/// \param reads the completion stands for data that the NIC wrote here: what follows sees it
/// \param span Operation::span, in slots
BELFRY_FN inline Outcome wait_for(const ProxyView& view, const Ring& ring, std::uint64_t index, bool reads,
                                  port::Timeout timeout, std::uint32_t span = 0) {
  port::Patience patience(timeout);
  detail::Pulse pulse(ring, view.stall_ns);
  Outcome o;
  for (;;) {
    if (port::poll<port::Scope::system>(&ring.words->completed) > index) {
      if (reads && port::kept(port::Step::proxy_acquire_completion)) port::fence<port::Scope::system>();
      return o;
    }
    const std::uint64_t word = port::load<port::Scope::system>(&ring.words->fault);
    if (word != 0) {
      // What was complete before the fault is complete.
      if (port::load<port::Scope::system>(&ring.words->completed) > index) continue;
      return detail::failed_outcome(ring, word, index, span);
    }
    if (pulse.is_lost()) {
      o.status = Status::completion_error;
      o.syndrome = wire::Syndrome::none;
      o.fault.kind = Fault::Kind::worker_lost;
      o.fault.index = index;
      return o;
    }
    if (patience.is_over()) {
      o.status = Status::timed_out;
      return o;
    }
  }
}

}  // namespace belfry::device::proxy
