#include <stdexcept>

#include "bench/gpu_window.hpp"

namespace belfry::bench {

void place_for_lanes(const RunContext& run, host::DeviceEndpointOptions&) {
  if (on_gpu(run))
    throw std::invalid_argument(
        "--lanes cuda: belfry was built without nvcc; build it where nvcc is installed");
}

}  // namespace belfry::bench
