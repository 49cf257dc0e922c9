#pragma once
/// \file
/// Looking at a completion queue, and waiting for an index.

#include <cstddef>
#include <cstdint>

#include "belfry/device/gda/forwarder.hpp"
#include "belfry/device/gda/indices.hpp"
#include "belfry/device/status.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"
#include "belfry/port/time.hpp"

namespace belfry::device::gda {

/// The last 8 B of a CQE: WQE counter, opcode and owner, which the NIC writes last and in one piece.
struct CqeTail {
  std::uint64_t bits = 0;

  static constexpr std::size_t kOffset = offsetof(wire::Cqe, opcode_qpn);
  BELFRY_FN constexpr std::uint8_t op_own() const { return static_cast<std::uint8_t>(bits >> 56); }
  BELFRY_FN constexpr std::uint16_t counter() const {
    return swap_bytes(static_cast<std::uint16_t>(bits >> 32));
  }
  BELFRY_FN constexpr bool is_error() const {
    const auto opcode = static_cast<wire::CqeOpcode>(op_own() >> 4);
    return opcode == wire::CqeOpcode::requester_error || opcode == wire::CqeOpcode::responder_error;
  }
};
static_assert(CqeTail::kOffset % 8 == 0 && offsetof(wire::Cqe, wqe_counter) == CqeTail::kOffset + 4 &&
              offsetof(wire::Cqe, op_own) == CqeTail::kOffset + 7);

namespace detail {

/// Latches what an error CQE says, which the NIC wrote before the CQE's last 8 B (mutant: acquire_error). All
/// before the WQE that failed first is complete: a NIC completes in order. \return whether it told something
/// new
template <class Indices>
BELFRY_FN bool note_error(Indices& indices, std::uint64_t consumer, CqeTail tail, const std::byte* cqe) {
  constexpr std::size_t kWord = offsetof(wire::ErrorCqe, vendor_syndrome) / 8 * 8;
  static_assert(kWord == offsetof(wire::ErrorCqe, syndrome) / 8 * 8);
  if (port::kept(port::Step::acquire_error)) port::fence<port::Scope::system>();
  const auto word = port::load<port::Scope::system>(reinterpret_cast<const std::uint64_t*>(cqe + kWord));
  const auto byte = [word](std::size_t at) { return static_cast<std::uint8_t>(word >> (8 * (at - kWord))); };
  const auto syndrome = static_cast<wire::Syndrome>(byte(offsetof(wire::ErrorCqe, syndrome)));
  if (syndrome == wire::Syndrome::flushed) {
    // Somebody's error came before, and nobody saw it.
    return indices.latch(fault_word(Fault::Kind::unknown, consumer, syndrome, 0));
  }
  const std::uint64_t failed =
      consumer + wire::index_distance(static_cast<std::uint16_t>(consumer), tail.counter());
  if (failed > consumer) indices.raise_consumer(failed);
  return indices.latch(
      fault_word(Fault::Kind::root, failed, syndrome, byte(offsetof(wire::ErrorCqe, vendor_syndrome))));
}

template <class Indices>
BELFRY_FN bool look_collapsed(const SendQueue& queue, Indices& indices) {
  const std::uint64_t consumer = indices.consumer();
  const CqeTail tail{port::poll<port::Scope::system>(
      reinterpret_cast<const std::uint64_t*>(queue.completions + CqeTail::kOffset))};
  // Before the first CQE the entry says nothing (mutant: check_written).
  if (static_cast<wire::CqeOpcode>(tail.op_own() >> 4) == wire::CqeOpcode::invalid &&
      port::kept(port::Step::check_written))
    return false;
  if (tail.is_error()) return note_error(indices, consumer, tail, queue.completions);
  // A counter behind the consumer is that of a CQE which was taken already (mutant: check_counter).
  const std::uint64_t next =
      port::kept(port::Step::check_counter) ? wire::advance_consumer(consumer, tail.counter()) : consumer + 1;
  if (next == consumer) return false;
  indices.raise_consumer(next);
  return true;
}

template <class Indices>
BELFRY_FN bool look_ring(const SendQueue& queue, Indices& indices) {
  const std::uint64_t entry = indices.cq_consumer();
  const std::uint64_t mask = (std::uint64_t{1} << queue.log_completions) - 1;
  const std::byte* cqe = queue.completions + (entry & mask) * wire::kCqeBytes;
  const CqeTail tail{
      port::poll<port::Scope::system>(reinterpret_cast<const std::uint64_t*>(cqe + CqeTail::kOffset))};
  // An entry of the lap before is a completion that was taken (mutant: check_owner).
  const bool ready = port::kept(port::Step::check_owner)
                         ? wire::cqe_ready(tail.op_own(), entry, queue.log_completions)
                         : static_cast<wire::CqeOpcode>(tail.op_own() >> 4) != wire::CqeOpcode::invalid;
  if (!ready) return false;
  // After the entry, whose WQE is then less than a queue ahead of it, and before the entry is taken, for a
  // counter is widened by an index that is not newer than it.
  const std::uint64_t consumer = indices.consumer();
  if (tail.is_error()) {
    // Latched before it is taken, or another poller could take the flush behind it for the cause. Who took it
    // in between has latched it, too, and that stands.
    note_error(indices, consumer, tail, cqe);
    indices.take_entry(entry);
    return true;
  }
  if (!indices.take_entry(entry)) return true;
  const std::uint64_t next = wire::advance_consumer(consumer, tail.counter());
  if (next != consumer) indices.raise_consumer(next);
  return true;
}

}  // namespace detail

/// Looks at the completion queue once, and takes what is there into the indices.
/// The other end: the NIC has read a WQE, moved its payload and written the CQE, whose last 8 B come last.
/// Nothing is read on the strength of a CQE here but its own bytes: who waits for data fences after
/// (wait_for). \return whether there was something new
template <class Policy, class Indices>
BELFRY_FN bool look(const SendQueue& queue, Indices& indices) {
  if constexpr (Policy::completion_layout == CompletionLayout::collapsed) {
    return detail::look_collapsed(queue, indices);
  } else {
    return detail::look_ring(queue, indices);
  }
}

/// What a fault means for the operation whose last WQE is at `index`, and its first `span` blocks before.
template <class Indices>
BELFRY_FN Outcome failed_outcome(const SendQueue& queue, const Indices& indices, std::uint64_t index,
                                 std::uint32_t span = 0) {
  Outcome o;
  o.status = Status::completion_error;
  o.fault = decode_fault(indices.fault(), indices.consumer(), queue.qpn);
  if (o.fault.kind == Fault::Kind::none) {
    // The queue works, and nobody tells the NIC.
    o.fault = forwarder_fault(queue, index);
    return o;
  }
  const bool is_root =
      o.fault.kind == Fault::Kind::root && o.fault.index <= index && index - o.fault.index <= span;
  o.syndrome = is_root ? o.fault.syndrome : wire::Syndrome::flushed;
  return o;
}

/// Whether a fault means that the WQE at `index` never completes. Pollers raise the consumer before they
/// latch (latch() releases it), so that a WQE in front of the one that failed is known by then. A turn that
/// was given up stops nothing but what comes after it.
template <class Indices>
BELFRY_FN bool is_lost(Indices& indices, std::uint64_t index) {
  const std::uint64_t word = indices.fault();
  if (word == 0) return false;
  indices.acquire_fault();
  const std::uint64_t consumer = indices.consumer();
  if (consumer > index) return false;
  return fault_kind(word) != Fault::Kind::abandoned || index >= decode_fault(word, consumer, 0).index;
}

/// Looks a few times in a row at a queue that nobody else looks at: what else ends a wait takes longer to ask
/// than a look does. No more than once where there is no time to wait. \return whether there was something
/// new
template <class Policy, class Indices>
BELFRY_FN bool look_a_while(const SendQueue& queue, Indices& indices, port::Timeout timeout) {
  constexpr std::uint32_t kMost = Policy::sharing == Sharing::exclusive ? 8 : 1;
  const std::uint32_t looks = timeout.ns == 0 ? 1 : kMost;
  for (std::uint32_t i = 0; i < looks; ++i)
    if (look<Policy>(queue, indices)) return true;
  return false;
}

/// Waits until the WQE whose first block is `index` is complete.
/// \param reads its completion stands for data that the NIC wrote here: what follows sees it
/// \param span Operation::span
template <class Policy, class Indices>
BELFRY_FN Outcome wait_for(const SendQueue& queue, Indices& indices, std::uint64_t index, bool reads,
                           port::Timeout timeout, std::uint32_t span = 0) {
  port::Patience patience(timeout);
  ForwarderWatch forwarder(queue);
  for (;;) {
    if (indices.consumer() > index) {
      // (mutant: acquire_completion)
      if (reads && port::kept(port::Step::acquire_completion)) port::fence<port::Scope::system>();
      return {};
    }
    if (is_lost(indices, index)) return failed_outcome(queue, indices, index, span);
    if (look_a_while<Policy>(queue, indices, timeout)) continue;
    if (forwarder.is_lost()) return failed_outcome(queue, indices, index);
    if (patience.is_over()) {
      Outcome o;
      o.status = Status::timed_out;
      return o;
    }
  }
}

}  // namespace belfry::device::gda
