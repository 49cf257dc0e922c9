#include "common/gpu.hpp"

#include "belfry/host/cuda_memory.hpp"

namespace belfry::examples {

std::shared_ptr<host::QueueMemory> gpu_memory(int gpu) { return host::gpu_queue_memory(gpu); }
std::shared_ptr<host::QueueMemory> pinned_memory(int gpu) { return host::pinned_queue_memory(gpu); }
host::Placement gpu_placement(int gpu) { return host::place_for_gpu({}, gpu); }

}  // namespace belfry::examples
