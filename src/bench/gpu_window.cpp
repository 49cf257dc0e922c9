#include "bench/gpu_window.hpp"

#include "belfry/host/cuda_memory.hpp"

namespace belfry::bench {

void place_for_lanes(const RunContext& run, std::size_t rank, host::DeviceEndpointOptions& options) {
  if (!on_gpu(run)) return;
  host::GpuPlacement places;
  places.completions_on_gpu = run.options().completions_place != "host";
  places.record_on_gpu = run.options().record_place != "host";
  options.placement = host::place_for_gpu(places, gpu_of(run, rank));
  for (host::WindowOptions& window : options.windows) {
    window.memory = options.placement.tables.memory;
    window.kind = device::MemoryKind::own;
  }
}

std::shared_ptr<host::QueueMemory> pinned_memory() { return host::pinned_queue_memory(); }
std::shared_ptr<host::QueueMemory> gpu_memory(int gpu) { return host::gpu_queue_memory(gpu); }
void let_kernels_reach_peers(const RunContext& run) {
  for (const int gpu : run.options().gpus) host::allow_peer_access(gpu_of(run, 0), gpu);
}
std::shared_ptr<void> pin_for_lanes(const RunContext& run, std::span<std::byte> memory) {
  return on_gpu(run) ? host::pin_host_memory(memory.data(), memory.size(), gpu_of(run, 0)) : nullptr;
}

}  // namespace belfry::bench
