#include "04_halo_exchange/grid.hpp"

namespace belfry::examples {
namespace {

std::uint64_t stride_of(const PeGrid& grid) { return std::uint64_t{grid.columns} * grid.n + 2; }
std::uint64_t height_of(const PeGrid& grid) { return std::uint64_t{grid.rows} * grid.n + 2; }

}  // namespace

std::vector<double> make_domain(const PeGrid& grid) {
  const std::uint64_t stride = stride_of(grid), height = height_of(grid);
  std::vector<double> domain(stride * height);
  for (std::uint64_t column = 0; column < stride; ++column) domain[column] = 100;
  for (std::uint64_t row = 1; row < height; ++row) domain[row * stride] = 25 + static_cast<double>(row);
  return domain;
}

std::vector<double> cut_tile(const PeGrid& grid, const std::vector<double>& domain, std::uint32_t pe) {
  const std::uint64_t first_row = std::uint64_t{pe / grid.columns} * grid.n;
  const std::uint64_t first_column = std::uint64_t{pe % grid.columns} * grid.n;
  std::vector<double> tile;
  for (std::uint64_t row = 0; row < grid.n + 2; ++row)
    for (std::uint64_t column = 0; column < grid.n + 2; ++column)
      tile.push_back(domain[(first_row + row) * stride_of(grid) + first_column + column]);
  return tile;
}

std::vector<double> relax_serially(const PeGrid& grid, std::vector<double> domain, std::uint64_t steps) {
  const std::uint64_t stride = stride_of(grid), height = height_of(grid);
  std::vector<double> next = domain;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (std::uint64_t row = 1; row + 1 < height; ++row)
      for (std::uint64_t column = 1; column + 1 < stride; ++column)
        next[row * stride + column] = relax(domain.data(), row * stride + column, stride);
    domain.swap(next);
  }
  return domain;
}

}  // namespace belfry::examples
