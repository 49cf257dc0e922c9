#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "cli/decode_text.hpp"

namespace belfry::cli {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string error_of(const std::string& text) {
  try {
    parse_hex(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// Guards: a way of writing bytes, common in logs, that is refused or read in another order.
TEST(ParseHex, WaysOfWritingTheSameBytes) {
  const Bytes expected = {0x93, 0x00, 0x52, 0x04, 0x0a, 0x00, 0x19, 0xa1};
  EXPECT_EQ(parse_hex("930052040a0019a1"), expected);
  EXPECT_EQ(parse_hex("93005204 0a0019a1"), expected);
  EXPECT_EQ(parse_hex("0x93005204, 0X0A0019A1"), expected);
  EXPECT_EQ(parse_hex("93:00:52:04:0a:00:19:a1"), expected);
  EXPECT_EQ(parse_hex("93 00 52 04\r\n\t0a 00 19 a1\n"), expected);
  EXPECT_EQ(parse_hex("00000000: 93 00 52 04\n00000004: 0a 00 19 a1"), expected);
  EXPECT_EQ(parse_hex("00000000: 93005204 00000004: 0a0019a1"), expected) << "a shell joined the lines";
  EXPECT_EQ(parse_hex("[  +0.000002] 93005204\n[ 12.345678] 00000004: 0a0019a1"), expected);
  EXPECT_EQ(parse_hex("[Sep 2 06:28] mlx5_0:dump_cqe:276:(pid 1436): dump error cqe\n93005204 0a0019a1"),
            expected);
  EXPECT_EQ(parse_hex("mlx5: host: got completion with error:\n93005204 0a0019a1"), expected);
}

// Guards: bad input that is skipped silently, so that other bytes are decoded than were given.
TEST(ParseHex, RefusesWhatIsNotHexadecimal) {
  EXPECT_EQ(error_of("93005204\n0a00zz"), "line 2: '0a00zz' is not hexadecimal");
  EXPECT_EQ(error_of("9300520"), "line 1: '9300520' has an odd number of digits; a byte takes two");
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of(" \n 00000000: \n"), "");
  EXPECT_NE(error_of("0x"), "");
  EXPECT_NE(error_of("[unclosed"), "");
  EXPECT_EQ(error_of(std::string("ab\0cd", 5)), "line 1: 'ab?cd' is not hexadecimal");
  EXPECT_NE(error_of(std::string(1000, 'x')).find("..."), std::string::npos) << "a message stays short";
}

}  // namespace
}  // namespace belfry::cli
