#pragma once
/// \file
/// Access to fields of PRM mailboxes. A mailbox is a byte array; the PRM numbers bits from its start,
/// most significant bit of byte 0 first, and stores every field big-endian. A field is a type that
/// knows its first bit and its width, so that a layout is a list of names and no struct with bit
/// fields (whose order the compiler chooses) ever meets the wire.

#include <cstdint>
#include <type_traits>

#include "belfry/port/function.hpp"

namespace belfry::wire {

/// A field of `Width` bits whose most significant bit is bit `Bit` of its layout.
template <std::uint32_t Bit, std::uint32_t Width>
struct PrmField {
  static_assert(Width >= 1 && Width <= 64);
  static_assert(Bit % 8 + Width <= 64, "a field must lie in eight bytes");

  using Value = std::conditional_t<(Width <= 32), std::uint32_t, std::uint64_t>;
  static constexpr std::uint32_t kBit = Bit;
  static constexpr std::uint32_t kWidth = Width;
  static constexpr std::uint32_t kEnd = Bit + Width;  ///< one past the last bit
  static constexpr Value kMax = static_cast<Value>(~std::uint64_t{0} >> (64 - Width));

  /// Whether `value` can be stored; set() keeps the low bits of one that cannot.
  BELFRY_FN static constexpr bool fits(std::uint64_t value) { return value <= kMax; }

  /// \param layout first byte of the layout that the field belongs to; any alignment
  BELFRY_FN static constexpr Value get(const std::uint8_t* layout) {
    std::uint64_t bits = 0;
    for (std::uint32_t i = kFirstByte; i <= kLastByte; ++i) bits = (bits << 8) | layout[i];
    return static_cast<Value>((bits >> kShift) & kMax);
  }
  BELFRY_FN static constexpr void set(std::uint8_t* layout, std::uint64_t value) {
    std::uint64_t mask = std::uint64_t{kMax} << kShift;
    std::uint64_t bits = (value & kMax) << kShift;
    for (std::uint32_t i = kLastByte + 1; i-- > kFirstByte;) {
      const auto keep = static_cast<std::uint8_t>(~mask);
      layout[i] = static_cast<std::uint8_t>((layout[i] & keep) | static_cast<std::uint8_t>(bits));
      mask >>= 8;
      bits >>= 8;
    }
  }

  BELFRY_FN static Value get(const void* layout) { return get(static_cast<const std::uint8_t*>(layout)); }
  BELFRY_FN static void set(void* layout, std::uint64_t value) {
    set(static_cast<std::uint8_t*>(layout), value);
  }

 private:
  static constexpr std::uint32_t kFirstByte = Bit / 8;
  static constexpr std::uint32_t kLastByte = (Bit + Width - 1) / 8;
  static constexpr std::uint32_t kShift = 7 - (Bit + Width - 1) % 8;
};

/// `Bytes` bytes from bit `Bit` on, which is a byte boundary: a GID, a vendor string, a list.
template <std::uint32_t Bit, std::uint32_t Bytes>
struct PrmBytes {
  static_assert(Bit % 8 == 0);
  static constexpr std::uint32_t kBit = Bit;
  static constexpr std::uint32_t kBytes = Bytes;
  static constexpr std::uint32_t kEnd = Bit + Bytes * 8;

  BELFRY_FN static std::uint8_t* at(void* layout) { return static_cast<std::uint8_t*>(layout) + Bit / 8; }
  BELFRY_FN static const std::uint8_t* at(const void* layout) {
    return static_cast<const std::uint8_t*>(layout) + Bit / 8;
  }
};

/// A layout inside another one. `Inner` has kBytes; its fields take what at() returns.
template <std::uint32_t Bit, class Inner>
struct PrmPart : PrmBytes<Bit, Inner::kBytes> {};

}  // namespace belfry::wire
