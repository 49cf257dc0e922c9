#include "belfry/port/byte_order.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace belfry {
namespace {

// Guards: a swap that is not usable in constant expressions, or that loses a byte.
static_assert(swap_bytes(std::uint16_t{0x0102}) == 0x0201);
static_assert(swap_bytes(std::uint32_t{0x01020304}) == 0x04030201);
static_assert(swap_bytes(std::uint64_t{0x0102030405060708}) == 0x0807060504030201);
static_assert(Be16(0xfffe).get() == 0xfffe);
static_assert(Be32(0x80000001).get() == 0x80000001);
static_assert(Be64(0x8000000000000001).get() == 0x8000000000000001);
static_assert(Be32::from_raw(Be32(7).raw()).get() == 7);
static_assert(PackedBe16(0xfffe).get() == 0xfffe);
static_assert(PackedBe64(Be64(0x8000000000000001)).get() == 0x8000000000000001);
static_assert(Be32(PackedBe32(0x80000001)).get() == 0x80000001);

template <class T>
auto memory(const T& value) {
  std::array<std::uint8_t, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// Guards: get() undoing a wrong order that set() wrote, which a round trip alone cannot see.
TEST(ByteOrder, StoresMostSignificantByteFirst) {
  EXPECT_EQ(memory(Be16(0x0102)), (std::array<std::uint8_t, 2>{1, 2}));
  EXPECT_EQ(memory(Be32(0x01020304)), (std::array<std::uint8_t, 4>{1, 2, 3, 4}));
  EXPECT_EQ(memory(Be64(0x0102030405060708)), (std::array<std::uint8_t, 8>{1, 2, 3, 4, 5, 6, 7, 8}));
}

// Guards: set() forgetting the swap that the constructor makes.
TEST(ByteOrder, SetAndConstructorAgree) {
  Be32 word(0);
  word.set(0xa1b2c3d4);
  EXPECT_EQ(word.raw(), Be32(0xa1b2c3d4).raw());
  EXPECT_EQ(word.get(), 0xa1b2c3d4u);
}

// Guards: an 8 B field at a multiple of four, which may not be accessed as an aligned integer.
TEST(ByteOrder, PackedFieldsNeedNoAlignment) {
  struct {
    PackedBe32 first;
    PackedBe64 second;
  } header{};
  static_assert(sizeof header == 12);
  header.first.set(0x01020304);
  header.second.set(0x05060708090a0b0c);
  EXPECT_EQ(memory(header), (std::array<std::uint8_t, 12>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(header.second.get(), 0x05060708090a0b0cu);
}

}  // namespace
}  // namespace belfry
