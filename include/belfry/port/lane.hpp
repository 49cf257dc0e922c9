#pragma once
/// \file
/// Who runs: a thread's place in its warp, block and grid, and what the threads of a warp or block do
/// together. On a GPU this is the hardware's; on a CPU it is what runs device code there (src/lanes), or
/// nobody, and then the one thread is a grid of one.

#include <cstdint>
#include <cstring>

#include "belfry/port/function.hpp"

#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
#include <emmintrin.h>
#endif

namespace belfry::port {

inline constexpr std::uint32_t kWarpSize = 32;
inline constexpr std::uint32_t kFullWarp = 0xffffffffu;

/// A thread of device code on a CPU, as its runner offers it. Masks name lanes of the warp; every lane of a
/// mask takes part in a collective call, as on a GPU.
class CpuLane {
 public:
  std::uint32_t lane = 0;    ///< in its warp
  std::uint32_t thread = 0;  ///< in its block
  std::uint32_t block = 0;   ///< in the grid
  std::uint32_t threads_a_block = 1;
  std::uint32_t blocks = 1;

  /// Lets others run: called by every load that waits.
  virtual void yield() = 0;
  virtual void sync_warp(std::uint32_t mask) = 0;
  virtual std::uint32_t ballot(std::uint32_t mask, bool vote) = 0;
  /// \return what lane `source` of the mask passed as `value`
  virtual std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source) = 0;
  /// Waits for all threads of the block. \return whether any of them voted true
  virtual bool sync_block(bool vote) = 0;

 protected:
  ~CpuLane() = default;
};

/// The lane that runs on this CPU thread; null outside a runner. A runner sets it with every switch.
inline CpuLane*& current_lane() {
  static thread_local CpuLane* lane = nullptr;
  return lane;
}

/// A turn of a waiting loop on a CPU.
inline void pause_lane() {
  if (CpuLane* lane = current_lane()) {
    lane->yield();
    return;
  }
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  _mm_pause();
#endif
}

/// Index of the thread in its warp, 0 to 31.
BELFRY_FN inline std::uint32_t lane_index() {
#if defined(__CUDA_ARCH__)
  std::uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
#else
  const CpuLane* lane = current_lane();
  return lane ? lane->lane : 0;
#endif
}

/// Index of the thread in its block; x first, then y and z, which is also how a GPU makes warps of them.
BELFRY_FN inline std::uint32_t thread_index() {
#if defined(__CUDA_ARCH__)
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
#else
  const CpuLane* lane = current_lane();
  return lane ? lane->thread : 0;
#endif
}

BELFRY_FN inline std::uint32_t threads_a_block() {
#if defined(__CUDA_ARCH__)
  return blockDim.x * blockDim.y * blockDim.z;
#else
  const CpuLane* lane = current_lane();
  return lane ? lane->threads_a_block : 1;
#endif
}

BELFRY_FN inline std::uint32_t block_index() {
#if defined(__CUDA_ARCH__)
  return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
#else
  const CpuLane* lane = current_lane();
  return lane ? lane->block : 0;
#endif
}

BELFRY_FN inline std::uint32_t block_count() {
#if defined(__CUDA_ARCH__)
  return gridDim.x * gridDim.y * gridDim.z;
#else
  const CpuLane* lane = current_lane();
  return lane ? lane->blocks : 1;
#endif
}

/// Lanes of this thread's warp that exist: a block's last warp may be short.
BELFRY_FN inline std::uint32_t warp_mask() {
  const std::uint32_t first = thread_index() / kWarpSize * kWarpSize;
  const std::uint32_t left = threads_a_block() - first;
  return left >= kWarpSize ? kFullWarp : (1u << left) - 1u;
}

/// Waits for all lanes of the mask; what they stored before is seen by each of them after.
BELFRY_FN inline void sync_warp(std::uint32_t mask) {
#if defined(__CUDA_ARCH__)
  __syncwarp(mask);
#else
  if (CpuLane* lane = current_lane()) lane->sync_warp(mask);
#endif
}

/// \return one bit for each lane of the mask that voted true
BELFRY_FN inline std::uint32_t ballot(std::uint32_t mask, bool vote) {
#if defined(__CUDA_ARCH__)
  return __ballot_sync(mask, vote);
#else
  CpuLane* lane = current_lane();
  return lane ? lane->ballot(mask, vote) : vote && (mask & 1u) != 0 ? 1u : 0u;
#endif
}

/// \return `value` of lane `source`. T has at most 8 B.
template <class T>
BELFRY_FN T shuffle(std::uint32_t mask, T value, std::uint32_t source) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) <= 4) {
    bits = __shfl_sync(mask, static_cast<std::uint32_t>(bits), static_cast<int>(source));
  } else {
    bits = __shfl_sync(mask, static_cast<unsigned long long>(bits), static_cast<int>(source));
  }
#else
  if (CpuLane* lane = current_lane()) bits = lane->shuffle(mask, bits, source);
#endif
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Waits for all threads of the block; what they stored before is seen by each of them after.
BELFRY_FN inline void sync_block() {
#if defined(__CUDA_ARCH__)
  __syncthreads();
#else
  if (CpuLane* lane = current_lane()) lane->sync_block(false);
#endif
}

/// The same. \return whether any thread of the block voted true
BELFRY_FN inline bool sync_block_any(bool vote) {
#if defined(__CUDA_ARCH__)
  return __syncthreads_or(vote) != 0;
#else
  CpuLane* lane = current_lane();
  return lane ? lane->sync_block(vote) : vote;
#endif
}

/// Number of set bits.
BELFRY_FN inline std::uint32_t count_lanes(std::uint32_t mask) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(mask));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(mask));
#endif
}

/// The lowest lane of a mask that is not empty.
BELFRY_FN inline std::uint32_t first_lane(std::uint32_t mask) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(mask))) - 1u;
#else
  return static_cast<std::uint32_t>(__builtin_ctz(mask));
#endif
}

/// The highest lane of a mask that is not empty.
BELFRY_FN inline std::uint32_t last_lane(std::uint32_t mask) {
#if defined(__CUDA_ARCH__)
  return 31u - static_cast<std::uint32_t>(__clz(static_cast<int>(mask)));
#else
  return 31u - static_cast<std::uint32_t>(__builtin_clz(mask));
#endif
}

/// Sum of `value` over the lanes of the mask below the caller's. The usual case, all the same, takes one
/// vote.
BELFRY_FN inline std::uint32_t sum_below(std::uint32_t mask, std::uint32_t value) {
  const std::uint32_t below = mask & ((1u << lane_index()) - 1u);
  const std::uint32_t first = shuffle(mask, value, first_lane(mask));
  if (ballot(mask, value == first) == mask) return first * count_lanes(below);
  std::uint32_t sum = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const std::uint32_t lane = first_lane(left);
    const std::uint32_t theirs = shuffle(mask, value, lane);
    if ((below >> lane & 1u) != 0) sum += theirs;
  }
  return sum;
}

}  // namespace belfry::port
