#pragma once
/// \file
/// Waiting for the worker's count.

#include "belfry/device/proxy/enqueue.hpp"
#include "belfry/device/pulse.hpp"

namespace belfry::device::proxy {

namespace detail {

/// After a fault was seen: what the worker counted, and the QPN, came before it (mutants:
/// proxy_acquire_fault, proxy_release_fault).
BELFRY_FN inline void acquire_fault() {
  if (port::kept(port::Step::proxy_acquire_fault)) port::fence<port::Scope::system>();
}

/// What a fault that was acquired means for the operation whose last request ends at `index`, and its first
/// `span` slots before.
BELFRY_FN inline Outcome failed_outcome(const Ring& ring, std::uint64_t word, std::uint64_t index,
                                        std::uint32_t span = 0) {
  Outcome o;
  o.status = Status::completion_error;
  const auto qpn = static_cast<std::uint32_t>(port::load<port::Scope::system>(&ring.words->fault_qpn));
  o.fault = decode_fault(word, port::load<port::Scope::system>(&ring.words->completed), qpn);
  const bool is_root =
      o.fault.kind == Fault::Kind::root && o.fault.index <= index && index - o.fault.index <= span;
  o.syndrome = is_root ? o.fault.syndrome : wire::Syndrome::flushed;
  return o;
}

}  // namespace detail

/// Waits until the descriptor at `index`, and all before it, are complete.
/// The other end: the worker has polled the CQE before it counts, and counts an operation only with all
/// before it (mutants: proxy_count_in_order, proxy_release_completion, proxy_acquire_completion). \param
/// reads the completion stands for data that the NIC wrote here: what follows sees it \param span
/// Operation::span, in slots
BELFRY_FN inline Outcome wait_for(const ProxyView& view, const Ring& ring, std::uint64_t index, bool reads,
                                  port::Timeout timeout, std::uint32_t span = 0) {
  port::Patience patience(timeout);
  Pulse pulse(&ring.words->heartbeat, view.stall_ns);
  Outcome o;
  for (;;) {
    if (port::poll<port::Scope::system>(&ring.words->completed) > index) {
      if (reads && port::kept(port::Step::proxy_acquire_completion)) port::fence<port::Scope::system>();
      return o;
    }
    const std::uint64_t word = port::load<port::Scope::system>(&ring.words->fault);
    if (word != 0) {
      detail::acquire_fault();
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
