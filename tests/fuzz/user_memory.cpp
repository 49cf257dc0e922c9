#include "fuzz/user_memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace belfry::fuzz {
namespace {

constexpr std::size_t kGuard = 16 * UserMemory::kPage;
constexpr std::size_t kSlotsTotal = UserMemory::kSlots * UserMemory::kSlotBytes;
constexpr std::size_t kTotal = kGuard + kSlotsTotal + kGuard + UserMemory::kPage + kGuard;

}  // namespace

UserMemory::UserMemory() {
  void* map = mmap(nullptr, kTotal, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) std::abort();
  map_ = static_cast<std::uint8_t*>(map);
  slots_ = map_ + kGuard;
  read_only_ = slots_ + kSlotsTotal + kGuard;
  if (mprotect(slots_, kSlotsTotal, PROT_READ | PROT_WRITE) != 0) std::abort();
  if (mprotect(read_only_, kPage, PROT_READ) != 0) std::abort();
}

UserMemory::~UserMemory() { munmap(map_, kTotal); }

void UserMemory::clear() {
  std::memset(slots_, 0, used_ * kSlotBytes);
  next_ = used_ = 0;
}

std::uint8_t* UserMemory::slot() {
  if (next_ == kSlots) next_ = kKept;
  std::uint8_t* slot = slots_ + next_++ * kSlotBytes;
  if (next_ > used_) used_ = next_;
  return slot;
}

std::uint64_t UserMemory::address(Reader& choices, const void* nominal) const {
  const auto number = [](const std::uint8_t* p) { return reinterpret_cast<std::uint64_t>(p); };
  const auto at = reinterpret_cast<std::uint64_t>(nominal);
  const std::uint8_t choice = choices.byte();
  switch (choice) {
    case 0:
      return at;
    case 1:
      return 0;
    case 2:
      return number(map_);  // no access
    case 3:
      return number(slots_ + kSlotsTotal - 8);  // runs into the guard
    case 4:
      return number(read_only_);
    case 5:
      return number(read_only_ + kPage - 4);
    case 6:
      return 0xffff800000000000u;  // the kernel's half
    case 7:
      return 0x0008000000000000u;  // not canonical
    case 8:
      return ~std::uint64_t{0};
    case 9:
      return ~std::uint64_t{0} - kPage + 1;
    case 10:
      return number(slots_) - 4;  // begins in the guard
    default:
      return at + (choice - 10u) * (choice & 1 ? 1u : 64u);
  }
}

}  // namespace belfry::fuzz
