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
#if defined(__CUDA_ARCH__)
  // One instruction, which nvcc does not find in what follows.
  if (!__builtin_is_constant_evaluated()) return __byte_perm(v, 0, 0x0123);
#endif
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

/// The same as bytes, without alignment, for headers in packets, where an 8 B field may start at any
/// multiple of four. It converts from and to the aligned form.
template <class T>
class PackedBigEndian {
  static_assert(std::is_unsigned_v<T>);

 public:
  PackedBigEndian() = default;
  BELFRY_FN constexpr explicit PackedBigEndian(T host) : bytes_{} { set(host); }
  BELFRY_FN constexpr PackedBigEndian(BigEndian<T> aligned) : bytes_{} { set(aligned.get()); }
  BELFRY_FN constexpr operator BigEndian<T>() const { return BigEndian<T>(get()); }

  /// The value in the host's order.
  BELFRY_FN constexpr T get() const {
    T host = 0;
    for (std::uint8_t byte : bytes_) host = static_cast<T>((host << 8) | byte);
    return host;
  }
  BELFRY_FN constexpr void set(T host) {
    for (unsigned i = sizeof(T); i-- > 0; host = static_cast<T>(host >> 8)) {
      bytes_[i] = static_cast<std::uint8_t>(host);
    }
  }

 private:
  std::uint8_t bytes_[sizeof(T)];
};

using PackedBe16 = PackedBigEndian<std::uint16_t>;
using PackedBe32 = PackedBigEndian<std::uint32_t>;
using PackedBe64 = PackedBigEndian<std::uint64_t>;

static_assert(sizeof(Be16) == 2 && sizeof(Be32) == 4 && sizeof(Be64) == 8);
static_assert(std::is_trivial_v<Be64> && std::is_standard_layout_v<Be64>);
static_assert(sizeof(PackedBe64) == 8 && alignof(PackedBe64) == 1);
static_assert(std::is_trivial_v<PackedBe64> && std::is_standard_layout_v<PackedBe64>);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "belfry supports little-endian machines only"
#endif

}  // namespace belfry
