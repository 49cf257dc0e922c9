#pragma once
// put_signal.hpp on a GPU.

#include "put_signal.hpp"

namespace consumer {

/// Runs the kernel to its end. Throws std::runtime_error with CUDA's words.
Result launch_on_gpu(const device::EndpointView& view);

}  // namespace consumer
