#pragma once
/// \file
/// Where the experiments' memory lies when their kernels run on a GPU.

#include "bench/device_group.hpp"
#include "bench/experiment.hpp"

namespace belfry::bench {

/// Whether the kernels of a run are to run on a GPU.
inline bool on_gpu(const RunContext& run) { return run.options().lanes == "cuda"; }

/// Puts windows, tables and queues of endpoints to be made into memory that the run's kernels reach. Throws
/// host::Error where there is no GPU, std::invalid_argument in a build without CUDA.
void place_for_lanes(const RunContext& run, host::DeviceEndpointOptions& options);

/// Host memory that kernels of a GPU reach. Throws as place_for_lanes().
std::shared_ptr<host::QueueMemory> pinned_memory();
/// A GPU's memory, likewise.
std::shared_ptr<host::QueueMemory> gpu_memory();

}  // namespace belfry::bench
