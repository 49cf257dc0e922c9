#pragma once
/// \file
/// A PE's endpoint as a kernel sees it, over either transport.

#include <cstdint>

#include "belfry/device/announce.hpp"
#include "belfry/device/signal.hpp"
#include "belfry/device/together.hpp"

namespace belfry::device {

/// \tparam ChannelType gda::Channel<Policy>, or another transport's channel
template <class ChannelType>
class Endpoint {
 public:
  using Channel = ChannelType;
  using View = typename Channel::View;

  BELFRY_FN explicit Endpoint(const View& view) : view_(view) {}

  BELFRY_FN std::uint32_t pe() const { return view_.pe; }
  BELFRY_FN std::uint32_t pe_count() const { return view_.pe_count; }
  /// Channels to each peer: their indices are below it.
  BELFRY_FN std::uint32_t channels_a_peer() const { return Channel::count(view_); }
  BELFRY_FN const View& view() const { return view_; }

  /// This PE's copy of `count` T from a place on, for plain loads and stores. Null where the window does not
  /// exist or ends before; alignment is the caller's.
  template <class T>
  BELFRY_FN T* local(Place place, std::uint64_t count = 1) const {
    if (place.window >= view_.window_count || count > ~std::uint64_t{0} / sizeof(T) ||
        !view_.windows[place.window].contains(place.offset, count * sizeof(T)))
      return nullptr;
    return reinterpret_cast<T*>(view_.windows[place.window].address + place.offset);
  }

  /// A channel to `pe`: `auto channel = endpoint.channel(pe, index);`
  BELFRY_FN Channel channel(std::uint32_t pe, std::uint32_t index = 0) const {
    return Channel(view_, pe, index);
  }

  /// Flushes every channel to one peer. The group must own them, or they must be shared. The timeout is that
  /// of the whole call. It makes channels of its own: where a channel holds its queue's indices, end the
  /// caller's before. \return the first failure, after all have had their turn
  template <class Group>
  BELFRY_FN Outcome flush_peer(Group group, std::uint32_t pe, port::Timeout timeout) const {
    return Channel::flush_peer(view_, group, pe, timeout);
  }

  /// Flushes every channel to every peer.
  template <class Group>
  BELFRY_FN Outcome quiet(Group group, port::Timeout timeout) const {
    return Channel::quiet(view_, group, timeout);
  }

  /// Waits for a word of this PE's copy of a window; see device/signal.hpp.
  template <class Group>
  BELFRY_FN Status wait_signal(Group group, Place place, Compare how, std::uint64_t value,
                               port::Timeout timeout) const {
    return together(group, [&] { return device::wait_signal(view_, place, how, value, timeout); });
  }

 private:
  View view_;
};

}  // namespace belfry::device
