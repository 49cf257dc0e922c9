#pragma once
/// \file
/// What a thread of a case's kernel tells the host: plain memory, one report a thread.

#include <cstdint>

#include "belfry/device/group.hpp"
#include "belfry/device/status.hpp"
#include "belfry/device/window.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/time.hpp"

namespace belfry::conformance {

struct Report {
  std::uint64_t good = 0;        ///< calls and checks that went as they should
  std::uint64_t bad = 0;         ///< those that did not
  std::uint64_t first_bad = 0;   ///< the kernel's number for the first of them
  device::Outcome outcome;       ///< of the first call that failed
  std::uint64_t values[8] = {};  ///< whatever else the case looks at
  std::uint64_t elapsed_ns = 0;  ///< of what the kernel measures

  BELFRY_FN bool check(std::uint64_t step, bool right) {
    if (right) {
      ++good;
    } else if (bad++ == 0) {
      first_bad = step;
    }
    return right;
  }
  BELFRY_FN bool note(std::uint64_t step, const device::Outcome& o) {
    if (bad == 0) outcome = o;
    return check(step, o.ok());
  }
  BELFRY_FN bool note(std::uint64_t step, device::Status status) {
    device::Outcome o;
    o.status = status;
    return note(step, o);
  }
  BELFRY_FN bool note(std::uint64_t step, const device::Operation& op) { return note(step, op.status); }
};

/// The thread's number in its grid.
BELFRY_FN inline std::uint32_t grid_thread() {
  return port::block_index() * port::threads_a_block() + port::thread_index();
}

template <class Group>
BELFRY_FN Group make_group() {
  return Group{};
}
/// A block's last warp may be short.
template <>
BELFRY_FN inline device::Warp make_group<device::Warp>() {
  return device::Warp{port::warp_mask()};
}

/// An object of this PE's copy of a window.
template <class T, class View>
BELFRY_FN T* local_pointer(const View& view, device::Place place) {
  return reinterpret_cast<T*>(view.windows[place.window].address + place.offset);
}

/// Bits that differ in every byte from one argument to the next.
BELFRY_FN constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Long enough for a loaded machine under a sanitizer; a case that meets it has failed.
inline constexpr port::Timeout kPatient = port::Timeout::seconds(20);

}  // namespace belfry::conformance
