#pragma once
/// \file
/// Queues, tables and windows in a GPU's memory or in pinned host memory, and doorbells for its kernels. In
/// the library belfry::host_cuda, which is there where belfry was built with nvcc; no CUDA type shows here.

#include <cstddef>
#include <memory>

#include "belfry/host/doorbell_path.hpp"
#include "belfry/host/placement.hpp"
#include "belfry/host/queue_memory.hpp"

namespace belfry::host {

/// Memory of a GPU (cudaMalloc). Throws Error (unsupported) where CUDA has no such GPU.
std::shared_ptr<QueueMemory> gpu_queue_memory(int gpu = 0);

/// Host memory that the GPU's kernels reach at the same addresses. Throws Error (unsupported) as above.
std::shared_ptr<QueueMemory> pinned_queue_memory(int gpu = 0);

/// Lets a GPU's kernels reach host memory that is there already, at the same addresses, until the last copy
/// of the result goes. Throws Error (unsupported) where CUDA has no such GPU or does not pin it.
std::shared_ptr<void> pin_host_memory(void* address, std::size_t bytes, int gpu = 0);

/// Which memory each part of an endpoint takes, for kernels on a GPU.
struct GpuPlacement {
  bool send_queue_on_gpu = true;
  bool completions_on_gpu = true;
  bool record_on_gpu = true;
};
/// The placement of a DeviceEndpoint whose kernels run on a GPU: state and tables in its memory, the rest as
/// asked. Doorbell registers are mapped to the GPU, as I/O memory for a real NIC and as memory for the
/// software NIC; where the driver refuses that, a CPU thread forwards (DoorbellPath::automatic). Throws Error
/// (unsupported) where CUDA has no such GPU.
Placement place_for_gpu(const GpuPlacement& places = {}, int gpu = 0);

/// Lets kernels of one GPU reach the memory of another; of itself they do. Throws Error (unsupported) where
/// CUDA has no such GPUs or the driver offers no peer access between them.
void allow_peer_access(int gpu, int peer);

/// Maps doorbell registers' pages to a GPU. See RegisterMapper.
std::shared_ptr<RegisterMapper> gpu_register_mapper(int gpu = 0);

}  // namespace belfry::host
