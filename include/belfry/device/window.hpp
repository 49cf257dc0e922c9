#pragma once
/// \file
/// Windows: memory that is registered with the same size on every PE, and addressed as (window, offset).

#include <cstdint>

#include "belfry/port/byte_order.hpp"

namespace belfry::device {

/// A byte of a window. Which PE's copy is meant says the call: the peer's or this PE's own.
struct Place {
  std::uint32_t window = 0;
  std::uint64_t offset = 0;  ///< bytes from the window's start

  BELFRY_FN constexpr Place operator+(std::uint64_t bytes) const { return {window, offset + bytes}; }
};

/// This PE's copy of a window. An array of them is indexed by window.
struct LocalWindow {
  std::uint64_t address = 0;  ///< of the first byte, as this PE's device code and its NIC see it
  std::uint64_t bytes = 0;
  Be32 lkey = Be32::from_raw(0);
  std::uint32_t flags = 0;  ///< kWindow... bits

  BELFRY_FN constexpr bool contains(std::uint64_t offset, std::uint64_t length) const {
    // One comparison for who knows that the sum does not wrap, as a compiler often does.
    const std::uint64_t end = offset + length;
    return end >= offset && end <= bytes;
  }
};
static_assert(sizeof(LocalWindow) == 24);

/// The region lets PCIe reorder writes to it: no signal may lie in it.
inline constexpr std::uint32_t kWindowRelaxedOrdering = 1u << 0;

/// A peer's copy of a window. An array of them is indexed by window * pe_count + pe.
struct RemoteWindow {
  std::uint64_t address = 0;  ///< iova of the first byte
  Be32 rkey = Be32::from_raw(0);
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RemoteWindow) == 16);

}  // namespace belfry::device
