#pragma once
/// \file
/// From costs by size to the size where a pointer becomes cheaper than inline payload.

#include <optional>
#include <span>

#include "bench/record.hpp"

namespace belfry::bench {

/// The same metric of both at one size; less is better.
struct SizeCost {
  double bytes = 0;
  double inlined = 0;
  double pointer = 0;
};

/// Where it lies: at a size, or only beyond one, or before one.
struct BreakEven {
  std::optional<double> at;
  std::optional<double> lower;  ///< inline is still cheaper at this size, the largest measured
  std::optional<double> upper;  ///< the pointer is already no dearer at this size, the smallest measured

  void fill(Record& record) const;
};

/// The size from which on the pointer is never dearer, between two measured sizes by a straight line.
/// \param ascending by size, at least one; throws std::invalid_argument for none
BreakEven find_break_even(std::span<const SizeCost> ascending);

/// Slope of a straight line fitted to (bytes, inlined) by least squares, times 16: what another 16 B chunk of
/// a WQE adds. \param costs of at least two different sizes; throws std::invalid_argument otherwise
double added_per_chunk(std::span<const SizeCost> costs);

}  // namespace belfry::bench
