#pragma once
/// \file
/// Arithmetic of truncated indices. Inside belfry an index is a monotonic 64-bit number; devices and
/// old queue protocols keep only its low 16 or 32 bits. A plain compare or a plain maximum of the
/// short form is wrong once it has wrapped; the functions here are right as long as the two indices
/// are less than half the circle apart, which a queue's depth guarantees.

#include <cstdint>
#include <type_traits>

#include "belfry/port/function.hpp"

namespace belfry::wire {

/// How far `to` is ahead of `from`, modulo 2^bits: 0 where they are equal, never negative.
template <class Short>
BELFRY_FN constexpr Short index_distance(Short from, Short to) {
  static_assert(std::is_unsigned_v<Short>);
  return static_cast<Short>(to - from);
}

/// Whether `a` comes before `b` on the circle.
template <class Short>
BELFRY_FN constexpr bool index_before(Short a, Short b) {
  constexpr Short half = static_cast<Short>(Short{1} << (sizeof(Short) * 8 - 1));
  const Short ahead = index_distance(a, b);
  return ahead != 0 && ahead < half;
}

/// The later of two indices on the circle; what an atomic maximum must compute.
template <class Short>
BELFRY_FN constexpr Short index_max(Short a, Short b) {
  return index_before(a, b) ? b : a;
}

/// The 64-bit index that `low` was cut from: of all with those low bits the one nearest to `near`.
/// No index lies before 0, so at the start of the count the answer is the one ahead.
template <class Short>
BELFRY_FN constexpr std::uint64_t widen_index(std::uint64_t near, Short low) {
  const Short ahead = index_distance(static_cast<Short>(near), low);
  const Short behind = index_distance(low, static_cast<Short>(near));
  const bool forward = ahead < behind || behind > near;
  return forward ? near + ahead : near - behind;
}

}  // namespace belfry::wire
