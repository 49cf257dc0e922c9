#pragma once
/// \file
/// What measured writes carry, computed alike by the kernel that writes and the host that checks.

#include <cstdint>

#include "belfry/port/function.hpp"

namespace belfry::bench {

/// The value of write `i`: cheap enough to be made for each write of a stream, another one for each write
/// to a slot, and never 0, which is what a slot holds before anything is written to it.
BELFRY_FN constexpr std::uint64_t target_value(std::uint64_t seed, std::uint64_t i) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ull;  // 2^64 over the golden ratio
  return (((i + 1) * kOdd) ^ (seed * 0xbf58476d1ce4e5b9ull)) | 1u;
}

/// Of the writes 0 to `writes` - 1 to `slots` slots in turns, the last one to `slot`, which must be below
/// both.
BELFRY_FN constexpr std::uint64_t last_write(std::uint64_t slot, std::uint64_t slots, std::uint64_t writes) {
  return slot + (writes - 1 - slot) / slots * slots;
}

}  // namespace belfry::bench
