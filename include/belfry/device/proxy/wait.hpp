#pragma once
/// \file
/// Waiting for the worker's count.

#include "belfry/device/proxy/enqueue.hpp"
#include "belfry/device/pulse.hpp"

namespace belfry::device::proxy {

/// The fault that a worker tells of. \param word its `fault`, which was acquired and is not 0
BELFRY_FN inline Fault fault_of(const WorkerWords& words, std::uint64_t word) {
  const std::uint64_t queue = port::load<port::Scope::system>(&words.fault_queue);
  Fault f = decode_fault(word, 0, static_cast<std::uint32_t>(queue));
  f.index = port::load<port::Scope::system>(&words.fault_index);
  f.peer = static_cast<std::uint16_t>(queue >> 32);
  return f;
}

namespace detail {

/// After a fault was seen: what the worker counted, and what it says of the fault, came before it (mutants:
/// proxy_acquire_fault, proxy_release_fault).
BELFRY_FN inline void acquire_fault() {
  if (port::kept(port::Step::proxy_acquire_fault)) port::fence<port::Scope::system>();
}

/// What the ring's fault means for an operation on it. One peer's queue has failed, and the worker has
/// stopped posting; what it had posted to other peers may have been carried out all the same.
BELFRY_FN inline wire::Syndrome syndrome_of(const Operation& op, const Fault& fault,
                                            std::uint64_t dropped_from) {
  const bool has_root = fault.kind == Fault::Kind::root;
  if (has_root && fault.index <= op.index && op.index - fault.index <= op.span) return fault.syndrome;
  if (op.index >= dropped_from) return wire::Syndrome::flushed;
  const bool is_behind = op.peer != kNoPeer && op.peer == fault.peer && op.index >= fault.index;
  return is_behind ? wire::Syndrome::flushed : wire::Syndrome::none;
}

/// What a fault whose word was acquired means for an operation.
BELFRY_FN inline Outcome failed_outcome(const WorkerWords& words, std::uint64_t word, const Operation& op) {
  Outcome o;
  o.status = Status::completion_error;
  o.fault = fault_of(words, word);
  o.syndrome = syndrome_of(op, o.fault, port::load<port::Scope::system>(&words.dropped_from));
  return o;
}

}  // namespace detail

/// The worker does not move. What became of the descriptors from `index` on is not known.
BELFRY_FN inline Fault lost_worker(std::uint64_t index) {
  Fault f;
  f.kind = Fault::Kind::worker_lost;
  f.index = index;
  return f;
}

/// How a wait has ended.
struct Waited {
  Outcome outcome;
  LastBeat last;  ///< of the worker: for the next wait
};

/// Waits until an operation, and all before it on the ring, are complete.
/// The other end: the worker has polled the CQE before it counts, and counts an operation only with all
/// before it (mutants: proxy_count_in_order, proxy_release_completion, proxy_acquire_completion).
/// \param op its `reads`: the completion stands for data that the NIC wrote here, what follows sees it
/// \param last of the wait before
BELFRY_FN inline Waited wait_for(const ProxyView& view, const Ring& ring, const Operation& op,
                                 port::Timeout timeout, LastBeat last) {
  port::Patience patience(timeout);
  Pulse pulse(&ring.words->heartbeat, view.stall_ns, last);
  Outcome o;
  for (;;) {
    if (port::poll<port::Scope::system>(&ring.words->completed) > op.index) {
      if (op.reads && port::kept(port::Step::proxy_acquire_completion)) port::fence<port::Scope::system>();
      break;
    }
    const std::uint64_t word = port::load<port::Scope::system>(&ring.words->fault);
    if (word != 0) {
      detail::acquire_fault();
      // What was complete before the fault is complete.
      if (port::load<port::Scope::system>(&ring.words->completed) > op.index) continue;
      o = detail::failed_outcome(*ring.words, word, op);
      break;
    }
    const bool is_late = patience.is_over();
    if (is_late ? pulse.look() : pulse.is_lost()) {
      o.status = Status::completion_error;
      o.syndrome = wire::Syndrome::none;
      o.fault = lost_worker(op.index);
      break;
    }
    if (is_late) {
      o.status = Status::timed_out;
      break;
    }
  }
  Waited waited{o, pulse.last()};
  // It counts before it beats.
  if (o.ok()) waited.last.is_lost = false;
  return waited;
}

}  // namespace belfry::device::proxy
