#pragma once
/// \file
/// The ring between the CPU's NIC and a GPU's copier kernel, in pinned host memory. Commands go down and
/// answers come back in units of 16 B that are stored and loaded at once. Each holds 8 B of content and the
/// command's tag, so that a line is complete when the tags of all its units are right: the copier polls a
/// line and has the command, with a small payload in it, in one trip over PCIe and without a fence.

#include <cstddef>
#include <cstdint>

#include "belfry/port/function.hpp"
#include "belfry/port/vector.hpp"

namespace belfry::softnic {

inline constexpr std::uint32_t kCopyUnits = 8;  ///< of a line
inline constexpr std::uint32_t kCopySlots = 8;  ///< of the ring

/// What a command carries, and an answer.
inline constexpr std::uint32_t kInlinePutBytes = (kCopyUnits - 1) * 8;
inline constexpr std::uint32_t kInlineGetBytes = kCopyUnits * 8;

/// The content of a command's units. The answer's are zero but where stated.
enum class CopyKind : std::uint32_t {
  none,
  put,     ///< to; the payload
  get,     ///< from. Answer: the bytes
  copy,    ///< to, in the GPU's memory; from
  fetch,   ///< the same to host memory
  atomic,  ///< to; add or swap; compare; swap mask; compare mask. Answer: the former value
};

/// Beside the tag in every unit of a command: its kind, and its bytes or, of an atomic, opcode and width.
struct CopyWord {
  static constexpr std::uint32_t kKindShift = 28;
  static constexpr std::uint32_t kOpcodeShift = 8;
  static constexpr std::uint32_t kMostBytes = (1u << kKindShift) - 1;

  std::uint32_t bits = 0;

  BELFRY_FN static CopyWord make(CopyKind kind, std::uint32_t bytes) {
    return {static_cast<std::uint32_t>(kind) << kKindShift | bytes};
  }
  BELFRY_FN static CopyWord make_atomic(std::uint32_t opcode, std::uint32_t width) {
    return make(CopyKind::atomic, opcode << kOpcodeShift | width);
  }
  BELFRY_FN CopyKind kind() const { return static_cast<CopyKind>(bits >> kKindShift); }
  BELFRY_FN std::uint32_t bytes() const { return bits & kMostBytes; }
  BELFRY_FN std::uint32_t opcode() const { return bytes() >> kOpcodeShift; }
  BELFRY_FN std::uint32_t width() const { return bits & 0xff; }

  /// How many units of its line such a command takes.
  BELFRY_FN std::uint32_t units() const {
    switch (kind()) {
      case CopyKind::put:
        return 1 + (bytes() + 7) / 8;
      case CopyKind::copy:
      case CopyKind::fetch:
        return 2;
      case CopyKind::atomic:
        return 5;
      default:
        return 1;
    }
  }
};

struct alignas(128) CopyLine {
  port::Vector16 units[kCopyUnits];
};
static_assert(sizeof(CopyLine) == 128);

/// The tag of a command is its number, which never is 0; it lies in the slot of that number.
struct CopyRing {
  CopyLine commands[kCopySlots];
  CopyLine answers[kCopySlots];
  // Launches by their number, which never is 0 either.
  alignas(128) std::uint32_t alive;  ///< the launch that has begun to look here
  alignas(128) std::uint32_t ended;  ///< the launch that has ceased: nothing of it is under way
};

BELFRY_FN inline std::uint32_t copy_slot(std::uint32_t tag) { return tag % kCopySlots; }
BELFRY_FN inline std::uint32_t next_copy_tag(std::uint32_t tag) { return tag == 0xffffffffu ? 1 : tag + 1; }

BELFRY_FN inline port::Vector16 copy_unit(std::uint64_t content, std::uint32_t tag, CopyWord word) {
  return {content, std::uint64_t{tag} << 32 | word.bits};
}
BELFRY_FN inline std::uint32_t copy_tag(port::Vector16 unit) {
  return static_cast<std::uint32_t>(unit.high >> 32);
}
BELFRY_FN inline CopyWord copy_word(port::Vector16 unit) { return {static_cast<std::uint32_t>(unit.high)}; }

/// What a launch of the copier is given.
struct CopierLaunch {
  CopyRing* ring = nullptr;
  std::uint64_t idle_ns = 0;  ///< it ends after so long without a command
  std::uint64_t stay_ns = 0;  ///< and after so long at all, for those who wait for the GPU to be idle
  std::uint32_t first = 1;    ///< the tag of the first command that is its
  std::uint32_t launch = 1;
};

}  // namespace belfry::softnic
