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
    return place.offset <= peer_bytes_ && bytes <= peer_bytes_ - place.offset;
  }
  /// The same of this PE's.
  BELFRY_FN bool own_holds(const EndpointView& view, Place place, std::uint64_t bytes) {
    if (place.window >= view.window_count) return false;
    look_at_own(view, place.window);
    return own_.contains(place.offset, bytes);
  }

  /// Both at once, for a WQE that names no memory of this PE's.
  /// \return whether the peer's copy holds `bytes` from `place` on; if not `checked`, that is taken for
  /// granted
  template <bool checked>
  BELFRY_FN bool find_remote(const EndpointView& view, std::uint32_t pe, Place place, std::uint64_t bytes,
                             Remote& remote) {
    if (place.window != peer_window_) {
      if (checked && place.window >= view.window_count) return false;
      look_at_peer(view, pe, place.window);
    }
    if (checked && !(place.offset <= peer_bytes_ && bytes <= peer_bytes_ - place.offset)) return false;
    remote = {peer_.address + place.offset, peer_.rkey};
    return true;
  }

  // \pre the window exists

  BELFRY_FN Remote remote_of(const EndpointView& view, std::uint32_t pe, Place place) {
    look_at_peer(view, pe, place.window);
    return {peer_.address + place.offset, peer_.rkey};
  }
  BELFRY_FN Local local_of(const EndpointView& view, Place place) {
    look_at_own(view, place.window);
    return {own_.address + place.offset, own_.lkey};
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  BELFRY_FN void look_at_peer(const EndpointView& view, std::uint32_t pe, std::uint32_t window) {
    if (window == peer_window_) return;
    peer_window_ = window;
    peer_bytes_ = view.windows[window].bytes;  // of one size on every PE
    peer_ = view.remotes[static_cast<std::uint64_t>(window) * view.pe_count + pe];
  }
  BELFRY_FN void look_at_own(const EndpointView& view, std::uint32_t window) {
    if (window == own_window_) return;
    own_window_ = window;
    own_ = view.windows[window];
  }

  std::uint32_t peer_window_ = kNone;
  std::uint32_t own_window_ = kNone;
  std::uint64_t peer_bytes_ = 0;
  RemoteWindow peer_;
  LocalWindow own_;
};

}  // namespace belfry::device::gda
