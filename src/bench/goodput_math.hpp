#pragma once
/// \file
/// From goodput by size to the first size that nearly reaches a reference.

#include <cstdint>
#include <span>

#include "bench/record.hpp"

namespace belfry::bench {

struct SizeGoodput {
  std::uint32_t bytes = 0;
  double gigabytes = 0;  ///< GB/s
};

/// Fills p50 with the first size at `share` of the reference at least. Where none is, the record has a lower
/// bound, the largest size measured. \param ascending by size, at least one; throws std::invalid_argument for
/// none
void fill_first_at(std::span<const SizeGoodput> ascending, double reference, double share, Record& record);

}  // namespace belfry::bench
