#pragma once
/// \file
/// A PE's endpoint as a kernel sees it, over either transport.

#include <cstdint>

#include "belfry/device/announce.hpp"
#include "belfry/device/signal.hpp"
#include "belfry/device/together.hpp"
#include "belfry/device/view.hpp"

namespace belfry::device {

/// \tparam ChannelType gda::Channel<Policy>, or another transport's channel
template <class ChannelType>
class Endpoint {
 public:
  using Channel = ChannelType;

  BELFRY_FN explicit Endpoint(const EndpointView& view) : view_(view) {}

  BELFRY_FN std::uint32_t pe() const { return view_.pe; }
  BELFRY_FN std::uint32_t pe_count() const { return view_.pe_count; }
  BELFRY_FN std::uint32_t queues_a_peer() const { return view_.queues_a_peer; }
  BELFRY_FN const EndpointView& view() const { return view_; }

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

  /// Flushes every queue to one peer. The group must own them, or they must be shared. It makes channels of
  /// its own: under Sharing::exclusive, end the caller's before.
  /// \return the first failure, after all queues have had their turn
  template <class Group>
  BELFRY_FN Outcome flush_peer(Group group, std::uint32_t pe, port::Timeout timeout) const {
    Outcome first;
    for (std::uint32_t index = 0; index < view_.queues_a_peer; ++index) {
      Channel channel(view_, pe, index);
      keep_first(first, channel.flush(group, timeout));
    }
    return first;
  }

  /// flush_peer() for every peer. The timeout is each queue's.
  template <class Group>
  BELFRY_FN Outcome quiet(Group group, port::Timeout timeout) const {
    Outcome first;
    for (std::uint32_t pe = 0; pe < view_.pe_count; ++pe)
      if (view_.queues[pe * view_.queues_a_peer].state != nullptr)
        keep_first(first, flush_peer(group, pe, timeout));
    return first;
  }

  /// Waits for a word of this PE's copy of a window; see device/signal.hpp.
  template <class Group>
  BELFRY_FN Status wait_signal(Group group, Place place, Compare how, std::uint64_t value,
                               port::Timeout timeout) const {
    return together(group, [&] { return device::wait_signal(view_, place, how, value, timeout); });
  }

 private:
  BELFRY_FN static void keep_first(Outcome& first, const Outcome& next) {
    if (first.ok() && !next.ok()) first = next;
  }

  EndpointView view_;
};

}  // namespace belfry::device
