/// \file
/// 04: Jacobi's method on a domain that is cut into tiles, one for each PE of a 2D grid; neighbours exchange
/// their edges in every step.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "04_halo_exchange/kernel.hpp"
#include "belfry/host/errors.hpp"
#include "common/launch.hpp"
#include "common/transport.hpp"

namespace belfry::examples {
namespace {

struct Options {
  std::uint64_t n = 32;
  std::uint64_t steps = 51;
  std::uint64_t threads = 32;
};

/// Throws unless the tile inside its frame is what a serial run gives, to the last bit.
void check(const Pe& pe, const PeGrid& grid, std::uint64_t steps, std::span<const double> tile) {
  const auto expected =
      cut_tile(grid, relax_serially(grid, make_domain(grid), steps), static_cast<std::uint32_t>(pe.rank()));
  for (std::uint32_t row = 1; row <= grid.n; ++row)
    for (std::uint32_t column = 1; column <= grid.n; ++column)
      if (const std::uint64_t at = cell(grid.n, row, column); tile[at] != expected[at])
        throw host::Error(
            host::ErrorKind::completion,
            fmt::format("cell {},{} is {}, and {} in a serial run", row, column, tile[at], expected[at]), "");
}

template <class Transport>
void run(const Pe& pe, const Options& o) {
  const PeGrid grid = PeGrid::make(static_cast<std::uint32_t>(pe.size()), static_cast<std::uint32_t>(o.n));
  const std::size_t boxes = 2 * kSides * o.n * sizeof(double);
  const Transport transport(pe, {{.bytes = boxes}, {.bytes = boxes}, {.bytes = kSides * 8}});

  const auto start = cut_tile(grid, make_domain(grid), static_cast<std::uint32_t>(pe.rank()));
  Shared<double> tile(pe, start.size()), other(pe, start.size());
  std::ranges::copy(start, tile.get());
  std::ranges::copy(start, other.get());
  pe.barrier();
  launch(pe, "halo_exchange", {1, static_cast<std::uint32_t>(o.threads)},
         HaloExchange<typename Transport::Endpoint>{transport.view(), grid, o.steps, pe.timeout(), tile.get(),
                                                    other.get()});
  check(pe, grid, o.steps, (o.steps % 2 == 0 ? tile : other).span());
  pe.barrier();
  if (pe.prints())
    fmt::print("{} steps on {} x {} PEs with {} x {} cells each over {}: equal to a serial run\n", o.steps,
               grid.rows, grid.columns, grid.n, grid.n, transport.describe());
}

}  // namespace
}  // namespace belfry::examples

int main(int argc, char** argv) {
  namespace examples = belfry::examples;
  examples::Program program("04_halo_exchange", "Jacobi's method on a 2D grid of PEs that exchange halos",
                            {4, 1, 16});
  examples::Options o;
  program.option("--cells", o.n, 1, 4096, "Cells of a tile along each side");
  program.option("--steps", o.steps, 0, 1000000, "Steps of the method");
  program.option("--threads", o.threads, 4, 1024, "Threads of each PE's block");
  program.path_option();
  return program.run(argc, argv, [&](const examples::Pe& pe) {
    examples::with_transport(
        pe, [&](auto transport) { examples::run<typename decltype(transport)::type>(pe, o); });
  });
}
