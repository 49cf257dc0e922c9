#include "belfry/host/bootstrap.hpp"

#include <string>
#include <utility>

#include "belfry/host/errors.hpp"

namespace belfry::host {

void Bootstrap::barrier(Deadline deadline) { all_gather({}, deadline); }

Blob Bootstrap::broadcast(std::span<const std::byte> mine, int root, Deadline deadline) {
  if (root < 0 || root >= size()) {
    throw Error(ErrorKind::bad_argument, "a broadcast from rank " + std::to_string(root),
                "Ranks are 0.." + std::to_string(size() - 1));
  }
  std::vector<Blob> all = all_gather(rank() == root ? mine : std::span<const std::byte>{}, deadline);
  return std::move(all[static_cast<std::size_t>(root)]);
}

}  // namespace belfry::host
