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

/// The entries of the tables that a channel used last, in its registers. On a GPU a fence throws away what
/// the L1 held of the tables, and to fetch an entry again costs about half as much as the put that needs it.
class UsedWindows {
 public:
  /// Whether the peer's copy of a window holds `bytes` from `place` on.
  BELFRY_FN bool peer_holds(const EndpointView& view, std::uint32_t pe, Place place, std::uint64_t bytes) {
    if (place.window >= view.window_count) return false;
    look_at_peer(view, pe, place.window);
    return peer_is_known_to_hold(place, bytes);
  }
  /// The same of this PE's.
  BELFRY_FN bool own_holds(const EndpointView& view, Place place, std::uint64_t bytes) {
    if (place.window >= view.window_count) return false;
    look_at_own(view, place.window);
    return own_is_known_to_hold(place, bytes);
  }

  // The same without a branch and without looking: false also for another window than the last.

  BELFRY_FN bool peer_is_known_to_hold(Place place, std::uint64_t bytes) const {
    return (place.window == peer_window_) BELFRY_AND(place.offset < peer_end_)
        BELFRY_AND(bytes < peer_end_ - place.offset);
  }
  BELFRY_FN bool own_is_known_to_hold(Place place, std::uint64_t bytes) const {
    return (place.window == own_window_) BELFRY_AND(place.offset < own_end_)
        BELFRY_AND(bytes < own_end_ - place.offset);
  }

  // \pre the window exists

  BELFRY_FN Remote remote_of(const EndpointView& view, std::uint32_t pe, Place place) {
    look_at_peer(view, pe, place.window);
    return known_remote(place);
  }
  BELFRY_FN Local local_of(const EndpointView& view, Place place) {
    look_at_own(view, place.window);
    return known_local(place);
  }

  // \pre the window is the last one used

  BELFRY_FN Remote known_remote(Place place) const { return {peer_.address + place.offset, peer_.rkey}; }
  BELFRY_FN Local known_local(Place place) const { return {own_address_ + place.offset, own_key_}; }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  BELFRY_FN void look_at_peer(const EndpointView& view, std::uint32_t pe, std::uint32_t window) {
    if (window == peer_window_) return;
    peer_window_ = window;
    peer_end_ = view.windows[window].bytes + 1;  // of one size on every PE
    peer_ = view.remotes[static_cast<std::uint64_t>(window) * view.pe_count + pe];
  }
  BELFRY_FN void look_at_own(const EndpointView& view, std::uint32_t window) {
    if (window == own_window_) return;
    own_window_ = window;
    const LocalWindow& own = view.windows[window];
    own_end_ = own.bytes + 1;
    own_address_ = own.address;
    own_key_ = own.lkey;
  }

  // `end` is one more than the window's bytes: 0, while there is no window, holds nothing.
  std::uint32_t peer_window_ = kNone;
  std::uint32_t own_window_ = kNone;
  std::uint64_t peer_end_ = 0;
  std::uint64_t own_end_ = 0;
  std::uint64_t own_address_ = 0;
  RemoteWindow peer_;
  Be32 own_key_ = Be32::from_raw(0);
};

}  // namespace belfry::device::gda
