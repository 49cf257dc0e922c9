#pragma once
/// \file
/// What the examples need of CUDA, with no CUDA type in it. Where belfry was built without nvcc, each of
/// these throws host::Error (unsupported) that says so.

#include <cstdint>
#include <memory>

#include "belfry/host/placement.hpp"
#include "belfry/host/queue_memory.hpp"

namespace belfry::examples {

/// A GPU's memory, and host memory that its kernels reach; GPUs by CUDA's numbers.
std::shared_ptr<host::QueueMemory> gpu_memory(int gpu);
std::shared_ptr<host::QueueMemory> pinned_memory(int gpu);
/// Where a DeviceEndpoint's queues lie, for kernels on a GPU.
host::Placement gpu_placement(int gpu);

/// Runs a copy of the kernel in each thread of a grid on a GPU and waits for its end. Each example's
/// launch.cu has it for its kernels.
template <class Kernel>
void launch_on_gpu(int gpu, std::uint32_t blocks, std::uint32_t threads, const Kernel& kernel);

}  // namespace belfry::examples
