#pragma once
/// \file
/// Where the experiments' memory lies when their kernels run on a GPU.

#include "bench/describe_nic.hpp"
#include "bench/device_group.hpp"
#include "bench/experiment.hpp"

namespace belfry::bench {

/// Whether the kernels of a run are to run on a GPU.
inline bool on_gpu(const RunContext& run) { return run.options().lanes == "cuda"; }

/// The NIC of a run whose kernels post to queues in GPU memory where it says cuda: the software NIC's engine
/// on the GPU.
inline NicDescription describe_nic_of_lanes(const RunContext& run, const host::Context& context) {
  NicDescription nic = describe_nic(context);
  if (on_gpu(run) && nic.kind == NicKind::soft_cpu) nic.kind = NicKind::soft_gpu;
  return nic;
}

/// Puts windows, tables and queues of endpoints to be made into memory that the run's kernels reach. Throws
/// host::Error where there is no GPU, std::invalid_argument in a build without CUDA.
void place_for_lanes(const RunContext& run, host::DeviceEndpointOptions& options);

/// Host memory that kernels of a GPU reach. Throws as place_for_lanes().
std::shared_ptr<host::QueueMemory> pinned_memory();
/// A GPU's memory, likewise.
std::shared_ptr<host::QueueMemory> gpu_memory();

}  // namespace belfry::bench
