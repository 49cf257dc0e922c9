#pragma once
/// \file
/// A heap in a window. Each PE keeps its own books; PEs that make the same calls get the same offsets, so
/// that a Place names the same object everywhere, without a word between them.

#include <cstdint>
#include <map>
#include <vector>

#include "belfry/device/window.hpp"
#include "belfry/host/bootstrap.hpp"
#include "belfry/host/windows.hpp"

namespace belfry::host {

/// The bytes of a window that a heap hands out.
struct HeapRange {
  std::uint32_t window = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 4096;  ///< that the window's address has on every PE, a power of two
};

/// Not for several threads at once.
class SymmetricHeap {
 public:
  /// Sizes are rounded up to multiples of it.
  static constexpr std::uint64_t kGranule = 16;

  /// All of a window. Throws Error (bad_argument) if there is none such.
  SymmetricHeap(const Windows& windows, std::uint32_t window);
  /// Part of a window. Throws Error: bad_argument (alignment no power of two, offsets that overflow).
  explicit SymmetricHeap(const HeapRange& range);

  /// The lowest free place that fits.
  /// \param alignment bytes, a power of two, at most the window's on every PE (Windows::alignment)
  /// Throws Error: bad_argument (0 bytes, alignment); system with code ENOMEM where nothing fits, with what
  /// is free and whether it is only too scattered.
  device::Place allocate(std::uint64_t bytes, std::uint64_t alignment = 64);

  /// Frees what allocate() gave. Throws Error (bad_argument) for any other place, or one that is free
  /// already.
  void free(device::Place place);

  /// Collective: throws Error (bad_argument) on every PE if the PEs' calls have not been the same so far. It
  /// names the PE that diverged, and its first call that differs from the others'.
  void check(Bootstrap& bootstrap, Deadline deadline);

  std::uint64_t free_bytes() const { return free_bytes_; }
  std::uint64_t largest_free() const;  ///< bytes, at an alignment of kGranule
  std::size_t allocations() const { return used_.size(); }
  const HeapRange& range() const { return range_; }

  /// One call, as check() compares it.
  struct Call {
    enum class Kind : std::uint64_t { allocate, free };
    Kind kind = Kind::allocate;
    std::uint64_t bytes = 0;      ///< allocate
    std::uint64_t alignment = 0;  ///< allocate
    std::uint64_t offset = 0;     ///< free: what; allocate: what came of it, kNone if nothing fitted
    bool operator==(const Call&) const = default;
  };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

 private:
  void remember(const Call& call);
  void put_back(std::uint64_t offset, std::uint64_t bytes);

  HeapRange range_;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< offset to bytes; neighbours never touch
  std::map<std::uint64_t, std::uint64_t> used_;  ///< offset to bytes
  std::uint64_t free_bytes_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t range_hash_ = 0;
  std::uint64_t hash_ = 0;       ///< of the calls
  std::vector<Call> recent_;     ///< since the last check, the first of them at most
  std::uint64_t recent_at_ = 0;  ///< number of the first of them
};

}  // namespace belfry::host
