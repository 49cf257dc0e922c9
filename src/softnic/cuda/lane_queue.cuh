#pragma once
/// \file
/// A queue, in the registers of the lane that looks after it. Constant memory is a hundred cycles away and
/// global memory three hundred: what every doorbell needs is here.

#include <cstdint>

#include "softnic/cuda/completion.cuh"
#include "softnic/cuda/hot_write.hpp"
#include "softnic/gpu/gpu_tables.hpp"

namespace belfry::softnic::cuda {

struct LaneQueue {
  /// Where it looks: the register that it rings and its page's other one; with polls_word the record, a pair
  /// of words aligned to its size of which the second counts.
  const std::uint64_t* places[kGpuRegisters] = {};
  std::uint64_t producer = 0, next = 0;
  std::uint64_t seen[kGpuRegisters] = {};  ///< at `places`
  std::uint64_t completions = 0;           ///< producer of its CQ, where that is its own
  std::uint64_t pause = 0;                 ///< ns; nothing is tried before
  std::uint64_t silent_since = 0;
  std::uint32_t slot = 0;
  std::uint32_t number = 0;
  std::uint32_t block_mask = 0;
  std::uint32_t rnr_tries = 0;
  GpuQueueState state = GpuQueueState::idle;
  Reach stored = Reach::none;  ///< since the last fence
  bool exists = false, no_record = false;
  bool polls_word = false;   ///< looks at a record, and not at registers
  bool has_rung = false;     ///< at the first place
  bool swapped = false;      ///< that is the page's second register
  bool body_stored = false;  ///< the CQ's entry has what all hot WRITEs' have in common
  HotWrites hot;             ///< its memory is null where the queue is not active

  __device__ bool waits() const { return next < producer; }
};

/// All but the key, which the first WRITE brings. \return nothing known where the queue is of another kind
__device__ inline HotWrites hot_writes_of(const GpuQueuePair& q) {
  HotWrites hot;
  const GpuRing& ring = q.completions;
  if (!ring.collapsed || ring.shared || !q.reachable || q.max_message < HotWrites::kMostBytes) return hot;
  hot.blocks = q.blocks;
  hot.entry = entry_at(ring, 0);
  hot.block_mask = q.block_mask;
  hot.qpn_segments = Be32(q.number << 8 | HotWrites::kSegments).raw();
  hot.user_index = q.user_index;
  hot.log_entries = ring.log_entries;
  hot.far_entry = ring.far;
  return hot;
}

}  // namespace belfry::softnic::cuda
