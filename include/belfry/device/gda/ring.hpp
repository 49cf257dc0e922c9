#pragma once
/// \file
/// Announcing WQEs to the NIC: doorbell record and doorbell, in one of the seven orderings.

#include "belfry/device/ordering.hpp"
#include "belfry/device/view.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"

namespace belfry::device::gda {

namespace detail {

/// A store that carries its own release, or a plain one where the checker leaves that out.
template <port::Scope scope>
BELFRY_FN void store_record_release(Be32* record, Be32 value, port::Step step) {
  if (port::kept(step)) {
    port::store_release<scope>(record, value);
  } else {
    port::store<port::Scope::system>(record, value);
  }
}
template <port::Scope scope>
BELFRY_FN void store_doorbell_release(std::uint64_t* doorbell, std::uint64_t value, port::Step step) {
  if (port::kept(step)) {
    port::store_doorbell_release<scope>(doorbell, value);
  } else {
    port::store_doorbell(doorbell, value);
  }
}

/// The fence of a fencing ordering, or nothing for Ordering::none.
template <Ordering ordering>
BELFRY_FN void order(port::Step step) {
  if (!port::kept(step)) return;
  if constexpr (ordering == Ordering::threadfence) {
    port::thread_fence();
  } else if constexpr (ordering == Ordering::system_fence) {
    port::fence<port::Scope::system>();
  } else if constexpr (ordering != Ordering::none) {
    port::fence<port::Scope::gpu>();
  }
}

}  // namespace detail

/// Whether the ordering begins with a fence, which then also acquires what a turn was handed over with.
BELFRY_FN constexpr bool begins_with_fence(Ordering ordering, DoorbellMode mode) {
  return ordering == Ordering::gpu_fence_record || ordering == Ordering::threadfence ||
         ordering == Ordering::system_fence ||
         (ordering == Ordering::gpu_fence && mode == DoorbellMode::no_record);
}

/// Tells the NIC of every block before `producer`.
/// The other end: a NIC reads the doorbell, in record mode then the record, and then the WQEs. What it reads
/// must be there by then: W before R before D. In record mode it may read R at any doorbell of the queue,
/// so that a record must never be ahead of its WQEs (mutants: order_wqe_before_record,
/// order_record_before_doorbell; in no_record mode order_wqe_before_doorbell).
template <Ordering ordering, DoorbellMode mode>
BELFRY_FN void ring_in_order(const SendQueue& queue, std::uint64_t producer) {
  using port::Scope;
  using port::Step;
  constexpr bool kReleases = ordering == Ordering::gpu_release || ordering == Ordering::system_release;
  constexpr Scope kScope = ordering == Ordering::system_release ? Scope::system : Scope::gpu;
  const std::uint64_t bell =
      wire::send_doorbell(Be32(static_cast<std::uint32_t>(producer & 0xffff) << 8), Be32(queue.qpn << 8));
  if constexpr (mode == DoorbellMode::no_record) {
    if constexpr (kReleases) {
      detail::store_doorbell_release<kScope>(queue.doorbell, bell, Step::order_wqe_before_doorbell);
    } else {
      detail::order<ordering>(Step::order_wqe_before_doorbell);
      port::store_doorbell(queue.doorbell, bell);
    }
  } else if constexpr (kReleases) {
    detail::store_record_release<kScope>(queue.record, wire::record_word(producer),
                                         Step::order_wqe_before_record);
    detail::store_doorbell_release<kScope>(queue.doorbell, bell, Step::order_record_before_doorbell);
  } else {
    if constexpr (ordering != Ordering::gpu_fence) detail::order<ordering>(Step::order_wqe_before_record);
    port::store<Scope::system>(queue.record, wire::record_word(producer));
    detail::order<ordering>(Step::order_record_before_doorbell);
    port::store_doorbell(queue.doorbell, bell);
  }
}

}  // namespace belfry::device::gda
