#include "bench/target.hpp"

#include <algorithm>
#include <cstring>

namespace belfry::bench {
namespace {

constexpr std::byte kGuard{0xb5};

bool guard_is_right(std::span<const std::byte> guard) {
  return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == kGuard; });
}

}  // namespace

void clear_target(std::span<std::byte> target) {
  std::fill(target.begin(), target.end(), kGuard);
  const auto slots = target.subspan(kGuardBytes, kTargetSlots * kSlotBytes);
  std::fill(slots.begin(), slots.end(), std::byte{0});
}

bool target_is_right(std::span<const std::byte> target, std::uint64_t seed, std::uint64_t writes) {
  if (target.size() != kTargetBytes) return false;
  if (!guard_is_right(target.first(kGuardBytes)) || !guard_is_right(target.last(kGuardBytes))) return false;
  for (std::size_t slot = 0; slot < kTargetSlots; ++slot) {
    std::uint64_t held = 0;
    std::memcpy(&held, target.data() + target_offset(slot), sizeof held);
    std::uint64_t expected = 0;
    if (slot < writes) {
      expected = target_value(seed, last_write(slot, kTargetSlots, writes));
    }
    if (held != expected) return false;
  }
  return true;
}

}  // namespace belfry::bench
