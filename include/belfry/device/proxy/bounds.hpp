#pragma once
/// \file
/// How large windows are, as a channel remembers it.

#include <cstdint>

#include "belfry/device/proxy/ring.hpp"

namespace belfry::device::proxy {

/// The window that was asked about last, in the channel's registers: to load its size again costs a GPU's
/// thread more than the rest of a put. Windows have one size on every PE.
class WindowBounds {
 public:
  /// \return whether the window exists and holds `bytes` from `place` on
  BELFRY_INLINE_FN bool holds(const ProxyView& view, Place place, std::uint64_t bytes) {
    if (place.window != window_) look_at(view, place.window);
    return place.offset < end_ && bytes < end_ - place.offset;
  }

  /// The same without a branch and without looking, for what one descriptor can name: false also for another
  /// window than the last, and beyond 32 bits.
  BELFRY_INLINE_FN bool are_known_to_hold(Place place, std::uint64_t bytes) const {
    const auto offset = static_cast<std::uint32_t>(place.offset);
    return (place.window == window_) BELFRY_AND(((place.offset | bytes) >> 32) == 0)
        BELFRY_AND(offset < near_end_) BELFRY_AND(static_cast<std::uint32_t>(bytes) < near_end_ - offset);
  }

 private:
  BELFRY_INLINE_FN void look_at(const ProxyView& view, std::uint32_t window) {
    window_ = window;
    end_ = window < view.window_count ? view.windows[window].bytes + 1 : 0;
    near_end_ = end_ >> 32 == 0 ? static_cast<std::uint32_t>(end_) : ~0u;
  }

  static constexpr std::uint32_t kNone = ~0u;

  std::uint32_t window_ = kNone;
  std::uint64_t end_ =
      0;  ///< one more than the window's bytes; 0, which holds nothing, where there is no such window
  std::uint32_t near_end_ = 0;  ///< that, or the most that 32 bits hold
};

}  // namespace belfry::device::proxy
