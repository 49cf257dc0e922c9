#pragma once
/// \file
/// Signals: 8 B words in a window, set or added to by peers, waited for here. A signal that was posted with
/// its payload (put_signal) is seen only after all of it.

#include <cstdint>

#include "belfry/device/status.hpp"
#include "belfry/device/window.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"
#include "belfry/port/time.hpp"

namespace belfry::device {

enum class SignalOperation : std::uint8_t {
  set,  ///< the word becomes the value
  add,  ///< the value is added, atomically among all that add
};

/// What put_signal() does after its payload.
struct Signal {
  Place place;  ///< 8 B, naturally aligned, in a window without relaxed ordering
  std::uint64_t value = 1;
  SignalOperation operation = SignalOperation::add;
};

enum class Compare : std::uint8_t { equal, not_equal, greater_equal, greater, less_equal, less };

BELFRY_FN constexpr bool compare(std::uint64_t a, Compare how, std::uint64_t b) {
  switch (how) {
    case Compare::equal:
      return a == b;
    case Compare::not_equal:
      return a != b;
    case Compare::greater_equal:
      return a >= b;
    case Compare::greater:
      return a > b;
    case Compare::less_equal:
      return a <= b;
    case Compare::less:
      return a < b;
  }
  return false;
}

/// Waits until the word satisfies the comparison. What the writer's payload brought is visible after.
/// The other end: the peer's NIC writes the payload, then the signal, in the order of one queue. Here the
/// word is polled relaxed, and a fence of system scope follows the hit (mutant: acquire_signal). \return done
/// or timed_out
BELFRY_FN inline Status wait_signal(const std::uint64_t* word, Compare how, std::uint64_t value,
                                    port::Timeout timeout) {
  port::Patience patience(timeout);
  while (!compare(port::poll<port::Scope::system>(word), how, value))
    if (patience.is_over()) return Status::timed_out;
  if (port::kept(port::Step::acquire_signal)) port::fence<port::Scope::system>();
  return Status::done;
}

/// The same for a word of this PE's copy of a window. \return also bad_argument
/// \tparam View has windows and window_count
template <class View>
BELFRY_FN Status wait_signal(const View& view, Place place, Compare how, std::uint64_t value,
                             port::Timeout timeout) {
  if (place.window >= view.window_count || place.offset % 8 != 0 ||
      !view.windows[place.window].contains(place.offset, 8))
    return Status::bad_argument;
  const auto address = view.windows[place.window].address + place.offset;
  return wait_signal(reinterpret_cast<const std::uint64_t*>(address), how, value, timeout);
}

}  // namespace belfry::device
