#pragma once
/// \file
/// From (window, offset) to the addresses and keys that a WQE carries.

#include "belfry/device/gda/wqe.hpp"
#include "belfry/device/view.hpp"

namespace belfry::device::gda {

/// \return whether the window exists and holds `bytes` from `place` on; all windows have one size on every PE
BELFRY_FN inline bool is_inside(const EndpointView& view, Place place, std::uint64_t bytes) {
  return place.window < view.window_count && view.windows[place.window].contains(place.offset, bytes);
}

BELFRY_FN inline Local local_of(const EndpointView& view, Place place) {
  const LocalWindow& window = view.windows[place.window];
  return {window.address + place.offset, window.lkey};
}

BELFRY_FN inline Remote remote_of(const EndpointView& view, std::uint32_t pe, Place place) {
  const RemoteWindow& window = view.remotes[static_cast<std::uint64_t>(place.window) * view.pe_count + pe];
  return {window.address + place.offset, window.rkey};
}

}  // namespace belfry::device::gda
