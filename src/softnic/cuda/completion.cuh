#pragma once
/// \file
/// Stage four of the NIC on a GPU: completions, whose last word follows everything that they stand for.

#include "belfry/port/memory.hpp"
#include "belfry/wire/doorbell.hpp"
#include "softnic/cuda/engine_types.hpp"
#include "softnic/cuda/fences.cuh"
#include "softnic/firmware/cqe_build.hpp"

namespace belfry::softnic::cuda {

__device__ inline unsigned char* entry_at(const GpuRing& ring, std::uint64_t index) {
  const std::uint64_t slot = ring.collapsed ? 0 : index & ((std::uint64_t{1} << ring.log_entries) - 1);
  return ring.entries + slot * ring.entry_bytes + (ring.entry_bytes - wire::kCqeBytes);
}

/// An entry as words. The last one makes it valid.
struct CqeWords {
  std::uint64_t word[8];
};

__device__ inline CqeWords words_of(const GpuRing& ring, std::uint64_t index, const Completion& c) {
  const bool owner = (index >> ring.log_entries & 1) != 0;
  CqeWords words;
  if (c.error()) {
    const wire::ErrorCqe cqe = build_error_cqe(c, owner);
    memcpy(&words, &cqe, sizeof words);
  } else {
    const wire::Cqe cqe = build_cqe(c, owner);
    memcpy(&words, &cqe, sizeof words);
  }
  return words;
}

__device__ inline void store_body(unsigned char* entry, const CqeWords& words) {
#pragma unroll
  for (int i = 0; i < 3; ++i)
    port::store_segment(entry + i * sizeof(port::Vector16), {words.word[2 * i], words.word[2 * i + 1]});
  port::store<Scope::system>(reinterpret_cast<std::uint64_t*>(entry) + 6, words.word[6]);
}
__device__ inline void store_tail(unsigned char* entry, const CqeWords& words) {
  port::store<Scope::system>(reinterpret_cast<std::uint64_t*>(entry) + 7, words.word[7]);
}

/// By one lane. \param reach of what the entry stands for and of the entry
__device__ inline void store_entry(unsigned char* entry, const CqeWords& words, Reach reach) {
  store_body(entry, words);
  release_fence(reach);
  store_tail(entry, words);
}

/// By one lane. \param reach of what it stands for: moved by this warp, which has met since
__device__ inline void push(const GpuRing& ring, std::uint64_t index, const Completion& c, Reach reach) {
  store_entry(entry_at(ring, index), words_of(ring, index, c),
              ring.far ? Reach::system : wider(reach, Reach::gpu));
}

/// Whether `count` entries more would overwrite what the consumer has not released.
__device__ inline bool would_overrun(const GpuRing& ring, std::uint64_t producer, std::uint32_t count) {
  if (ring.ignore_overrun || ring.collapsed || ring.record == nullptr) return false;
  const std::uint32_t consumer = swap_bytes(port::load_acquire<Scope::system>(ring.record));
  const std::uint32_t held = (static_cast<std::uint32_t>(producer) - consumer) & wire::kCqConsumerMask;
  return held + count > (1u << ring.log_entries);
}

}  // namespace belfry::softnic::cuda
