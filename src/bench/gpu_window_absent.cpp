#include <stdexcept>

#include "bench/gpu_window.hpp"

namespace belfry::bench {
namespace {

[[noreturn]] void refuse() {
  throw std::invalid_argument(
      "--lanes cuda: belfry was built without nvcc; build it where nvcc is installed");
}

}  // namespace

void place_for_lanes(const RunContext& run, std::size_t, host::DeviceEndpointOptions&) {
  if (on_gpu(run)) refuse();
}
std::shared_ptr<host::QueueMemory> pinned_memory() { refuse(); }
std::shared_ptr<host::QueueMemory> gpu_memory(int) { refuse(); }
void let_kernels_reach_peers(const RunContext&) { refuse(); }
std::shared_ptr<void> pin_for_lanes(const RunContext& run, std::span<std::byte>) {
  if (on_gpu(run)) refuse();
  return nullptr;
}

}  // namespace belfry::bench
