#pragma once
/// \file
/// A domain cut into tiles, one for each PE, and the serial run that the result is held against.

#include <cstdint>
#include <vector>

#include "belfry/port/function.hpp"

namespace belfry::examples {

enum Side : std::uint32_t { kNorth, kSouth, kWest, kEast, kSides };
BELFRY_FN constexpr std::uint32_t opposite(std::uint32_t side) { return side ^ 1u; }

inline constexpr std::uint32_t kNobody = ~0u;

/// `rows` x `columns` PEs, numbered row by row; each has a tile of n x n cells.
struct PeGrid {
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t n;

  /// As square as the number of PEs allows.
  static PeGrid make(std::uint32_t pes, std::uint32_t n) {
    std::uint32_t rows = 1;
    for (std::uint32_t r = 1; r * r <= pes; ++r)
      if (pes % r == 0) rows = r;
    return {rows, pes / rows, n};
  }

  BELFRY_FN std::uint32_t neighbour(std::uint32_t pe, std::uint32_t side) const {
    const std::uint32_t row = pe / columns, column = pe % columns;
    if (side == kNorth) return row > 0 ? pe - columns : kNobody;
    if (side == kSouth) return row + 1 < rows ? pe + columns : kNobody;
    if (side == kWest) return column > 0 ? pe - 1 : kNobody;
    if (side == kEast) return column + 1 < columns ? pe + 1 : kNobody;
    return kNobody;
  }
};

/// A tile with a frame of one cell, the halo, stored row by row. Row and column run from 0 to n + 1.
BELFRY_FN constexpr std::uint64_t cell(std::uint32_t n, std::uint64_t row, std::uint64_t column) {
  return row * (n + 2) + column;
}

/// One step of Jacobi's method for a cell: the mean of its neighbours. The same expression for kernel and
/// reference, so that results are equal to the last bit.
BELFRY_FN inline double relax(const double* from, std::uint64_t at, std::uint64_t stride) {
  return (from[at - stride] + from[at + stride] + from[at - 1] + from[at + 1]) * 0.25;
}

/// The whole domain with its frame, before the first step: a hot northern edge, a warm western one.
std::vector<double> make_domain(const PeGrid& grid);
/// The tile of one PE with its frame.
std::vector<double> cut_tile(const PeGrid& grid, const std::vector<double>& domain, std::uint32_t pe);
/// The domain after so many steps, by one thread.
std::vector<double> relax_serially(const PeGrid& grid, std::vector<double> domain, std::uint64_t steps);

}  // namespace belfry::examples
