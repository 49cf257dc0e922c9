#pragma once
/// \file
/// Stage three of the NIC on a GPU: moving bytes. Loads go past the L1, which nobody keeps coherent.

#include <cstdint>

#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"
#include "softnic/cuda/single_wqe.hpp"

namespace belfry::softnic::cuda {

/// Threads that move one message together: `rank` of `count`.
struct Movers {
  std::uint32_t rank = 0;
  std::uint32_t count = 1;
};

/// Loads of a lane that do not wait for each other, in a message that a warp moves.
inline constexpr std::uint32_t kUnderWay = 8;

/// \tparam under_way all loads of a round come before its stores: each could be of what the store before it
/// writes, for all that the compiler knows, and then a lane would wait for one load after the other
template <class T, std::uint32_t under_way>
__device__ inline void copy_units(unsigned char* to, const unsigned char* from, std::uint64_t units,
                                  Movers movers) {
  const auto* source = reinterpret_cast<const T*>(from);
  auto* target = reinterpret_cast<T*>(to);
  for (std::uint64_t i = movers.rank; i < units; i += under_way * movers.count) {
    T unit[under_way];
#pragma unroll
    for (std::uint32_t k = 0; k < under_way; ++k)
      if (i + k * movers.count < units) unit[k] = __ldcv(source + i + k * movers.count);
#pragma unroll
    for (std::uint32_t k = 0; k < under_way; ++k)
      if (i + k * movers.count < units) target[i + k * movers.count] = unit[k];
  }
}

/// In the widest units that both addresses allow, single bytes up to the first and after the last of them.
template <class T, std::uint32_t under_way>
__device__ inline void copy_aligned(unsigned char* to, const unsigned char* from, std::uint64_t bytes,
                                    Movers movers) {
  std::uint64_t head = (0 - reinterpret_cast<std::uintptr_t>(to)) & (sizeof(T) - 1);
  if (head > bytes) head = bytes;
  const std::uint64_t units = (bytes - head) / sizeof(T);
  const std::uint64_t body_end = head + units * sizeof(T);
  copy_units<unsigned char, 1>(to, from, head, movers);
  copy_units<T, under_way>(to + head, from + head, units, movers);
  copy_units<unsigned char, 1>(to + body_end, from + body_end, bytes - body_end, movers);
}

template <std::uint32_t under_way = kUnderWay>
__device__ inline void copy_bytes(unsigned char* to, const unsigned char* from, std::uint64_t bytes,
                                  Movers movers) {
  const auto apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  if ((apart & 15) == 0) return copy_aligned<uint4, under_way>(to, from, bytes, movers);
  if ((apart & 7) == 0) return copy_aligned<unsigned long long, under_way>(to, from, bytes, movers);
  if ((apart & 3) == 0) return copy_aligned<unsigned, under_way>(to, from, bytes, movers);
  copy_units<unsigned char, under_way>(to, from, bytes, movers);
}

/// A small payload by one lane: a naturally aligned word is one store.
__device__ inline void copy_small(unsigned char* to, const unsigned char* from, std::uint32_t bytes) {
  const auto both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (bytes == 8 && (both & 7) == 0) {
    port::store<port::Scope::system>(
        reinterpret_cast<std::uint64_t*>(to),
        port::load<port::Scope::system>(reinterpret_cast<const std::uint64_t*>(from)));
    return;
  }
  copy_bytes<1>(to, from, bytes, Movers{});
}

/// The payload of an inline WQE, from the registers that hold its block.
__device__ inline void store_inline(unsigned char* to, const BlockWords& block, std::uint32_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  // Byte 36 is the upper half of word 4.
  if (bytes == 8 && (address & 7) == 0) {
    port::store<port::Scope::system>(reinterpret_cast<std::uint64_t*>(to),
                                     block.word[4] >> 32 | block.word[5] << 32);
    return;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < 7; ++i) {
    const std::uint64_t word = block.word[4 + (i + 1) / 2];
    const auto four = static_cast<std::uint32_t>((i & 1) == 0 ? word >> 32 : word);
    const std::uint32_t at = i * 4;
    if (at + 4 <= bytes && (address & 3) == 0) {
      port::store<port::Scope::system>(reinterpret_cast<std::uint32_t*>(to + at), four);
      continue;
    }
#pragma unroll
    for (std::uint32_t byte = 0; byte < 4; ++byte)
      if (at + byte < bytes) to[at + byte] = static_cast<unsigned char>(four >> (8 * byte));
  }
}

}  // namespace belfry::softnic::cuda
