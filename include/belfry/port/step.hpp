#pragma once
/// \file
/// The steps of belfry's queue protocols that make them right, by name. Each stands in the sources as
/// `if (port::kept(Step::name))` in front of a fence, a wait or a check. In everything that ships the answer
/// is the constant true, and the compiler removes the question. The weak-memory checker leaves out one step
/// at a time and must find a fault each time (docs/ordering.md lists which).

#include <cstdint>

#include "belfry/port/function.hpp"

#if defined(BELFRY_PORT_STEP_HEADER)
#include BELFRY_PORT_STEP_HEADER
#endif

namespace belfry::port {

enum class Step : std::uint8_t {
  // The seven orderings (device/gda/ordering.hpp).
  order_wqe_before_record,       ///< WQE stores before the doorbell record
  order_record_before_doorbell,  ///< doorbell record before the doorbell
  order_wqe_before_doorbell,     ///< WQE stores before the doorbell, where there is no record
  // Sharing a send queue (device/gda/publication.hpp).
  acquire_published,         ///< a slot's last writer has stored before the next one does
  warp_after_reservation,    ///< the same for the lanes that the slots were taken for
  wait_turn,                 ///< publish only when all before is published
  acquire_turn,              ///< whoever rings has seen the stores of those before
  release_turn,              ///< the stores of a turn come before its end
  warp_before_publication,   ///< lanes' stores before the lane that publishes for them
  block_before_publication,  ///< threads' stores before the thread that publishes for them
  lock_acquire,              ///< the doorbell lock's holder sees what the last holder did
  lock_release,              ///< what a holder did comes before the lock is free
  lock_until_published,      ///< and its WQE is published by then
  // Space and completion (device/gda/completion.hpp, device/signal.hpp).
  check_space,           ///< wait until the slots are retired
  check_written,         ///< an entry that was never written is not a completion
  check_owner,           ///< an entry of another lap is not a completion
  acquire_completion,    ///< what a CQE stands for is read after it
  acquire_flush,         ///< what reads brought is there after a flush
  acquire_error,         ///< an error CQE's syndrome is read after its owner
  release_fault,         ///< what was complete before a fault comes before the fault
  acquire_fault,         ///< and whoever sees the fault sees that
  warp_after_call,       ///< what a warp's leader has waited for is there for its lanes
  acquire_signal,        ///< a signal's payload is read after it
  check_counter,         ///< a completion counts only as far as its counter says
  signal_after_payload,  ///< a signal is posted after all fragments, on the same queue
  // Doorbells on their way through a CPU (src/host/doorbell_relay.hpp).
  forward_acquire,  ///< what was published before a doorbell is there for the NIC that it is passed on to
  // The proxy's ring, at the producer (device/proxy/) and at the worker (src/proxy/).
  proxy_payload_before_descriptor,  ///< a put's payload is visible before the descriptor that names it
  proxy_room,                       ///< a slot is filled again only once the worker has taken it
  proxy_parity,                     ///< a descriptor of another lap is not valid
  proxy_baseline_release,           ///< the control's: as the first, whatever the form
  proxy_acquire_descriptor,         ///< what a producer published is there for what the worker does about it
  proxy_acquire_taken,              ///< a slot's last producer, through the worker, before its next one
  proxy_acquire_cached,             ///< the same for a producer that finds it in the cached progress
  proxy_release_completion,         ///< what an operation brought comes before the counter
  proxy_acquire_completion,         ///< what a completed operation brought is read after the counter
  proxy_release_fault,              ///< the count and the QPN come before a fault
  proxy_acquire_fault,              ///< and are read after it
  proxy_count_in_order,             ///< the counter passes an operation only when all before it are complete
  count_,
};

/// Whether a step of a protocol is to be taken: always, outside the checker.
BELFRY_FN inline bool kept([[maybe_unused]] Step step) {
#if defined(BELFRY_PORT_STEP_HEADER)
  return step_is_kept(step);
#else
  return true;
#endif
}

}  // namespace belfry::port
