#pragma once
/// \file
/// The memory at the target of measured writes, and what has to be in it afterwards. Write number i
/// carries a value that only (seed, i) gives, to slot i modulo the number of slots: at the end every slot
/// must hold the last value written to it, and the guards around the slots must be untouched.

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/kernels/target_value.hpp"

namespace belfry::bench {

inline constexpr std::size_t kTargetSlots = 4096;
inline constexpr std::size_t kSlotBytes = 8;
inline constexpr std::size_t kGuardBytes = 64;
/// Guard, slots, guard.
inline constexpr std::size_t kTargetBytes = 2 * kGuardBytes + kTargetSlots * kSlotBytes;

/// Where write `i` goes, in bytes from the target's begin.
constexpr std::size_t target_offset(std::uint64_t i) { return kGuardBytes + (i % kTargetSlots) * kSlotBytes; }

/// Fills guards with a pattern and slots with zeros. \param target kTargetBytes
void clear_target(std::span<std::byte> target);

/// Whether the target holds exactly what `writes` writes leave. \param target kTargetBytes
bool target_is_right(std::span<const std::byte> target, std::uint64_t seed, std::uint64_t writes);

}  // namespace belfry::bench
