#pragma once
/// \file
/// A clock that stands where the test has set it, and counts who looks.

#include <cstdint>

namespace belfry::port::host_time {

inline std::uint64_t clock_ns = 0;
inline std::uint64_t reads = 0;

inline std::uint64_t now_ns() {
  ++reads;
  return clock_ns;
}

}  // namespace belfry::port::host_time
