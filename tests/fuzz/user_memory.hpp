#pragma once
/// \file
/// The memory of an application that a harness plays: slots to put queues and buffers into, with pages
/// that nobody may touch around them, and every kind of address that an application can get wrong.
/// Hostile addresses are chosen, never arbitrary: an arbitrary one could be the harness's own heap.

#include <cstddef>
#include <cstdint>

#include "fuzz/harness.hpp"

namespace belfry::fuzz {

class UserMemory {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kSlotBytes = 16 * kPage;
  static constexpr std::size_t kSlots = 16;
  static constexpr std::size_t kKept = 2;  ///< the first slots are handed out once only

  UserMemory();
  ~UserMemory();
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  void clear();

  /// The next slot, of kSlotBytes; after the last one again those behind the kept ones.
  std::uint8_t* slot();

  /// `nominal` for a choice of 0, an address moved within its slot, or a hostile one.
  std::uint64_t address(Reader& choices, const void* nominal) const;

 private:
  std::uint8_t* map_ = nullptr;
  std::uint8_t* slots_ = nullptr;      ///< kSlots * kSlotBytes, readable and writable
  std::uint8_t* read_only_ = nullptr;  ///< one page
  std::size_t next_ = 0;
  std::size_t used_ = 0;
};

}  // namespace belfry::fuzz
