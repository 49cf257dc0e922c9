#pragma once
/// \file
/// Whether the PEs' symmetric heaps have seen the same calls.

#include <cstdint>
#include <initializer_list>
#include <span>

#include "belfry/host/symmetric_heap.hpp"

namespace belfry::host {

inline constexpr std::uint64_t kEmptyHistory = 0xcbf29ce484222325;  // FNV-1a's offset basis

/// FNV-1a over the words' bytes, continued from `hash`.
std::uint64_t hash_words(std::uint64_t hash, std::initializer_list<std::uint64_t> words);

/// So many calls since the last check are kept to say where PEs parted: 2 MiB.
inline constexpr std::size_t kMostCallsKept = 65536;

struct HistoryDigest {
  std::uint64_t range = 0;  ///< hash of what the heap hands out
  std::uint64_t calls = 0;
  std::uint64_t hash = 0;  ///< of the calls
  bool operator==(const HistoryDigest&) const = default;
};

/// Collective. Throws Error (bad_argument) on every PE where the digests differ.
/// \param first number of the first of `recent`, the calls since the last check
void compare_histories(Bootstrap& bootstrap, const HistoryDigest& mine, std::uint64_t first,
                       std::span<const SymmetricHeap::Call> recent, Deadline deadline);

/// Where `odd` parts from `usual`, for a message: "at its call 17, free of offset 64, where rank 0 made ...".
std::string describe_parting(std::size_t usual_rank, std::uint64_t first,
                             std::span<const SymmetricHeap::Call> odd,
                             std::span<const SymmetricHeap::Call> usual);

}  // namespace belfry::host
