#pragma once
/// \file
/// Memory keys: what an MKey grants, and the one check that every address goes through. One source
/// for the CPU and the GPU engine.

#include <cstdint>

#include "belfry/port/function.hpp"

namespace belfry::softnic {

/// Whose memory something is: a GPU's, by CUDA's number, or the host's.
using MemoryOwner = std::int16_t;
inline constexpr MemoryOwner kHostMemory = -1;
BELFRY_FN constexpr bool is_gpu(MemoryOwner owner) { return owner >= 0; }

/// One row of the key table; the row's number is key >> 8.
struct alignas(16) MkeyEntry {
  std::uint64_t address = 0;  ///< iova of the first byte
  std::uint64_t length = 0;
  unsigned char* memory = nullptr;
  std::uint32_t key = 0;  ///< the whole key; 0: the row is free
  std::uint32_t pd = 0;
  std::uint32_t access = 0;
  MemoryOwner owner = kHostMemory;  ///< a GPU's memory only a GPU engine can reach
  bool near = false;                ///< in a GPU engine's tables: memory of its own GPU
};

enum class KeyFault : std::uint8_t {
  none,
  no_such_key,
  wrong_pd,
  no_right,
  out_of_bounds,
  out_of_reach,  ///< memory that this engine cannot touch
};

/// Whether an entry of the table grants a use.
/// \param rights all Access bits that the use needs
/// \param[out] memory where the bytes lie
BELFRY_FN inline KeyFault check_entry(const MkeyEntry& entry, std::uint32_t key, std::uint32_t pd,
                                      std::uint64_t address, std::uint64_t bytes, std::uint32_t rights,
                                      unsigned char** memory) {
  if (entry.key != key || key == 0) return KeyFault::no_such_key;
  if (entry.pd != pd) return KeyFault::wrong_pd;
  if ((entry.access & rights) != rights) return KeyFault::no_right;
  // Written so that no sum can wrap.
  if (address < entry.address) return KeyFault::out_of_bounds;
  const std::uint64_t offset = address - entry.address;
  if (offset > entry.length || bytes > entry.length - offset) return KeyFault::out_of_bounds;
  *memory = entry.memory + offset;
  return KeyFault::none;
}

/// The same of the table's row that the key names.
BELFRY_FN inline KeyFault check_key(const MkeyEntry* table, std::uint32_t rows, std::uint32_t key,
                                    std::uint32_t pd, std::uint64_t address, std::uint64_t bytes,
                                    std::uint32_t rights, unsigned char** memory) {
  const std::uint32_t row = key >> 8;
  if (row >= rows) return KeyFault::no_such_key;
  return check_entry(table[row], key, pd, address, bytes, rights, memory);
}

}  // namespace belfry::softnic
