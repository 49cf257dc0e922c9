#include "common/gpu.hpp"

#include "belfry/host/cuda_memory.hpp"

namespace belfry::examples {

std::shared_ptr<host::QueueMemory> gpu_memory() { return host::gpu_queue_memory(); }
std::shared_ptr<host::QueueMemory> pinned_memory() { return host::pinned_queue_memory(); }
host::Placement gpu_placement() { return host::place_for_gpu(); }

}  // namespace belfry::examples
