#pragma once
/// \file
/// What the engine's kernel takes, and the little that it shares with the host while it runs.

#include <cstdint>

#include "belfry/port/byte_order.hpp"
#include "softnic/firmware/keys.hpp"
#include "softnic/firmware/wqe_decode.hpp"
#include "softnic/gpu/gpu_tables.hpp"

namespace belfry::softnic::cuda {

/// Looks like the doorbell record of a queue that has been rung, for those who poll it beside some.
inline constexpr std::uint32_t kStopWord = swap_bytes(std::uint32_t{1});

/// In GPU memory. `stop` lies as a record's send word does.
struct alignas(8) EngineControl {
  std::uint32_t ended = 0;   ///< warps that have
  std::uint32_t stop = 0;    ///< kStopWord: end when nothing is left to do
  std::uint64_t worked = 0;  ///< ns; roughly when a warp last had work
};

/// In pinned host memory.
struct EngineStatus {
  std::uint32_t finished = 0;   ///< the launch that has ended
  std::uint32_t attention = 0;  ///< grows with each queue that fails
};

/// Where a warp puts a WQE that does not fit into its registers. In GPU memory.
struct Scratch {
  alignas(64) unsigned char image[kMaxWqeBytes + wire::kBlockBytes];
  DecodedWqe wqe;
};

struct EngineParameters {
  const GpuQueuePair* queues = nullptr;  ///< of `slots`
  const MkeyEntry* keys = nullptr;       ///< of `key_rows`
  GpuProgress* progress = nullptr;       ///< pinned; [slot]
  std::uint64_t* cq_producers = nullptr;
  std::uint64_t* receive_next = nullptr;  ///< [slot]: of that queue's receive ring
  EngineControl* control = nullptr;
  EngineStatus* status = nullptr;
  Scratch* scratch = nullptr;  ///< [warp]
  std::uint64_t idle_ns = 0;
  std::uint32_t slots = 0;
  std::uint32_t key_rows = 0;
  bool far_queues = false;   ///< some lie outside this GPU's memory
  std::uint32_t launch = 0;  ///< what `finished` becomes
};

/// Of a block: more would leave a thread too few registers.
inline constexpr std::uint32_t kMostWarps = 8;

/// As many queues and keys lie in constant memory, whose cache no fence empties; more of them in GPU memory.
inline constexpr std::uint32_t kConstantQueues = 128;
inline constexpr std::uint32_t kConstantKeys = 512;
static_assert(kConstantQueues * sizeof(GpuQueuePair) + kConstantKeys * sizeof(MkeyEntry) <= 62 * 1024);

}  // namespace belfry::softnic::cuda
