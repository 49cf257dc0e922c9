#pragma once
/// \file
/// Where the experiments' memory lies when their kernels run on a GPU.

#include "bench/describe_nic.hpp"
#include "bench/device_group.hpp"
#include "bench/experiment.hpp"
#include "bench/kernel_runner.hpp"

namespace belfry::bench {

/// Whether the kernels of a run are to run on a GPU.
inline bool on_gpu(const RunContext& run) { return run.options().lanes == "cuda"; }

/// Whether mini-gda's send queues lie in GPU memory.
inline bool sends_from_gpu(const RunContext& run) {
  return on_gpu(run) && run.options().send_queue_place != "host";
}

/// The NIC of a run whose kernels post to queues in GPU memory where it says cuda: the software NIC's engine
/// on the GPU.
inline NicDescription describe_nic_of_lanes(const RunContext& run, const host::Context& context) {
  NicDescription nic = describe_nic(context);
  if (sends_from_gpu(run) && nic.kind == NicKind::soft_cpu) nic.kind = NicKind::soft_gpu;
  return nic;
}

/// The GPU of a rank's kernels and memory.
inline int gpu_of(const RunContext& run, std::size_t rank) {
  return run.options().gpus[rank % run.options().gpus.size()];
}
/// Whether the software NIC's engine has been put on another GPU than the kernels of rank 0.
inline bool engine_is_elsewhere(const RunContext& run) {
  const std::optional<int> engine = run.options().engine.gpu;
  return engine && *engine != gpu_of(run, 0);
}

/// Puts windows, tables and queues of a rank's endpoint into memory that its kernels reach. Throws
/// host::Error where there is no such GPU, std::invalid_argument in a build without CUDA.
void place_for_lanes(const RunContext& run, std::size_t rank, host::DeviceEndpointOptions& options);

/// What runs a rank's kernels. Throws as make_cuda_runner().
/// \param gives_way of CPU lanes: see make_lane_runner()
inline std::unique_ptr<KernelRunner> make_runner(const RunContext& run, bool gives_way,
                                                 std::size_t rank = 0) {
  return on_gpu(run) ? make_cuda_runner(gpu_of(run, rank)) : make_lane_runner(gives_way);
}
/// How `threads` independent threads are laid out: on a GPU over as many blocks, for the lanes of a warp
/// would take turns; on a CPU as lanes of one thread, for blocks would want a core each.
inline Grid spread(const RunContext& run, std::uint32_t threads) {
  return on_gpu(run) ? Grid{threads, 1} : Grid{1, threads};
}

/// Host memory that kernels of a GPU reach. Throws as place_for_lanes().
std::shared_ptr<host::QueueMemory> pinned_memory();
/// A GPU's memory, likewise.
std::shared_ptr<host::QueueMemory> gpu_memory(int gpu);
/// Lets kernels of rank 0 read the windows of the others. Throws host::Error where the GPUs have no peer
/// access.
void let_kernels_reach_peers(const RunContext& run);
/// Lets kernels of a run reach host memory that is there already, for as long as the result lives; null where
/// they do anyway.
std::shared_ptr<void> pin_for_lanes(const RunContext& run, std::span<std::byte> memory);

}  // namespace belfry::bench
