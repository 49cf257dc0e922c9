#include "bench/gpu_window.hpp"

#include "belfry/host/cuda_memory.hpp"

namespace belfry::bench {

void place_for_lanes(const RunContext& run, std::size_t rank, host::DeviceEndpointOptions& options) {
  if (!on_gpu(run)) return;
  const Options& o = run.options();
  host::GpuPlacement places;
  places.send_queue_on_gpu = sends_from_gpu(run);
  const auto lies_on_gpu = [&](const std::string& place) {
    return place.empty() ? places.send_queue_on_gpu : place == "gpu";
  };
  places.completions_on_gpu = lies_on_gpu(o.completions_place);
  places.record_on_gpu = lies_on_gpu(o.record_place);
  options.placement = host::place_for_gpu(places, gpu_of(run, rank));
  // A queue in host memory is a CPU's NIC's, which reaches GPU memory by copies only.
  const bool windows_on_gpu = places.send_queue_on_gpu || o.window_place == "gpu";
  const auto memory =
      windows_on_gpu ? options.placement.tables.memory : host::pinned_queue_memory(gpu_of(run, rank));
  for (host::WindowOptions& window : options.windows) {
    window.memory = memory;
    window.kind = windows_on_gpu ? device::MemoryKind::own : device::MemoryKind::host;
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
