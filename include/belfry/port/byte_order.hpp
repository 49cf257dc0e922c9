#pragma once
/// \file
/// Big-endian integers whose byte order lives in the type: the stored form can only be read or
/// written through a swap, so a forgotten swap does not compile.

#include <cstdint>
#include <type_traits>

#include "belfry/port/function.hpp"

namespace belfry {

BELFRY_FN constexpr std::uint16_t swap_bytes(std::uint16_t v) {
  return static_cast<std::uint16_t>((v << 8) | (v >> 8));
}
BELFRY_FN constexpr std::uint32_t swap_bytes(std::uint32_t v) {
  return (v << 24) | ((v & 0xff00u) << 8) | ((v >> 8) & 0xff00u) | (v >> 24);
}
BELFRY_FN constexpr std::uint64_t swap_bytes(std::uint64_t v) {
  return (static_cast<std::uint64_t>(swap_bytes(static_cast<std::uint32_t>(v))) << 32) |
         swap_bytes(static_cast<std::uint32_t>(v >> 32));
}

/// An unsigned integer stored most significant byte first. Every machine that belfry supports is
/// little-endian (x86-64, aarch64, NVIDIA GPUs); byte_order.hpp refuses any other.
template <class T>
class BigEndian {
  static_assert(std::is_unsigned_v<T>);

 public:
  BigEndian() = default;
  BELFRY_FN constexpr explicit BigEndian(T host) : raw_(swap_bytes(host)) {}

  /// The value in the host's order.
  BELFRY_FN constexpr T get() const { return swap_bytes(raw_); }
  BELFRY_FN constexpr void set(T host) { raw_ = swap_bytes(host); }

  /// The stored bits, for code that moves them without looking (a 16 B store, a key passed through).
  BELFRY_FN constexpr T raw() const { return raw_; }
  BELFRY_FN static constexpr BigEndian from_raw(T raw) {
    BigEndian b;
    b.raw_ = raw;
    return b;
  }

 private:
  T raw_;
};

using Be16 = BigEndian<std::uint16_t>;
using Be32 = BigEndian<std::uint32_t>;
using Be64 = BigEndian<std::uint64_t>;

static_assert(sizeof(Be16) == 2 && sizeof(Be32) == 4 && sizeof(Be64) == 8);
static_assert(std::is_trivial_v<Be64> && std::is_standard_layout_v<Be64>);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "belfry supports little-endian machines only"
#endif

}  // namespace belfry
