#pragma once
/// \file
/// The seven orderings of a WQE's stores (W), the doorbell record (R) and the doorbell (D). In no_record
/// mode R and what orders it are left out. The sequences are those of the libraries named in the paper
/// "GPU-Initiated Communication: Dissecting Down to the Bone" (arXiv 2610.01380).

#include <cstdint>

#include "belfry/device/view.hpp"
#include "belfry/port/function.hpp"

namespace belfry::device {

enum class Ordering : std::uint8_t {
  none,              ///< W R D: unsafe, the control
  gpu_fence,         ///< W R fence.gpu D
  gpu_fence_record,  ///< W fence.gpu R fence.gpu D
  gpu_release,       ///< W st.release.gpu R, st.release.gpu D
  threadfence,       ///< W __threadfence R __threadfence D
  system_release,    ///< W st.release.sys R, st.release.sys D
  system_fence,      ///< W fence.sys R fence.sys D
};

/// What makes an ordering right.
enum class Safety : std::uint8_t {
  by_model,       ///< the PTX memory model: system scope, both edges ordered
  by_assumption,  ///< A1, and A2 where needs_doorbell_only() says so (device/requirements.hpp)
  unsafe,         ///< nothing: a control for measurements
};

BELFRY_FN constexpr Safety safety_of(Ordering ordering) {
  switch (ordering) {
    case Ordering::none:
      return Safety::unsafe;
    case Ordering::system_release:
    case Ordering::system_fence:
      return Safety::by_model;
    default:
      return Safety::by_assumption;
  }
}

/// Assumption A1: the fences reach only as far as the GPU.
BELFRY_FN constexpr bool needs_own_memory(Ordering ordering) {
  return safety_of(ordering) == Safety::by_assumption;
}

/// Assumption A2: nothing orders the WQE before the record, so the NIC must not act on the record alone.
BELFRY_FN constexpr bool needs_doorbell_only(Ordering ordering, DoorbellMode mode) {
  return ordering == Ordering::gpu_fence && mode == DoorbellMode::record;
}

/// The cheapest ordering that needs no A2. In no_record mode gpu_fence would do as well, but a whole fence
/// acquires, too: it empties the L1 of whoever posts.
BELFRY_FN constexpr Ordering default_ordering(DoorbellMode) { return Ordering::gpu_release; }

BELFRY_FN constexpr const char* ordering_name(Ordering ordering) {
  switch (ordering) {
    case Ordering::none:
      return "none";
    case Ordering::gpu_fence:
      return "gpu_fence";
    case Ordering::gpu_fence_record:
      return "gpu_fence_record";
    case Ordering::gpu_release:
      return "gpu_release";
    case Ordering::threadfence:
      return "threadfence";
    case Ordering::system_release:
      return "system_release";
    case Ordering::system_fence:
      return "system_fence";
  }
  return "unknown";
}

}  // namespace belfry::device
