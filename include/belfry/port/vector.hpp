#pragma once
/// \file
/// 16 B in one access: the unit in which WQE segments and proxy descriptors are stored.

#include <cstdint>
#include <cstring>

#include "belfry/port/function.hpp"

namespace belfry::port {

struct alignas(16) Vector16 {
  std::uint64_t low;   ///< bytes 0 to 7
  std::uint64_t high;  ///< bytes 8 to 15
};
static_assert(sizeof(Vector16) == 16 && alignof(Vector16) == 16);

/// The bits of a 16 B segment.
template <class Segment>
BELFRY_FN Vector16 as_vector(const Segment& segment) {
  static_assert(sizeof(Segment) == 16);
  Vector16 v;
  memcpy(&v, &segment, sizeof v);
  return v;
}

}  // namespace belfry::port
